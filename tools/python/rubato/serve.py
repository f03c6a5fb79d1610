"""All runs and experiments of a result database in the browser, on this machine only."""

from __future__ import annotations

import contextlib
import hmac
import re
import secrets
import sqlite3
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

from rubato.errors import IoError, RubatoError
from rubato.program import program, run

REFRESH_S = 5  #: between looks at an experiment that runs
STALE_S = 600  #: an experiment whose database has not changed for so long is taken to have ended
SLOWEST_S = 10  #: for a client to send its request
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store"}
#: What may stand behind the token, and the option of `rubato report` that it becomes. Nothing of a path is ever the name of a file.
_PAGES = ((re.compile(r"", re.ASCII), "--run"), (re.compile(r"run/([0-9]{1,15})", re.ASCII), "--run"),
          (re.compile(r"experiment/([0-9a-f]{8,64})", re.ASCII), "--experiment"))


class Server(ThreadingHTTPServer):
    """Serves one database on 127.0.0.1; pages are those of `rubato report`, made when they are asked for.

    Raises IoError where the database cannot be read or the port is taken.
    """

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, database: Path, port: int = 0) -> None:
        self.database, self.token = database.resolve(), secrets.token_urlsafe(24)
        self._making = threading.BoundedSemaphore(2)
        self._made: dict[tuple[str, str], tuple[Any, bytes]] = {}
        run("report", "--db", self.database, "--run", "all", "-o", "-")  # says what is wrong with the database
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise IoError(f"port {port} of 127.0.0.1: {error}", "leave --port out: any free port is taken") from None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def changed(self) -> tuple[int, ...]:
        """When the database and its log were written last, ns, and their sizes."""
        found: list[int] = []
        for path in (self.database, self.database.with_name(self.database.name + "-wal")):
            with contextlib.suppress(OSError):
                stat = path.stat()
                found += [stat.st_mtime_ns, stat.st_size]
        return tuple(found)

    def runs_on(self, experiment: Optional[str]) -> bool:
        """Whether an experiment (None: any) has units left and was written to lately."""
        written_ns = max(self.changed()[::2], default=0)
        if time.time_ns() - written_ns > STALE_S * 1e9:
            return False
        try:
            with contextlib.closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as store:
                return bool(store.execute("SELECT count(*) FROM v_experiments WHERE finished_units < planned_units AND experiment_id = ifnull(?, experiment_id)",
                                          (experiment,)).fetchone()[0])
        except sqlite3.Error:
            return False

    def page(self, option: str, value: str) -> bytes:
        """The page as it is now. Raises RubatoError with the program's message."""
        now, key = self.changed(), (option, value)
        with self._making:
            if self._made.get(key, (None, b""))[0] != now:
                done = subprocess.run([program(), "report", "--db", str(self.database), option, value, "-o", "-"], capture_output=True, stdin=subprocess.DEVNULL)
                if done.returncode != 0:
                    raise RubatoError(done.stderr.decode(errors="replace").strip())
                while len(self._made) >= 16:
                    del self._made[next(iter(self._made))]
                self._made[key] = now, done.stdout
            return self._made[key][1]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "rubato", ""
    timeout = SLOWEST_S

    def do_GET(self) -> None:
        port = self.server.server_port
        # A page of another site that has its name point here (DNS rebinding) sends that name.
        if self.headers.get_all("Host") not in ([f"127.0.0.1:{port}"], [f"localhost:{port}"]):
            return self.answer(403, b"ask for 127.0.0.1")
        token, _, rest = self.path[1:].partition("/")
        if not hmac.compare_digest(token.encode(errors="replace"), self.server.token.encode()) or not self.path.startswith("/" + token + "/"):
            return self.answer(404, b"not found")
        for pattern, option in _PAGES:
            if found := pattern.fullmatch(rest):
                return self.show(option, found[1] if pattern.groups else "all")
        return self.answer(404, b"not found")

    do_HEAD = do_GET

    def show(self, option: str, value: str) -> None:
        try:
            page = self.server.page(option, value)
        except RubatoError as error:
            return self.answer(404, str(error).encode())
        live = (option == "--experiment" or value == "all") and self.server.runs_on(value if option == "--experiment" else None)
        self.answer(200, page, "text/html; charset=utf-8", {"Refresh": str(REFRESH_S)} if live else {})

    def answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", more: Optional[dict[str, str]] = None) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        # Of requests that are not understood: another method, a line that is too long.
        self.close_connection = True
        if not hasattr(self, "command") or self.command is None:
            self.command = "GET"
        self.answer(code, (message or "refused").encode(errors="replace"))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: standard error is for errors."""
