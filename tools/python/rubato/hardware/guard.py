"""Small processes that give clocks and power limits back when the one they watch is gone, however that ended: `kill -9` too.

They are started as a script, so that nothing of the trainer is imported again. They hold no clock and touch none while the
trainer lives. They wait on a pidfd of the trainer, not on the end of a pipe, which forked data loaders would keep open. There are
two, so that whoever kills one and then the trainer finds the other; the trainer replaces a dead one at once.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from rubato.errors import IoError, RubatoError, Unreachable
from rubato.hardware.backends import NvmlBackend, open_backend, release
from rubato.hardware.lock import clear

READY, DONE, LEFT = b"ready\n", b"done\n", b"left\n"
COUNT = 2  #: guards of a process
START_S = 20.0  #: most a guard may take to be ready
MISSING_S = 1.0  #: between tries to start a missing one
AGAIN_S = 0.25  #: until clocks are reset a second time: a request may have been on its way when the trainer was killed
POLL_S = 0.05  #: between looks, where the kernel has no pidfd
PATIENCE_S = 600.0  #: how long zeusd may be gone until the guard gives up
RETRY_S = 0.5  #: between tries to reach it

_log = logging.getLogger("rubato")


class Guard:
    """Watches this process until close() with COUNT processes, each on a backend of the same kind; a dead one is replaced at once.

    `locks` are descriptors of the GPUs' locks, which the guards share: nobody else sets clocks until they are given back. `lost` is
    called, from a thread, where no guard is left and none can be started. Raises IoError where they cannot start in the first place.
    """

    def __init__(self, backend: Any, indices: Sequence[int], locks: Sequence[int] = (), lost: Callable[[IoError], Any] = lambda _: None):
        self._backend, self._indices, self._locks, self._lost = backend, list(indices), list(locks), lost
        self._changing = threading.Lock()
        self._closed = False
        self._stop_from, self._stop_to = os.pipe()
        self._guards: list[_Process] = []
        try:
            self._fill()
        except IoError:
            self._end(given_back=True)
            os.close(self._stop_from)
            os.close(self._stop_to)
            raise
        threading.Thread(target=self._watch, name="rubato-guards", daemon=True).start()

    @property
    def pids(self) -> list[int]:
        with self._changing:
            return [guard.process.pid for guard in self._guards]

    def close(self, given_back: bool = True) -> None:
        """Ends them without a reset, as the clocks are given back already; else they go on alone until they have done that."""
        with self._changing:
            self._closed = True
            self._end(given_back)
        os.write(self._stop_to, b".")  # its end alone would not be seen while a fork has it open too
        os.close(self._stop_to)

    def _fill(self) -> None:
        begun = [_Process(self._backend, self._indices, self._locks) for _ in range(COUNT - len(self._guards))]
        self._guards += begun
        try:
            for guard in begun:
                guard.wait_until_ready()
        except IoError:
            for guard in begun:
                guard.kill()
                self._guards.remove(guard)
            raise

    def _end(self, given_back: bool) -> None:
        for guard in self._guards:
            guard.tell(DONE if given_back else LEFT)
        for guard in self._guards:
            guard.end(wait=given_back)
        self._guards.clear()

    def _watch(self) -> None:
        """Waits for the death of a guard, in a thread of its own, and starts another."""
        again_s: Optional[float] = None  # a guard is missing: when to try again
        while True:
            waiter = select.poll()
            waiter.register(self._stop_from, select.POLLIN)
            with self._changing:
                for guard in self._guards:
                    waiter.register(guard.watched, select.POLLIN)
            waiter.poll(None if again_s is None else again_s * 1e3)
            with self._changing:
                if self._closed:
                    break
                for guard in [guard for guard in self._guards if guard.process.poll() is not None]:
                    _log.warning("rubato: guard process %d died; another takes its place", guard.process.pid)
                    guard.end(wait=True)
                    self._guards.remove(guard)
                try:
                    self._fill()
                    again_s = None
                except (IoError, OSError) as error:
                    again_s = MISSING_S
                    if self._guards:
                        continue
                    failed = IoError(f"the guard process died, and no other can be started: {error}", "without it nobody gives clocks back after kill -9")
            if again_s is not None:
                self._lost(failed)
                break
        os.read(self._stop_from, 1)
        os.close(self._stop_from)


class _Process:
    """One guard as a child of this process."""

    def __init__(self, backend: Any, indices: Sequence[int], locks: Sequence[int]):
        arguments = [backend.name, ",".join(map(str, indices)), str(os.getpid()), ",".join(map(str, locks)),
                     str(int(getattr(backend, "applications", False))),
                     ",".join(f"{gpu}:{watts!r}" for gpu, watts in getattr(backend, "found_limits_w", {}).items())]
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-s", "-B", __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                pass_fds=tuple(locks), env={**os.environ, **getattr(backend, "environment", {})})
        except OSError as error:
            raise IoError(f"{sys.executable}: {error.strerror}") from None
        assert self.process.stdin and self.process.stdout  # pipes, as asked for
        self._to, self._from = self.process.stdin, self.process.stdout
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):
            pass  # then the end of its output tells, unless a fork holds that too

    @property
    def watched(self) -> int:
        """A descriptor that can be read when the guard is gone."""
        return self._pidfd if self._pidfd >= 0 else self._from.fileno()

    def wait_until_ready(self) -> None:
        ready, _, _ = select.select([self._from], [], [], START_S)
        if not ready or self._from.readline() != READY:
            raise IoError("the guard process does not start; it gives clocks back if this one is killed", "guard=False goes without it")

    def kill(self) -> None:
        self.process.kill()
        self.end(wait=True)

    def tell(self, word: bytes) -> None:
        try:
            self._to.write(word)
            self._to.close()
        except (OSError, ValueError):
            self.process.kill()

    def end(self, wait: bool) -> None:
        """Lets go of it; `wait`: until it is gone."""
        try:
            if wait:
                self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for file in (self._to, self._from):
            try:
                file.close()
            except OSError:
                pass
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


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
    backend_name, parent, applications = arguments[0], int(arguments[2]), arguments[4] == "1"
    indices, locks = ([int(word) for word in words.split(",") if word] for words in (arguments[1], arguments[3]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends after the trainer, not with it
    try:
        descriptor = os.pidfd_open(parent)
    except (AttributeError, OSError):
        descriptor = None
    try:
        backend = NvmlBackend(applications) if backend_name == "nvml" else open_backend(backend_name)
        backend.found_limits_w = {int(gpu): float(watts) for gpu, watts in (word.split(":") for word in arguments[5].split(",") if word)}
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
        print(f"rubato: clocks may still be locked: {'; '.join(sorted(set(map(str, failed))))}\n  hint: nvidia-smi -rgc; nvidia-smi -rmc"
              + "".join(f"; nvidia-smi -i {gpu} -pl {watts:g}" for gpu, watts in backend.found_limits_w.items()), file=sys.stderr)
    else:
        for lock in locks:
            clear(lock)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
