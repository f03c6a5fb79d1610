"""A stand-in for Zeus's daemon on a Unix socket: the calls for clocks and power limits, played on the simulated machine through NVML.

Usage: zeusd.py SOCKET; a process of its own can be killed and started again.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
from pathlib import Path
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[4] / "tools" / "python")]

from rubato.hardware.backends import NvmlBackend
from rubato.errors import IoError


class Zeusd(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """`with Zeusd(path): ...`; `token` asks for it, `groups` False answers 404 as with the group of calls off."""

    daemon_threads = True

    def __init__(self, path, token=None, groups=True):
        super().__init__(str(path), Handler)
        self.backend, self.token, self.groups, self.calls = NvmlBackend(), token, groups, []

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def handle_error(self, *_):
        """Clients that were killed are none of the test's business."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/discover":
            count = self.server.backend.nvml.nvmlDeviceGetCount()
            gpus = [{"id": i, "name": self.server.backend.gpu_name(i), "pci_address": "", "cumulative_energy_available": True}
                    for i in range(count)]
            return self.answer(200, {"gpus": gpus, "enabled_api_groups": ["gpu-control"], "auth_required": bool(self.server.token)})
        url = urlsplit(self.path)
        if url.path == "/gpu/get_power_limit":
            gpus = parse_qs(url.query)["gpu_ids"][0].split(",")
            return self.answer(200, {gpu: {"power_limit_mw": round(1e3 * self.server.backend.power_limit_w(int(gpu)))} for gpu in gpus})
        return self.answer(404, {})

    def do_POST(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.calls.append(url.path)
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self.answer(401, {"error": "token"})
        if not self.server.groups:
            return self.answer(404, {"error": "group off"})
        kind = {"gpu": self.server.backend.set_core, "mem": self.server.backend.set_mem}.get(url.path.split("_")[1] if "_" in url.path else "")
        limits = url.path == "/gpu/set_power_limit"
        if (kind is None and not limits) or "gpu_ids" not in query:
            return self.answer(400, {"error": "bad input"})
        errors = {}
        for gpu in query["gpu_ids"].split(","):
            try:
                if limits:
                    self.server.backend.set_power_limit(int(gpu), 1e-3 * int(query["power_limit_mw"]))
                    continue
                kind(int(gpu), int(query["min_clock_mhz"]) if "/set_" in url.path else None)
            except IoError as error:
                errors[gpu] = str(error)
        return self.answer(200, {"errors": errors} if errors else {})


class ZeusdProcess:
    """The daemon as a process: `with ZeusdProcess(path) as daemon: daemon.kill(); daemon.start()`."""

    def __init__(self, path):
        self.path = path
        self.process = None

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, str(self.path)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def kill(self):
        """As kill -9 does: the socket's file stays, clocks stay as they are."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def main():
    path = sys.argv[1]
    if os.path.exists(path):  # of a daemon that was killed
        os.unlink(path)
    with Zeusd(path):
        print("ready", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
