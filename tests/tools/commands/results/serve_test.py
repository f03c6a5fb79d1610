#!/usr/bin/env python3
"""`rubato serve`: what it shows in a browser, that it reads only, and what it refuses.

Usage: serve_test.py RUBATO SOURCE_DIR
"""
import contextlib
import hashlib
import http.client
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUBATO, SOURCE = sys.argv[1], Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "tools"), str(SOURCE / "tools" / "site")]
import browser  # noqa: E402
from checks import finished  # noqa: E402

SECRETS = ("root:", "SQLite format 3")


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls._folder.name)
        cls.db = cls.folder / "r <b>.db"
        finished(RUBATO, "explore", "gpt3-xl", "--per", "pass", "--slack", "5", "--odds", "0", "--db", cls.db)
        finished(RUBATO, "experiment", "run", SOURCE / "docs/examples/experiment.toml", "--db", cls.db)
        with contextlib.closing(sqlite3.connect(cls.db)) as store:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            [cls.experiment] = store.execute("SELECT experiment_id FROM experiments").fetchone()
        cls.before = hashlib.sha256(cls.db.read_bytes()).hexdigest()
        cls.server = subprocess.Popen([RUBATO, "serve", cls.db], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cls.url = cls.server.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{32,})/", cls.url)
        assert found, (cls.url, cls.server.stderr.read() if cls.server.poll() is not None else "")
        cls.port, cls.token = int(found[1]), found[2]

    @classmethod
    def tearDownClass(cls):
        if cls.server.poll() is None:
            cls.server.kill()
        cls.server.communicate()
        cls._folder.cleanup()

    def ask(self, path, host=None, method="GET"):
        """Status, headers and text of a request."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.putrequest(method, path, skip_host=True)
            for name in [f"127.0.0.1:{self.port}"] if host is None else host:
                connection.putheader("Host", name)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode(errors="replace")

    def test_pages_are_those_of_report(self):
        for path, words in (("run/1", ("--run", "1")), (f"experiment/{self.experiment}", ("--experiment", self.experiment))):
            status, headers, text = self.ask(f"/{self.token}/{path}")
            self.assertEqual((status, text), (200, finished(RUBATO, "report", "--db", self.db, *words, "-o", "-").stdout), path)
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual((headers["Referrer-Policy"], headers["Cache-Control"], headers["Refresh"]), ("no-referrer", "no-store", None))
        status, _, text = self.ask(f"/{self.token}/", method="HEAD")
        self.assertEqual((status, text), (200, ""))

    def test_requests_of_others_are_refused(self):
        own = f"127.0.0.1:{self.port}"
        for hosts in ([], [f"evil.example:{self.port}"], ["127.0.0.1"], [own, "evil.example"], [f"{own}.evil.example"], [""], [f"[::1]:{self.port}"]):
            status, _, text = self.ask(f"/{self.token}/", host=hosts)
            self.assertEqual(status, 403, hosts)
            self.assertNotIn("<html", text)
        self.assertEqual(self.ask(f"/{self.token}/", host=[f"localhost:{self.port}"])[0], 200)
        for path in ("/", "", f"/{self.token}", f"/{self.token[:-1]}/", f"/{self.token}x/", "/%00/", f"http://{own}/{self.token}/", f"/x/../{self.token}/"):
            with self.subTest(path=path):
                status, _, text = self.ask(path or "*")
                self.assertEqual((status, text), (404, "not found"))

    def test_no_path_reaches_a_file_or_an_option(self):
        for rest in ("run/1/../../../../etc/passwd", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "run/..%2f..%2fetc%2fpasswd", "run/-1", "run/1%20--db%20/etc/passwd", "run/latest", "run/",
                     "run/1;ls", "run/9999", "run/999999999999999", "run/12345678901234567890", "run/%D9%A1", "run/1?x=1", "run/1#x", "run/1/", "experiment/latest", "experiment/--db",
                     "experiment/" + "0" * 32, f"experiment/{self.experiment}'--", "r%20%3Cb%3E.db", "static/page.js", "favicon.ico", "run/1\\..\\x"):
            with self.subTest(rest=rest):
                status, headers, text = self.ask(f"/{self.token}/{rest}")
                self.assertEqual((status, headers["Content-Type"]), (404, "text/plain; charset=utf-8"), text[:200])
                self.assertFalse(any(secret in text for secret in SECRETS), text[:200])

    def test_it_reads_only(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X" * 100):
            status, headers, _ = self.ask(f"/{self.token}/", method=method)
            self.assertEqual(status, 501, method)
            self.assertIsNone(headers["Access-Control-Allow-Origin"])
        self.ask(f"/{self.token}/run/1")
        self.assertEqual(hashlib.sha256(self.db.read_bytes()).hexdigest(), self.before)

    def test_what_is_no_request_harms_nothing(self):
        for bytes_sent in (b"\x00\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
                           f"GET /{self.token}/ HTTP/1.1\r\nHost: evil\r\n\r\n".encode(), b"\x16\x03\x01\x02\x00\x01\x00",
                           f"GET /{self.token}/run/\u0661 HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode(), f"GET /\u00e9/ HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()):
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sent:
                with contextlib.suppress(OSError):  # refused before all of it was sent
                    sent.sendall(bytes_sent)
                    sent.shutdown(socket.SHUT_WR)
                    self.assertNotIn(b"<html", sent.recv(1 << 16))
        with socket.create_connection(("127.0.0.1", self.port)) as silent:  # who says nothing holds nobody up
            silent.sendall(b"GET /")
            self.assertEqual(self.ask(f"/{self.token}/")[0], 200)

    def test_only_this_machine_is_answered(self):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]] + [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
        listening = {row[1] for row in rows if row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == self.port}
        self.assertEqual(listening, {f"0100007F:{self.port:04X}"})

    def test_in_a_browser(self):
        if not browser.found():
            self.skipTest("no chromium on this machine")
        with browser.Browser() as page:
            page.open_url(self.url)
            self.assertEqual((page.console, page.evaluate("document.querySelectorAll('#runs-table tbody tr, #experiments-table tbody tr').length")), ([], 2))
            for table in ("runs-table", "experiments-table"):
                page.open_url(self.url)
                page.open_url(page.evaluate(f"document.querySelector('#{table} a').href"))
                self.assertEqual(page.console, [])
                self.assertIn("less energy", page.evaluate("document.querySelector('h1').textContent"))
                self.assertEqual(page.evaluate("document.querySelector('.top a').href"), self.url)

    def test_an_experiment_that_runs_refreshes_itself(self):
        live = self.folder / "live.db"
        with contextlib.closing(sqlite3.connect(self.db)) as store, contextlib.closing(sqlite3.connect(live)) as copy:
            store.backup(copy)
            copy.execute("UPDATE experiments SET planned_units = planned_units + 1")
            copy.commit()
        server = subprocess.Popen([RUBATO, "serve", live], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            port, path = int(url.split(":")[2].split("/")[0]), "/" + url.split("/", 3)[3]

            def refresh(rest):
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                    connection.request("GET", path + rest)
                    answer = connection.getresponse()
                    return answer.status, answer.headers["Refresh"], answer.read().decode()

            self.assertEqual([refresh(rest)[:2] for rest in ("", f"experiment/{self.experiment}", "run/1")], [(200, "5"), (200, "5"), (200, None)])
            self.assertIn("31,32", refresh("")[2])
            with contextlib.closing(sqlite3.connect(live)) as copy:  # the last unit ends
                copy.execute("UPDATE experiments SET planned_units = planned_units - 1")
                copy.commit()
            self.assertEqual(refresh(f"experiment/{self.experiment}")[1], None)
            self.assertIn("31,31", refresh("")[2])
            # One that nobody works on any more is not asked for again and again.
            with contextlib.closing(sqlite3.connect(live)) as copy:
                copy.execute("UPDATE experiments SET planned_units = planned_units + 1")
                copy.commit()
            for file in self.folder.glob("live.db*"):
                os.utime(file, (1e9, 1e9))
            self.assertEqual(refresh("")[1], None)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=30), 0)
        finally:
            server.kill()
            server.communicate()

    def test_what_cannot_be_served(self):
        (self.folder / "text.csv").write_text("a,b\n1,2\n")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for words, status, said in ((["nosuch.db"], 4, "nosuch.db"), (["text.csv"], 4, "not a database"), ([self.db, "--port", str(taken.getsockname()[1])], 4, "any free port"),
                                        ([self.db, "--port", "99999"], 4, "port 99999"), ([], 2, "db")):
                done = subprocess.run([RUBATO, "serve", *words], cwd=self.folder, capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
