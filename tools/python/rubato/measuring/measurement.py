"""What a plan saves, measured: windows of steps under the plan and at the default clocks in turns."""

from __future__ import annotations

import csv
import math
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, TypeVar, Union

from rubato.applier import Applier
from rubato.hardware.backends import NvmlBackend
from rubato.errors import IoError, UsageError
from rubato.measuring.intervals import change_interval, quantile
from rubato.measuring.recorder import Recorder, synchronize

COLUMNS = ("pair", "arm", "steps", "time_s", "energy_j", "core_mhz", "mem_mhz", "temperature_c", "throttled", "power_source", "plan_id")

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
    plan_id: Optional[int]  #: of the plan that was applied; None at the default clocks


@dataclass(frozen=True)
class CallCost:
    """How long calls of the driver (or zeusd) took beside the work; of the latest 10,000."""

    name: str
    calls: int
    median_s: float
    p99_s: float

    def __str__(self) -> str:
        return f"{self.name} {1e3 * self.median_s:.3f} ms (99 %: {1e3 * self.p99_s:.3f} ms, {self.calls} calls)"


def cost_of(name: str, calls_s: Sequence[float]) -> list[CallCost]:
    """None of them where there was no call."""
    return [CallCost(name, len(calls_s), statistics.median(calls_s), quantile(calls_s, 0.99))] if calls_s else []


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
    calls: tuple[CallCost, ...] = ()

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
                f"{len(self.windows) // 2} pairs of windows, 90 % intervals"
                + ("\n  beside the work: " + ", ".join(map(str, self.calls)) if self.calls else ""))


def arms(pairs: int) -> Iterator[tuple[int, str]]:
    """default plan plan default ...: a drift over time falls on both."""
    for pair in range(pairs):
        for arm in ("default", "plan") if pair % 2 == 0 else ("plan", "default"):
            yield pair, arm


class Windows:
    """Counts steps into `pairs` pairs of windows, one under the plan and one at the default clocks, and changes over between them.

    Of itself an applier: it passes marks on, and its step() counts; hooks of a training script may be given it. Before each window
    `settle_steps` steps are not counted: clocks change, and the applier learns. After the last one the plan goes on.
    Raises UsageError, IoError.
    """

    def __init__(self, applier: Applier, pairs: int, steps: int, settle_steps: int = 3, synchronize: Callable[[], Any] = synchronize):
        if pairs < 2 or steps < 1:
            raise UsageError(f"pairs is {pairs} and steps {steps}; expected 2 pairs of 1 step at least")
        self.applier, self.steps, self.settle_steps, self._synchronize = applier, steps, settle_steps, synchronize
        backend = NvmlBackend()
        self._recorder = Recorder([backend.gpu(index) for index in applier.gpus])
        self._spans: list[tuple[int, str, float, float]] = []
        self._left = list(arms(pairs))
        self.count = len(self._left)  #: of windows
        self._done = 0  # steps of this window, those that are not counted too
        self._begin_s = 0.0
        self._recorder.start()
        self._turn()

    def mark(self, name: str) -> None:
        """A pass begins."""
        self.applier.mark(name)

    def step(self) -> None:
        """The step is over."""
        self.applier.step()
        self.count_step()

    @property
    def over(self) -> bool:
        """Whether all windows are measured."""
        return not self._left

    def _turn(self) -> None:
        (self.applier.resume if self.over or self._left[0][1] == "plan" else self.applier.pause)()
        self._done = 0
        if self.settle_steps == 0:
            self._begin()

    def _begin(self) -> None:
        self._synchronize()
        self._begin_s = time.perf_counter()

    def count_step(self) -> None:
        """A step is over, which the applier knows already."""
        if self.over:
            return
        self._done += 1
        if self._done == self.settle_steps:
            self._begin()
        elif self._done == self.settle_steps + self.steps:
            self._synchronize()
            self._spans.append((*self._left.pop(0), self._begin_s, time.perf_counter()))
            if self.over:
                self._stop()
            self._turn()

    def _stop(self) -> None:
        if self._spans:
            self._recorder.wait_for(self._spans[-1][3])
        self._recorder.stop()

    def close(self) -> None:
        """Ends it wherever it is."""
        if not self.over:
            self._stop()

    def result(self) -> Measurement:
        """Of the pairs that are whole. Raises UsageError with fewer than two."""
        whole = len(self._spans) // 2
        if whole < 2:
            raise UsageError(f"the training ended after {len(self._spans)} of {self.count} windows; expected 2 pairs at least",
                             f"each takes {self.settle_steps} + {self.steps} steps: train longer, or measure fewer steps")
        report = self.applier.report()
        if report.errors:
            raise IoError(f"the plan was not applied throughout: {report.errors[0]}")
        calls = [*cost_of("a call to set a clock", report.call_s), *cost_of("to read energy", self._recorder.read_s)]
        return result([_window(self._recorder, *span, self.steps, report.plan_id) for span in self._spans[:2 * whole]], calls)


def measure(step: Callable[[], Any], applier: Applier, *, pairs: int = 8, steps: int = 20, settle_steps: int = 3,
            synchronize: Callable[[], Any] = synchronize) -> Measurement:
    """Runs `step` in `pairs` pairs of windows of `steps` steps, one under the plan and one at the default clocks.

    `step` marks its passes itself (hooks, or applier.mark). Work is synchronised at both ends. Windows of a second or more are the
    cleanest: many boards count energy every 20 to 100 ms. See Windows. Raises UsageError, IoError; clocks are given back by the applier.
    """
    windows = Windows(applier, pairs, steps, settle_steps, synchronize)
    try:
        while not windows.over:
            step()
            windows.count_step()
    finally:
        windows.close()
    return windows.result()


def _window(recorder: Recorder, pair: int, arm: str, begin_s: float, end_s: float, steps: int, plan_id: Optional[int]) -> Window:
    inside = [reading for reading in recorder.readings if begin_s <= reading[0] <= end_s] or recorder.readings[-1:]
    def middle(values: Iterable[Optional[Number]]) -> Optional[Number]:
        seen = sorted(value for value in values if value is not None)
        return seen[len(seen) // 2] if seen else None

    throttled = "+".join(sorted(set().union(*(reading[4] for reading in inside))))
    return Window(pair, arm, steps, end_s - begin_s, recorder.energy_j(begin_s, end_s), middle(one[1] for one in inside),
                  middle(one[2] for one in inside), middle(one[3] for one in inside), throttled,
                  "energy_counter" if recorder.counted else "sampled", plan_id if arm == "plan" else None)


def result(windows: list[Window], calls: Sequence[CallCost] = ()) -> Measurement:
    """Changes from paired windows: logarithms of ratios, Student's interval."""
    def log_ratios(quantity: str) -> list[float]:
        by_pair: dict[int, dict[str, float]] = {}
        for window in windows:
            by_pair.setdefault(window.pair, {})[window.arm] = getattr(window, quantity) / window.steps
        return [math.log(pair["plan"] / pair["default"]) for pair in by_pair.values()]

    return Measurement(tuple(windows), *change_interval(log_ratios("energy_j")), *change_interval(log_ratios("time_s")), tuple(calls))
