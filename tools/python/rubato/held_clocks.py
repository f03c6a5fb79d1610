"""Clocks and power limits of one process's GPUs: asked for where they differ, clocks read back in case others change them, given back."""

from __future__ import annotations

import time
from typing import Callable, MutableSequence, Optional, Sequence

from rubato.hardware.backends import Backend, release
from rubato.errors import RubatoError
from rubato.plan_file import Clock

READ_BACK_S = 1.0  #: between looks at what clock a GPU has
FOREIGN_MHZ = 20  #: a reading further than this from what was set is no rounding


class HeldClocks:
    """Raises IoError from calls that the driver or zeusd refuses; what was asked for by then is remembered."""

    def __init__(self, backend: Backend, gpus: Sequence[int], latency_s: float, call_s: MutableSequence[float]):
        self.backend = backend
        self.call_s = call_s  #: gets how long each call that sets a clock takes
        self.gpus = list(gpus)
        self.latency_s = latency_s
        self.touched = False  #: a clock may be set that has not been given back
        self._asked: dict[int, list[Optional[int]]] = {gpu: [None, None] for gpu in self.gpus}  # core, mem
        self._limits_w: dict[int, Optional[float]] = {}  # power limits asked for
        self._odd: dict[int, int] = dict.fromkeys(self.gpus, 0)  # looks in a row at clocks that nothing explains
        self._read_at_s = self._settled_at_s = 0.0

    def ask(self, clock: Clock, memory: bool) -> int:
        """Requests what differs from the last request. `memory`: the memory clock too. Returns the number of requests."""
        core_mhz, mem_mhz = (None if mhz is None else round(mhz) for mhz in (clock.core_mhz, clock.mem_mhz))
        requests = 0
        for gpu in self.gpus:
            asked = self._asked[gpu]
            if clock.power_limit_w is not None and self._limits_w.get(gpu, self.backend.power_limit_w(gpu)) != clock.power_limit_w:
                self.touched = True
                self.backend.set_power_limit(gpu, clock.power_limit_w)
                requests += 1
            self._limits_w[gpu] = clock.power_limit_w
            if memory and asked[1] != mem_mhz:
                self.touched = True
                self._timed(self.backend.set_mem, gpu, mem_mhz)
                asked[1] = mem_mhz
                requests += 1
            if asked[0] != core_mhz:
                self.touched = True
                self._timed(self.backend.set_core, gpu, core_mhz)
                asked[0] = core_mhz
                requests += 1
        if requests:
            self._settled_at_s = time.perf_counter() + 3 * self.latency_s
        return requests

    def _timed(self, set_clock: Callable[[int, Optional[int]], None], gpu: int, mhz: Optional[int]) -> None:
        begun_s = time.perf_counter()
        set_clock(gpu, mhz)
        self.call_s.append(time.perf_counter() - begun_s)

    def give_back(self) -> list[RubatoError]:
        """All clocks to the driver; what failed. Does nothing where nothing is set."""
        if not self.touched:
            return []
        failed = release(self.backend, self.gpus)
        self.touched = bool(failed)
        for asked in self._asked.values():
            asked[:] = [None, None]
        self._limits_w.clear()
        return failed

    def set_again(self) -> list[str]:
        """Reads the clocks back, once in READ_BACK_S; those that somebody else has changed are set again, and told.

        Changed is a clock that was found wrong twice in a row, since the first may be a change that takes longer than it
        should. A lower one is the GPU's own where it names a reason: a power limit, heat and idleness lower clocks too.
        """
        now_s = time.perf_counter()
        if now_s < self._settled_at_s or now_s < self._read_at_s + READ_BACK_S:
            return []
        self._read_at_s = now_s
        found = []
        for gpu in self.gpus:
            (core_mhz, mem_mhz), (core_asked_mhz, mem_asked_mhz) = self.backend.read(gpu), self._asked[gpu]
            odd = [f"{name} at {mhz} MHz and was set to {asked_mhz} MHz"
                   for name, mhz, asked_mhz in (("runs", core_mhz, core_asked_mhz), ("has its memory", mem_mhz, mem_asked_mhz))
                   if self._is_odd(gpu, mhz, asked_mhz)]
            self._odd[gpu] = self._odd[gpu] + 1 if odd else 0
            if self._odd[gpu] > 1:
                found.append(f"GPU {gpu} {' and '.join(odd)}: somebody else changes its clocks; set again")
                self._set(gpu)
        return found

    def _is_odd(self, gpu: int, mhz: Optional[int], asked_mhz: Optional[int]) -> bool:
        if mhz is None or asked_mhz is None:
            return False
        return mhz > asked_mhz + FOREIGN_MHZ or (mhz < asked_mhz - FOREIGN_MHZ and not self.backend.is_held_down(gpu))

    def _set(self, gpu: int) -> None:
        core_mhz, mem_mhz = self._asked[gpu]
        self._odd[gpu] = 0
        self._asked[gpu] = [None, None]
        if mem_mhz is not None:
            self.backend.set_mem(gpu, mem_mhz)
        if core_mhz is not None:
            self.backend.set_core(gpu, core_mhz)
        self._asked[gpu] = [core_mhz, mem_mhz]
        self._settled_at_s = time.perf_counter() + 3 * self.latency_s
