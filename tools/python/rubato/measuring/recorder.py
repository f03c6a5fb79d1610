"""Reads energy counters and clocks of GPUs, and counters of the CPU, every few milliseconds beside the program."""

from __future__ import annotations

import bisect
import sys
import threading
import time
from collections import deque
from typing import Callable, Deque, Optional, Sequence

from rubato.applier_report import LATEST_CALLS
from rubato.errors import IoError
from rubato.hardware.gpu import Gpu
from rubato.measuring.rapl import Zone

POLL_S = 0.005  #: between readings of counters and clocks
LATE_S = 0.012  #: a step seen later, since the thread had to wait for a core, gives way to the next one that was not
STALE_S = 0.25  #: counters are asked for this long past a window, to hold its end
ENDS = 4  #: steps of a counter kept at each end where not all are kept

Steps = list[tuple[float, float]]  #: s, J as a counter moved


class Recorder(threading.Thread):
    """`keep`: all steps and readings, for windows within; else only the first and last steps, for one window of any length."""

    def __init__(self, gpus: Sequence[Gpu], zones: Sequence[Zone] = (), clock: Callable[[], float] = time.perf_counter, keep: bool = True):
        super().__init__(name="rubato-recorder", daemon=True)
        self.gpus, self.zones, self.clock, self.keep = list(gpus), list(zones), clock, keep
        self.counted = all(gpu.energy_j() is not None for gpu in gpus)
        self.steps: list[Steps] = [[] for _ in (*self.gpus, *self.zones)]
        self.readings: list[tuple[float, Optional[int], Optional[int], Optional[float], frozenset[str]]] = []
        self.read_s: Deque[float] = deque(maxlen=LATEST_CALLS)  #: how long the latest readings of a GPU's energy or power took
        self.error: Optional[Exception] = None
        self._sampled: list[tuple[float, float]] = [(0.0, 0.0)] * len(self.gpus)  # s, W, of GPUs without a counter
        self._looked_s = [0.0] * len(self.steps)
        self._rough = [False] * len(self.steps)  # the last step was seen late
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self.look()
                self._over.wait(POLL_S)
        except Exception as error:  # told by whoever asks next
            self.error = error

    def look(self) -> None:
        """One reading of everything. Raises IoError where a GPU reports neither energy nor power."""
        for place, gpu in enumerate(self.gpus):
            begun_s = time.perf_counter()
            value = gpu.energy_j() if self.counted else self._summed_j(place, gpu)
            self.read_s.append(time.perf_counter() - begun_s)
            if value is None:
                raise IoError(f"{gpu.name}: reports neither energy nor power")
            self._add(place, value, self.counted)
        for place, zone in enumerate(self.zones, len(self.gpus)):
            self._add(place, zone.look(), True)
        if self.keep:
            first = self.gpus[0]
            self.readings.append((self.clock(), first.core_mhz(), first.mem_mhz(), first.temperature_c(), frozenset(first.throttle_reasons())))

    def _summed_j(self, place: int, gpu: Gpu) -> Optional[float]:
        """Energy since the first reading, from power as it is sampled."""
        watts, now_s, steps = gpu.power_w(), self.clock(), self.steps[place]
        if watts is None:
            return None
        before_s, before_w = self._sampled[place]
        self._sampled[place] = now_s, watts
        return steps[-1][1] + 0.5 * (watts + before_w) * (now_s - before_s) if steps else 0.0

    def _add(self, place: int, value: float, counted: bool) -> None:
        steps, now_s = self.steps[place], self.clock()
        if not steps or steps[-1][1] != value:
            gap_s = now_s - self._looked_s[place] if steps and counted else 0.0
            step = now_s - 0.5 * gap_s, value  # a counter moved at some time since the last look
            if self._rough[place] and gap_s <= LATE_S:
                steps[-1] = step
            else:
                steps.append(step)
            self._rough[place] = gap_s > LATE_S
            if not self.keep and len(steps) > 2 * ENDS:
                del steps[ENDS]
        self._looked_s[place] = now_s

    def stop(self) -> None:
        self._over.set()
        if self.ident is not None:
            self.join()

    def wait_for(self, end_s: float) -> None:
        """Until every counter has moved since `end_s`, or does not."""
        while not self.settled(end_s) and self.clock() < end_s + STALE_S:
            time.sleep(POLL_S)

    def energies_j(self, begin_s: float, end_s: float) -> list[float]:
        """Of each GPU. A counter moves every 20 to 100 ms: its value between is interpolated."""
        return self._between(self.steps[:len(self.gpus)], begin_s, end_s)

    def zone_energies_j(self, begin_s: float, end_s: float) -> list[float]:
        """Of each counter of the CPU."""
        return self._between(self.steps[len(self.gpus):], begin_s, end_s)

    def _between(self, counters: list[Steps], begin_s: float, end_s: float) -> list[float]:
        if self.error:
            raise self.error
        return [value_at(steps, end_s) - value_at(steps, begin_s) for steps in (list(counter) for counter in counters)]

    def energy_j(self, begin_s: float, end_s: float) -> float:
        """Energy of all GPUs."""
        return sum(self.energies_j(begin_s, end_s))

    def settled(self, end_s: float) -> bool:
        """Whether every counter has moved since `end_s`."""
        return self.error is not None or not any(rough or steps[-1][0] < end_s for steps, rough in zip(self.steps, self._rough))


def value_at(steps: Steps, when_s: float) -> float:
    """A counter at a moment. Its first reading is not the moment that it moved, and counts only where there are no others."""
    if len(steps) < 2:
        raise IoError("the energy counter does not move", "is the window long enough, and is this the GPU that works? gpus=[...] names it")
    known = steps[1:] if len(steps) > 2 else steps
    place = min(max(bisect.bisect_left(known, (when_s, 0.0)), 1), len(known) - 1)
    (a_s, a_j), (b_s, b_j) = known[place - 1], known[place]
    return a_j + (b_j - a_j) * (when_s - a_s) / (b_s - a_s)


def synchronize() -> None:
    """Waits for CUDA where PyTorch is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()
