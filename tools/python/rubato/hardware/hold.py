"""GPUs whose clocks and power limits this process may set: the lock of each, and guards that give them back if it is killed.

Everything that sets clocks goes through here: plans (rubato.applier), latencies (rubato.hardware.latency), sweeps (rubato.capture).
"""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Optional, Sequence

from rubato.errors import IoError
from rubato.hardware.backends import Backend, NvmlBackend, release
from rubato.hardware.guard import Guard
from rubato.hardware.lock import GpuLock, clear

_log = logging.getLogger("rubato")


class Hold:
    """Takes the GPUs until close(). What a holder left who was killed together with its guards is given back first.

    `limits`: power limits will be set too; those found now are what is given back. `plan`: what rubato watch is told of the plan,
    in the lock's file; the time and the energy counter are added.

    `lost` is called, from a thread, where the guards are gone and cannot be replaced; without it the clocks are given back then, and
    check() raises. Raises IoError where another process sets the clocks of one of the GPUs, or the guards do not start.
    """

    def __init__(self, backend: Backend, gpus: Sequence[int], guard: bool = True, lost: Optional[Callable[[IoError], Any]] = None,
                 limits: bool = False, plan: Optional[dict[str, Any]] = None):
        self._backend, self._gpus = backend, list(gpus)
        self._locks: list[GpuLock] = []
        self._guard: Optional[Guard] = None
        self._lost: Optional[IoError] = None
        self._plan = plan
        try:
            for gpu in self._gpus:
                self._take(gpu, limits)
            if guard and self._locks:
                self._guard = Guard(backend, self._gpus, [lock.descriptor for lock in self._locks], lost or self._stop)
        except BaseException:
            self.close()
            raise

    def _take(self, gpu: int, limits: bool) -> None:
        name = self._backend.lock_name(gpu)
        if name is None:
            return
        lock = GpuLock(name, f"{self._backend.gpu_name(gpu) or 'GPU'} (GPU {gpu})")
        try:
            if lock.left:
                self._give_back_left(gpu, lock)
            self._backend.find_way(gpu)
            if limits:
                found_w = self._backend.power_limit_w(gpu)
                if found_w is None:
                    raise IoError(f"{self._backend.gpu_name(gpu) or 'GPU'} (GPU {gpu}): its power limit cannot be read, and so not be given back",
                                  "plan without power limits")
                self._backend.found_limits_w[gpu] = found_w
        except BaseException:
            lock.close()  # what stands in it stays for the next
            raise
        self._locks.append(lock)
        lock.claim(self._backend.found_limits_w.get(gpu), self._begun(gpu))

    def _begun(self, gpu: int) -> Optional[dict[str, Any]]:
        if self._plan is None:
            return None
        reader = getattr(self._backend, "reader", self._backend)
        energy_j = reader.gpu(gpu).energy_j() if isinstance(reader, NvmlBackend) else None
        return {**self._plan, "begun_s": time.time(), "begun_j": energy_j}

    def _give_back_left(self, gpu: int, lock: GpuLock) -> None:
        _log.warning("rubato: GPU %d: %s, was killed and may have left clocks set; they are given back", gpu, lock.left)
        if lock.left_limit_w is not None:
            self._backend.found_limits_w[gpu] = lock.left_limit_w
        failed = release(self._backend, [gpu])
        self._backend.found_limits_w.pop(gpu, None)
        if failed:
            raise failed[0]

    @property
    def guards(self) -> list[int]:
        """Process ids of the guards."""
        return self._guard.pids if self._guard else []

    def _stop(self, error: IoError) -> None:
        self._lost = error
        failed = release(self._backend, self._gpus)
        _log.error("rubato: %s; clocks %s", error, "may still be locked" if failed else "were given back")

    def check(self) -> None:
        """Call before each switch. Raises IoError where the guards are gone for good."""
        if self._lost:
            raise self._lost

    def close(self, given_back: bool = True) -> None:
        """Lets the GPUs go; where the clocks could not be given back the guards try on, and keep the lock meanwhile."""
        if self._guard is not None:
            self._guard.close(given_back)
            self._guard = None
        for lock in self._locks:
            if given_back:
                clear(lock.descriptor)
            lock.close()
        self._locks.clear()
