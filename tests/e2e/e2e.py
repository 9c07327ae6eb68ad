"""What the end-to-end tests share: a scratch directory, stock Git as client, the server as a process.

Everything that is started has a time limit and is ended by its own process group. Git runs with a HOME of its own, so
that the configuration of whoever runs the tests has no say.
"""
import argparse
import contextlib
import ctypes
import http.client
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse


LIBC = ctypes.CDLL(None)


def fail(text):
    raise AssertionError(text)


def arguments(description, **integers):
    """Parses --binary-dir and one integer option for each keyword (its default)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary-dir", required=True, help="where repotxnd and repotxn are")
    for name, default in integers.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    return parser


@contextlib.contextmanager
def scratch():
    """A directory that goes at the end; kept, and named, when the test fails."""
    path = tempfile.mkdtemp(prefix="repotxn-e2e-")
    try:
        yield path
    except BaseException:
        print(f"kept for inspection: {path}", file=sys.stderr)
        raise
    shutil.rmtree(path, ignore_errors=True)


def environment(home):
    """Environment of a user who has just been given an account."""
    os.makedirs(home, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_TERMINAL_PROMPT": "0"}
    for who in ("AUTHOR", "COMMITTER"):
        env[f"GIT_{who}_NAME"] = "A User"
        env[f"GIT_{who}_EMAIL"] = "user@example.org"
    for name in ("TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    return env


def run(command, env, cwd=None, timeout=60, check=True, stdin=b""):
    """Runs to the end; returns (exit code, stdout, stderr) as (int, bytes, text). Its group dies at the time limit."""
    child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = child.communicate(stdin, timeout=timeout)
    except BaseException as reason:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        if isinstance(reason, subprocess.TimeoutExpired):
            fail(f"took longer than {timeout} s: {command}")
        raise
    text = err.decode(errors="replace")
    if check and child.returncode != 0:
        fail(f"{command} ended with {child.returncode}: {text}")
    return child.returncode, out, text


def die_with_parent():
    """In a child before exec: SIGKILL when the test is gone, even if it was killed itself."""
    pr_set_pdeathsig = 1
    LIBC.prctl(pr_set_pdeathsig, signal.SIGKILL)


class Server:
    """One repotxnd on 127.0.0.1, on a port that it picks itself."""

    def __init__(self, binary_dir, store, log, env):
        self.program = os.path.join(os.path.abspath(binary_dir), "repotxnd")
        self.store, self.log, self.env = store, log, env
        self.child, self.url = None, None

    def spawn(self):
        os.makedirs(self.store, exist_ok=True)
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                [self.program, "serve", "--store", self.store, "--listen", "127.0.0.1:0", "--create-on-push"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=self.env, start_new_session=True,
                preexec_fn=die_with_parent)

    def wait_ready(self, timeout=60):
        deadline, line = time.monotonic() + timeout, b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                fail(f"the server was not ready within {timeout} s; see {self.log}")
            byte = os.read(self.child.stdout.fileno(), 1)
            if not byte:
                fail(f"the server ended with {self.child.wait()} before it was ready:\n{self.tail()}")
            line += byte
        match = re.fullmatch(rb"listening on (http://\S+)\n", line)
        if not match:
            fail(f"unexpected first line of the server: {line!r}")
        self.url = match.group(1).decode()

    def start(self):
        self.spawn()
        self.wait_ready()

    def kill(self):
        """As a crash: SIGKILL, no warning."""
        if self.child.poll() is not None:
            fail(f"the server ended by itself with {self.child.returncode}:\n{self.tail()}")
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def stop(self, timeout=120):
        """As an operator: SIGTERM, and a clean end."""
        self.child.send_signal(signal.SIGTERM)
        try:
            code = self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            fail(f"the server did not stop within {timeout} s after SIGTERM")
        self.child.stdout.close()
        if code != 0:
            fail(f"the server ended with {code} after SIGTERM:\n{self.tail()}")

    def end(self):
        """Whatever happened: nothing is left running."""
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def tail(self):
        with open(self.log, "rb") as log:
            return log.read()[-4000:].decode(errors="replace")


def request(url, method, path, body, timeout=300):
    """One call of the administration: (status, answer). Status 0: the server is gone, or went during it."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=timeout)
    try:
        connection.request(method, f"/api/{path}", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


def post(url, path, body):
    status, answer = request(url, "POST", path, body)
    if status not in (200, 201):
        fail(f"POST {path} got {status}: {answer}")
    return answer


def housekeep(url, repository, task):
    """One task of housekeeping; a repack with no grace at all."""
    body = {"tasks": [task]}
    if task == "repack":
        body["grace_seconds"] = 0
    return request(url, "POST", f"repositories/{repository}/-/housekeeping", body)


def housekeeping_outcome(status, answer):
    """(outcome, text or None) of such a call: "unimplemented" when the server does not know the task."""
    if status == 0:
        return "no answer", None
    tasks = answer.get("tasks", [])
    text = f"{status} {json.dumps(answer)}"
    if len(tasks) != 1 or "outcome" not in tasks[0]:
        return ("unimplemented" if status in (404, 405, 501) else "failed"), text
    outcome = tasks[0]["outcome"]
    if outcome in ("stood in the way", "failed") and "implemented" in text:
        return "unimplemented", text
    return outcome, None if outcome in ("done", "nothing to do") else text


@contextlib.contextmanager
def server(binary_dir, base, env):
    """A server whose store is base/store; not started yet."""
    one = Server(binary_dir, os.path.join(base, "store"), os.path.join(base, "server.log"), env)
    try:
        yield one
    finally:
        one.end()


def refs_of(listing):
    """`ls-remote` or `for-each-ref` output ("<oid> <name>" or "<name> <oid>") as a dictionary."""
    refs = {}
    for line in listing.splitlines():
        first, second = line.split(None, 1)
        name, oid = (second, first) if second == b"HEAD" or second.startswith(b"refs/") else (first, second)
        if not name.endswith(b"^{}"):
            refs[name.decode(errors="surrogateescape")] = oid.decode()
    return refs


def remote_refs(url, env, timeout=60, absent_is_empty=False):
    code, out, err = run(["git", "ls-remote", url], env, timeout=timeout, check=False)
    if code != 0 and not (absent_is_empty and "does not exist" in err):
        fail(f"ls-remote {url} ended with {code}: {err}")
    refs = refs_of(out)
    refs.pop("HEAD", None)
    return refs


def local_refs(directory, env, timeout=60):
    _, out, _ = run(["git", "--git-dir", directory, "-c", "safe.directory=*", "for-each-ref",
                     "--format=%(objectname) %(refname)"], env, timeout=timeout)
    return refs_of(out)


def same_refs(what, found, expected):
    if found == expected:
        return
    names = [n for n in sorted(set(found) | set(expected)) if found.get(n) != expected.get(n)]
    shown = "\n".join(f"  {n}: found {found.get(n)}, expected {expected.get(n)}" for n in names[:10])
    fail(f"{what}: {len(names)} refs differ\n{shown}")


def once_at_rest(store, seconds=30):
    """at_rest() of a store that is served: a merge of packs that began at its opening may be under way."""
    until = time.monotonic() + seconds
    while (problems := at_rest(store)) and time.monotonic() < until:
        time.sleep(0.05)
    return problems


def at_rest(store):
    """What must be empty in a store that nobody uses, and what must be nowhere."""
    problems = []
    for name in ("staging", "snapshots"):
        directory = os.path.join(store, name)
        if os.path.isdir(directory):
            problems += [f"{name}/{entry}" for entry in os.listdir(directory)]
    for directory, _, files in os.walk(os.path.join(store, "repositories")):
        problems += [os.path.join(directory, f) for f in files
                     if f.endswith(".lock") or f.startswith("tmp_") or f == "gc.pid"]
    return problems


def verify(binary_dir, store, env, timeout=600):
    """`repotxn verify` must call everything fine."""
    program = os.path.join(os.path.abspath(binary_dir), "repotxn")
    code, out, err = run([program, "--store", store, "verify"], env, timeout=timeout, check=False)
    if code != 0:
        fail(f"repotxn verify ended with {code}:\n{out.decode(errors='replace')}{err}")


def fsck(directory, env, timeout=600):
    run(["git", "--git-dir", directory, "-c", "safe.directory=*", "fsck", "--full", "--no-progress"], env,
        timeout=timeout)


def main(body, parser):
    """Runs `body(options)`; the exit status of the test."""
    started = time.monotonic()
    # A time limit from outside ends the test through its `finally` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        body(parser.parse_args())
    except AssertionError as reason:
        print(f"FAILED: {reason}", file=sys.stderr)
        sys.exit(1)
    print(f"passed in {time.monotonic() - started:.1f} s")
