"""Clients for the tests of housekeeping: they push, delete, force, bring back and fetch, and know what was acknowledged.

All push from one object directory, a Workshop: so each client may build on what another has just pushed and, as stock
Git does, leaves out of its packs whatever the server shows. When that other branch goes meanwhile and its objects are
pruned, a server that does not notice has a ref to nowhere. Each client moves only branches of its own, so that a push
has no reason to fail.

A target is where they push to: url(repository), revive(repository, ref, oid) and repositories, the first of which is the
pool that those of `forks` borrow from.
"""
import collections
import hashlib
import os
import random
import re
import shutil
import threading
import zlib

import e2e

BRANCHES_MAX = 6     # of one client in one repository; more are deleted
RETIRED_MAX = 200    # commits without a branch that a client remembers
PUSH_SECONDS = 120
# What a server says when objects that the client did not send, since they were shown to it, are gone.
SEND_AGAIN = re.compile(r"(send|push)( it| them)? again|removed meanwhile|missing necessary objects")


class Workshop:
    """Makes commits, in one bare repository that all clients push from. Thread-safe: objects are files of their own."""

    def __init__(self, base, env, seed):
        self.git_dir, self.env = os.path.join(base, "workshop.git"), env
        self.random = random.Random(f"{seed}/workshop")
        e2e.run(["git", "init", "-q", "--bare", self.git_dir], env)
        for name, value in (("gc.auto", "0"), ("http.postBuffer", "64m"), ("pack.threads", "1")):
            self.git("config", name, value)
        # Few, so that the same blobs become unreachable and reachable again and again.
        self.common = [self.write("blob", f"common {n}\n".encode() * 20) for n in range(16)]

    def git(self, *words, **options):
        return e2e.run(["git", "--git-dir", self.git_dir, *words], self.env, **options)

    def write(self, kind, content):
        raw = f"{kind} {len(content)}\0".encode() + content
        oid = hashlib.sha1(raw).hexdigest()
        directory = os.path.join(self.git_dir, "objects", oid[:2])
        path = os.path.join(directory, oid[2:])
        if not os.path.exists(path):
            os.makedirs(directory, exist_ok=True)
            temporary = f"{path}.{threading.get_ident()}"
            with open(temporary, "wb") as file:
                file.write(zlib.compress(raw, 1))
            os.rename(temporary, path)
        return oid

    def tree(self, entries):
        content = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid)
                           for name, (mode, oid) in sorted(entries.items()))
        return self.write("tree", content)

    def commit(self, text, parents, rng):
        own = self.write("blob", (text + "\n").encode() + rng.randbytes(rng.choice((50, 500, 5000))).hex().encode())
        below = self.tree({f"f{n}": ("100644", rng.choice(self.common)) for n in range(3)})
        top = self.tree({"common": ("100644", rng.choice(self.common)), "directory": ("40000", below),
                         "own": ("100644", own)})
        lines = [f"tree {top}", *(f"parent {oid}" for oid in parents),
                 *(f"{who} A User <user@example.org> 1700000000 +0000" for who in ("author", "committer")), "", text, ""]
        return self.write("commit", "\n".join(lines).encode())

    def history(self, commits):
        parents = []
        for number in range(commits):
            parents = [self.commit(f"history {number}", parents, self.random)]
        return parents[0]

    def objects_of(self, tips):
        """Everything that these commits reach."""
        _, out, _ = self.git("rev-list", "--objects", "--stdin", timeout=300, stdin="\n".join(sorted(tips)).encode())
        return {line.split()[0].decode() for line in out.splitlines()}


class Counts(collections.Counter):
    """What happened, and the first few texts of what went wrong."""

    def __init__(self):
        super().__init__()
        self.texts = collections.defaultdict(list)
        self.lock = threading.Lock()

    def note(self, what, text=None):
        with self.lock:
            self[what] += 1
            if text is not None and len(self.texts[what]) < 5:
                self.texts[what].append(text.strip()[-600:])


class Pusher:
    """Moves branches of its own; `known` is what was acknowledged."""

    def __init__(self, number, workshop, target, counts, seed):
        self.number, self.workshop, self.target, self.counts = number, workshop, target, counts
        self.random = random.Random(f"{seed}/pusher {number}")
        self.known = {repository: {} for repository in target.repositories}
        self.open = {}       # repository -> {ref: oid or None} of the push whose answer was lost
        self.retired = []    # (repository, oid) of commits whose branch is gone or elsewhere
        self.others = [self]
        self.steps = 0
        self.error = None

    def work_while(self, running):
        """Until `running` is cleared; a lost answer ends it when the server is gone."""
        try:
            while running.is_set():
                self.step()
                if self.open and not self.resolve(running):
                    return
        except BaseException as reason:  # pylint: disable=broad-except
            self.error = reason

    def step(self):
        self.steps += 1
        repository = self.random.choice(self.target.repositories)
        known = self.known[repository]
        if len(known) >= BRANCHES_MAX:
            return self.delete(repository)
        return self.random.choices(
            (self.grow, self.force, self.delete, self.again, self.spread, self.revive, self.check),
            (36, 15, 15, 14, 10, 5, 5))[0](repository)

    def new_ref(self):
        return f"refs/heads/c{self.number}/b{self.steps}"

    def commit(self, parents):
        return self.workshop.commit(f"client {self.number} step {self.steps}", parents, self.random)

    def parents(self, repository):
        """Of a new commit: often what another client shows there at this moment."""
        other = self.random.choice(self.others)
        tips = list(other.known[repository].values())
        return [self.random.choice(tips)] if tips and self.random.random() < 0.8 else []

    def grow(self, repository):
        known = self.known[repository]
        wanted = {}
        if known and self.random.random() < 0.5:
            ref = self.random.choice(sorted(known))
            wanted[ref] = self.commit([known[ref]])
        else:
            wanted[self.new_ref()] = self.commit(self.parents(repository))
        if self.random.random() < 0.2:
            wanted[f"refs/tags/c{self.number}-{self.steps}"] = next(iter(wanted.values()))
        self.push(repository, wanted)

    def force(self, repository):
        if not self.known[repository]:
            return self.grow(repository)
        ref = self.random.choice(sorted(self.known[repository]))
        return self.push(repository, {ref: self.commit(self.parents(repository))})

    def delete(self, repository):
        refs = sorted(self.known[repository])
        if refs:
            self.push(repository, dict.fromkeys(self.random.sample(refs, min(len(refs), self.random.randint(1, 2)))))

    def again(self, repository):
        """What is, if anything, unreachable on the server is sent once more, sometimes with a commit on top."""
        if not self.retired:
            return self.grow(repository)
        before, oid = self.random.choice(self.retired)
        if self.random.random() < 0.7:
            repository = before
        if self.random.random() < 0.4:
            oid = self.commit([oid])
        return self.push(repository, {self.new_ref(): oid})

    def spread(self, _):
        """A fork's branch whose objects only the pool has, and has no branch for any more."""
        pool = self.target.repositories[0]
        ref, oid = self.new_ref(), self.commit(self.parents(pool))
        if self.push(pool, {ref: oid}) and self.push(self.random.choice(self.target.forks), {ref: oid}):
            self.push(pool, {ref: None})

    def revive(self, _):
        """A ref to a commit that the server has or has not any more, without sending anything."""
        if not self.retired:
            return
        repository, oid = self.random.choice(self.retired)
        ref = self.new_ref()
        self.open[repository] = {ref: oid}
        outcome, text = self.target.revive(repository, ref, oid)
        if outcome == "lost":
            return
        del self.open[repository]
        self.counts.note("refs set without objects: " + outcome, text)
        if outcome == "done":
            self.known[repository][ref] = oid
            self.read_back(repository, ref)

    def read_back(self, repository, ref):
        """At once: the next deletion would hide that a ref was set to what is gone."""
        copy = f"{self.workshop.git_dir}-{self.number}"
        code, _, err = e2e.run(["git", "clone", "-q", "--bare", "--single-branch", "--branch",
                                ref.removeprefix("refs/heads/"), self.target.url(repository), copy],
                               self.workshop.env, check=False, timeout=PUSH_SECONDS)
        shutil.rmtree(copy, ignore_errors=True)
        self.counts.note("fetches")
        if code != 0:
            self.counts.note("fetches failed", f"{repository} {ref}, just set without objects: {err}")

    def check(self, repository):
        """Nobody else moves these branches: what was acknowledged must be shown."""
        self.counts.note("refs compared")
        found = self.shown(repository)
        if found is not None and found != self.known[repository]:
            self.counts.note("refs wrong", f"{repository}: shown {found}, acknowledged {self.known[repository]}")

    def shown(self, repository):
        code, out, err = e2e.run(["git", "ls-remote", self.target.url(repository), f"refs/heads/c{self.number}/*",
                                  f"refs/tags/c{self.number}-*"], self.workshop.env, check=False, timeout=PUSH_SECONDS)
        if code != 0:
            self.counts.note("fetches failed", err)
            return None
        return e2e.refs_of(out)

    def push(self, repository, wanted):
        specs = [f"+{oid}:{ref}" if oid else f":{ref}" for ref, oid in sorted(wanted.items())]
        self.open[repository] = wanted
        for attempt in range(2):
            code, err = self.send(repository, specs)
            if code == 0:
                del self.open[repository]
                self.counts.note("pushes acknowledged")
                self.settle(repository, wanted)
                return True
            if attempt == 0 and SEND_AGAIN.search(err):
                self.counts.note("pushes told to send again", err)
                continue
            break
        if "rejected]" in err and "outcome unknown" not in err:
            del self.open[repository]
            self.counts.note("pushes failed", err)
        else:
            self.counts.note("pushes without an answer", err)
        return False

    def send(self, repository, specs):
        try:
            code, _, err = self.workshop.git("push", "-q", "--atomic", self.target.url(repository), *specs,
                                             check=False, timeout=PUSH_SECONDS)
        except AssertionError as reason:
            return -1, str(reason)
        return code, err

    def settle(self, repository, wanted):
        known = self.known[repository]
        for ref, oid in wanted.items():
            before = known.pop(ref, None)
            if oid:
                known[ref] = oid
            if before and before != oid:
                self.retired.append((repository, before))
        del self.retired[:-RETIRED_MAX]

    def resolve(self, running):
        """What became of a push without an answer: all of it, or nothing. False when the server is gone."""
        for repository, wanted in list(self.open.items()):
            if not running.is_set():
                return False
            found = self.shown(repository)
            if found is None:
                return False
            self.take_over(repository, wanted, found)
        return True

    def take_over(self, repository, wanted, found):
        after = {**self.known[repository], **wanted}
        after = {ref: oid for ref, oid in after.items() if oid}
        if found == after:
            self.settle(repository, wanted)
        del self.open[repository]


class Fetcher:
    """Clones, and brings a mirror up to date."""

    def __init__(self, number, base, target, env, counts, seed):
        self.number, self.target, self.env, self.counts = number, target, env, counts
        self.random = random.Random(f"{seed}/fetcher {number}")
        self.base = os.path.join(base, f"fetcher{number}")
        self.fetches = 0
        self.error = None

    def work_while(self, running):
        try:
            while running.is_set():
                self.step()
        except BaseException as reason:  # pylint: disable=broad-except
            self.error = reason

    def git(self, *words):
        try:
            return e2e.run(["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *words], self.env, check=False,
                           timeout=PUSH_SECONDS)
        except AssertionError as reason:
            return -1, b"", str(reason)

    def step(self):
        repository = self.random.choice(self.target.repositories)
        mirror = os.path.join(self.base, repository.replace("/", "-"))
        # A mirror has as many packs as it was brought up to date times: a fresh one now and then.
        self.fetches += 1
        if os.path.isdir(mirror) and self.random.random() < 0.1:
            shutil.rmtree(mirror)
        if os.path.isdir(mirror):
            code, _, err = self.git("--git-dir", mirror, "fetch", "-q", "--prune", "origin")
        else:
            code, _, err = self.git("clone", "-q", "--mirror", self.target.url(repository), mirror)
        self.counts.note("fetches")
        if code != 0:
            self.counts.note("fetches failed", f"{repository}: {err}")
            shutil.rmtree(mirror, ignore_errors=True)

    def audit(self, repository):
        """A copy of one moment, looked at object by object."""
        copy = os.path.join(self.base, "audit")
        code, _, err = self.git("clone", "-q", "--mirror", self.target.url(repository), copy)
        self.counts.note("fetches")
        if code != 0:
            self.counts.note("fetches failed", f"{repository}: {err}")
        else:
            code, out, err = self.git("--git-dir", copy, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
            self.counts.note("mirrors checked")
            if code != 0:
                self.counts.note("mirrors damaged", f"{repository}: {out.decode(errors='replace')}{err}")
        shutil.rmtree(copy, ignore_errors=True)


def acknowledged(pushers, repository):
    """Refs of all clients there, and main, which nobody moves."""
    refs = {}
    for pusher in pushers:
        refs.update(pusher.known[repository])
    return refs


def unknown_refs(pushers, repository):
    """Refs of pushes that never got an answer and whose fate nobody could ask for."""
    return {ref for pusher in pushers for ref in pusher.open.get(repository, {})}
