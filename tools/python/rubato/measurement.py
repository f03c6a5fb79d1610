"""What a plan saves, measured: windows of steps under the plan and at the default clocks in turns."""

from __future__ import annotations

import bisect
import csv
import math
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, TypeVar, Union

from rubato.applier import Applier
from rubato.hardware.backends import NvmlBackend
from rubato.errors import IoError, UsageError
from rubato.hardware.gpu import Gpu
from rubato.intervals import change_interval

COLUMNS = ("pair", "arm", "steps", "time_s", "energy_j", "core_mhz", "mem_mhz", "temperature_c", "throttled", "power_source", "plan_id")
POLL_S = 0.005  #: between readings of counter and clocks
STALE_S = 0.25  #: the counter is asked for this long past a window, to hold its end

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Window:
    """Steps in a row under one arm: 'default' or 'plan'. Energy of all measured GPUs."""

    pair: int
    arm: str
    steps: int
    time_s: float
    energy_j: float
    core_mhz: Optional[int]  #: middle reading
    mem_mhz: Optional[int]
    temperature_c: Optional[float]
    throttled: str
    power_source: str  #: 'energy_counter' or 'sampled'
    plan_id: Optional[int]  #: of the plan that was played; None at the default clocks


@dataclass(frozen=True)
class Measurement:
    """Paired windows and the change of energy and time a step that they show, as fractions with 90 % intervals."""

    windows: tuple[Window, ...]
    energy_change_frac: float
    energy_change_low_frac: float
    energy_change_high_frac: float
    time_change_frac: float
    time_change_low_frac: float
    time_change_high_frac: float

    def write_csv(self, path: Union[str, Path]) -> None:
        """Writes the file that `rubato verify --measured` reads. Raises IoError."""
        try:
            with open(path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                for window in self.windows:
                    writer.writerow(["" if (value := getattr(window, name)) is None else value for name in COLUMNS])
        except OSError as error:
            raise IoError(f"{path}: {error.strerror}") from None

    def __str__(self) -> str:
        return (f"energy {100 * self.energy_change_frac:+.2f} % ({100 * self.energy_change_low_frac:+.2f} to "
                f"{100 * self.energy_change_high_frac:+.2f}), time {100 * self.time_change_frac:+.2f} % "
                f"({100 * self.time_change_low_frac:+.2f} to {100 * self.time_change_high_frac:+.2f}), "
                f"{len(self.windows) // 2} pairs of windows, 90 % intervals")


class Recorder(threading.Thread):
    """Reads the energy counter and clocks of GPUs every few milliseconds."""

    def __init__(self, gpus: list[Gpu], clock: Callable[[], float] = time.perf_counter):
        super().__init__(name="rubato-recorder", daemon=True)
        self.gpus, self.clock = gpus, clock
        self.counted = all(gpu.energy_j() is not None for gpu in gpus)
        self.steps: list[list[tuple[float, float]]] = [[] for _ in gpus]  # (s, J) as the counter moved; without one (s, W)
        self.readings: list[tuple[float, Optional[int], Optional[int], Optional[float], frozenset[str]]] = []
        self.error: Optional[Exception] = None
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self.look()
                self._over.wait(POLL_S)
        except Exception as error:  # told by whoever asks next
            self.error = error

    def look(self) -> None:
        for gpu, steps in zip(self.gpus, self.steps):
            value = gpu.energy_j() if self.counted else gpu.power_w()
            if value is None:
                raise IoError(f"{gpu.name}: reports neither energy nor power")
            if not self.counted or not steps or steps[-1][1] != value:
                steps.append((self.clock(), value))
        first = self.gpus[0]
        self.readings.append((self.clock(), first.core_mhz(), first.mem_mhz(), first.temperature_c(), frozenset(first.throttle_reasons())))

    def stop(self) -> None:
        self._over.set()
        if self.ident is not None:
            self.join()

    def energy_j(self, begin_s: float, end_s: float) -> float:
        """Energy of all GPUs. The counter moves every 20 to 100 ms: its value between is interpolated."""
        if self.error:
            raise self.error
        return sum((_at(steps, end_s) - _at(steps, begin_s)) if self.counted else _mean(steps, begin_s, end_s) * (end_s - begin_s)
                   for steps in self.steps)

    def settled(self, end_s: float) -> bool:
        """Whether the counter of every GPU has moved since `end_s`."""
        return self.error is not None or not self.counted or all(steps[-1][0] >= end_s for steps in self.steps)


def _at(steps: list[tuple[float, float]], when_s: float) -> float:
    place = min(max(bisect.bisect_left(steps, (when_s, 0.0)), 1), len(steps) - 1)
    if len(steps) < 2:
        raise IoError("the energy counter does not move", "is this the GPU that trains? gpus=[...] names it")
    (a_s, a_j), (b_s, b_j) = steps[place - 1], steps[place]
    return a_j + (b_j - a_j) * (when_s - a_s) / (b_s - a_s)


def _mean(samples: list[tuple[float, float]], begin_s: float, end_s: float) -> float:
    inside = [watts for at_s, watts in samples if begin_s <= at_s <= end_s]
    if not inside:
        raise IoError("no power was read within a window", "make windows longer")
    return sum(inside) / len(inside)


def _synchronize() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


def arms(pairs: int) -> Iterator[tuple[int, str]]:
    """default plan plan default ...: a drift over time falls on both."""
    for pair in range(pairs):
        for arm in ("default", "plan") if pair % 2 == 0 else ("plan", "default"):
            yield pair, arm


def measure(step: Callable[[], Any], applier: Applier, *, pairs: int = 8, steps: int = 20, settle_steps: int = 3,
            synchronize: Callable[[], Any] = _synchronize) -> Measurement:
    """Runs `step` in `pairs` pairs of windows of `steps` steps, one under the plan and one at the default clocks.

    `step` marks its passes itself (hooks, or applier.mark). Before each window `settle_steps` steps are not counted: clocks
    change, and the applier learns. Work is synchronised at both ends. Windows of a second or more are the cleanest: many
    boards count energy every 20 to 100 ms. Raises UsageError, IoError; clocks are given back by the applier.
    """
    if pairs < 2 or steps < 1:
        raise UsageError(f"pairs is {pairs} and steps {steps}; expected 2 pairs of 1 step at least")
    backend = NvmlBackend()
    recorder = Recorder([backend.gpu(index) for index in applier.gpus])
    recorder.start()
    spans = []
    try:
        for pair, arm in arms(pairs):
            (applier.resume if arm == "plan" else applier.pause)()
            for _ in range(settle_steps):
                step()
            synchronize()
            begin_s = time.perf_counter()
            for _ in range(steps):
                step()
            synchronize()
            spans.append((pair, arm, begin_s, time.perf_counter()))
        end_s = time.perf_counter()
        while not recorder.settled(end_s) and time.perf_counter() < end_s + STALE_S:
            time.sleep(POLL_S)
    finally:
        recorder.stop()
    if applier.report().errors:
        raise IoError(f"the plan was not applied throughout: {applier.report().errors[0]}")
    return result([_window(recorder, *span, steps, applier.report().plan_id) for span in spans])


def _window(recorder: Recorder, pair: int, arm: str, begin_s: float, end_s: float, steps: int, plan_id: Optional[int]) -> Window:
    inside = [reading for reading in recorder.readings if begin_s <= reading[0] <= end_s] or recorder.readings[-1:]
    def middle(values: Iterable[Optional[Number]]) -> Optional[Number]:
        seen = sorted(value for value in values if value is not None)
        return seen[len(seen) // 2] if seen else None

    throttled = "+".join(sorted(set().union(*(reading[4] for reading in inside))))
    return Window(pair, arm, steps, end_s - begin_s, recorder.energy_j(begin_s, end_s), middle(one[1] for one in inside),
                  middle(one[2] for one in inside), middle(one[3] for one in inside), throttled,
                  "energy_counter" if recorder.counted else "sampled", plan_id if arm == "plan" else None)


def result(windows: list[Window]) -> Measurement:
    """Changes from paired windows: logarithms of ratios, Student's interval."""
    def log_ratios(quantity: str) -> list[float]:
        by_pair: dict[int, dict[str, float]] = {}
        for window in windows:
            by_pair.setdefault(window.pair, {})[window.arm] = getattr(window, quantity) / window.steps
        return [math.log(pair["plan"] / pair["default"]) for pair in by_pair.values()]

    return Measurement(tuple(windows), *change_interval(log_ratios("energy_j")), *change_interval(log_ratios("time_s")))
