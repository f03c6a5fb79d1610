"""A small process that gives clocks back when the one it watches is gone, however that ended: `kill -9` too.

It is started as a script, so that nothing of the trainer is imported again. It holds no clock and touches none while the
trainer lives. It waits on a pidfd of the trainer, not on the end of a pipe, which forked data loaders would keep open.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional, Sequence

READY, DONE, LEFT = b"ready\n", b"done\n", b"left\n"
START_S = 20.0  #: most a guard may take to be ready
AGAIN_S = 0.25  #: until clocks are reset a second time: a request may have been on its way when the trainer was killed
POLL_S = 0.05  #: between looks, where the kernel has no pidfd
PATIENCE_S = 600.0  #: how long zeusd may be gone until the guard gives up
RETRY_S = 0.5  #: between tries to reach it


class Guard:
    """Watches this process until close(), and opens the same kind of backend. Raises IoError from the constructor where it cannot start."""

    def __init__(self, backend: Any, indices: Sequence[int]):
        from rubato.errors import IoError

        self._process = subprocess.Popen(
            [sys.executable, "-s", "-B", __file__, backend.name, ",".join(map(str, indices)), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**os.environ, **getattr(backend, "environment", {})})
        assert self._process.stdin and self._process.stdout  # pipes, as asked for
        self._to, self._from = self._process.stdin, self._process.stdout
        ready, _, _ = select.select([self._from], [], [], START_S)
        if not ready or self._from.readline() != READY:
            self._process.kill()
            raise IoError("the guard process does not start; it gives clocks back if this one is killed",
                          "guard=False goes without it")

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self, given_back: bool = True) -> None:
        """Ends it without a reset, as the clocks are given back already; else it goes on alone until it has done that."""
        try:
            self._to.write(DONE if given_back else LEFT)
            self._to.close()
            if given_back:
                self._process.wait(timeout=5.0)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._from.close()


def _wait(parent: int, descriptor: Optional[int]) -> bool:
    """True once the parent is gone, or leaves its clocks to the guard; False if it said that it is done."""
    waiter = select.poll()
    waiter.register(0, select.POLLIN)
    if descriptor is not None:
        waiter.register(descriptor, select.POLLIN)
    text = b""
    while True:
        for at, _ in waiter.poll(None if descriptor is not None else POLL_S * 1e3):
            if at == descriptor:
                return True
            read = os.read(0, 64)
            text += read
            if DONE in text or LEFT in text:
                return LEFT in text
            if not read:
                waiter.unregister(0)  # closed by somebody; the pidfd decides
                if descriptor is None:
                    return True
        if descriptor is None and os.getppid() != parent:
            return True


def _release_when_reached(backend: Any, indices: Sequence[int]) -> list[Any]:
    """release(), again and again while zeusd is gone: clocks that it set outlive it."""
    from rubato.hardware.backends import release
    from rubato.errors import Unreachable

    begin_s, told = time.monotonic(), False
    while True:
        failed = release(backend, indices)
        if not any(isinstance(error, Unreachable) for error in failed) or time.monotonic() > begin_s + PATIENCE_S:
            return failed
        if not told:
            told = True
            print(f"rubato: {failed[0]}; clocks may still be locked, trying for {PATIENCE_S / 60:.0f} minutes", file=sys.stderr, flush=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # whoever reads the trainer's output is not kept waiting
        time.sleep(RETRY_S)


def main(arguments: Sequence[str]) -> int:
    backend_name, indices, parent = arguments[0], [int(i) for i in arguments[1].split(",")], int(arguments[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends after the trainer, not with it
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from rubato.hardware.backends import open_backend, release
    from rubato.errors import RubatoError, Unreachable

    try:
        descriptor = os.pidfd_open(parent)
    except (AttributeError, OSError):
        descriptor = None
    try:
        backend = open_backend(backend_name)
        for index in indices:
            backend.gpu_name(index)  # opens it: the driver may not find a GPU any more that is lost by then
    except RubatoError as error:
        print(error, file=sys.stderr)
        return error.status
    if os.getppid() == parent or descriptor is not None:
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
    if not _wait(parent, descriptor):
        return 0
    failed = _release_when_reached(backend, indices)
    time.sleep(AGAIN_S)
    again = release(backend, indices)  # zeusd that is gone by now has taken the requests on their way with it
    failed += [error for error in again if not isinstance(error, Unreachable)]
    if failed:
        print(f"rubato: clocks may still be locked: {'; '.join(sorted(set(map(str, failed))))}\n  hint: nvidia-smi -rgc; nvidia-smi -rmc", file=sys.stderr)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
