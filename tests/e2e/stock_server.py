"""Stock Git as the server beside ours: `git http-backend` behind an HTTP server of a few lines, a thread a request.

Over HTTP and not over file paths, so that clients do the same on both sides: what the first answer shows and what the
second request finds are moments apart, which is where housekeeping comes between.
"""
import http.server
import os
import subprocess
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        # Clients have an http.postBuffer that no push exceeds, so that nothing comes in chunks.
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body):
        place = urllib.parse.urlsplit(self.path)
        env = dict(self.server.env, GIT_PROJECT_ROOT=self.server.root, GIT_HTTP_EXPORT_ALL="1",
                   REQUEST_METHOD=self.command, PATH_INFO=urllib.parse.unquote(place.path), QUERY_STRING=place.query,
                   CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""), REMOTE_ADDR="127.0.0.1",
                   GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        with subprocess.Popen(["git", "http-backend"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            out, _ = child.communicate(body)
        head, _, content = out.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200 if headers else 500)
        self.send_response(status)
        for name, value in headers:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class StockServer:
    """Serves the repositories below `root`, with pushes allowed by their configuration."""

    def __init__(self, root, env):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.root, self.server.env = os.path.abspath(root), env
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
