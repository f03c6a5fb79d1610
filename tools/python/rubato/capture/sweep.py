"""Measures the tasks of a plan and writes the rows that `rubato calibrate` reads."""

from __future__ import annotations

import csv
import io
import math
import os
import statistics
import time
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.gpu import AUTO, Clocks, Gpu, Request
from rubato.capture.kernels import Kernel
from rubato.capture.plan import IDLE, Task
from rubato.capture.runner import POLL_S, KernelDoesNotFit

COLUMNS = ("gpu", "kernel", "core_mhz", "mem_mhz", "time_s", "power_w", "energy_j", "core_mhz_requested",
           "mem_mhz_requested", "repeat", "time_std_s", "temperature_c", "throttled", "power_cap_w", "flop",
           "dram_bytes", "power_source", "class")

Key = tuple[str, str, str, str]  #: of a row: kernel, clocks asked for, repeat


class Meter:
    """Collects readings while something runs; call poll() every few milliseconds. `clock` gives seconds."""

    LEAST_STEPS = 3  # of the energy counter, for its steps of 20 to 100 ms to cancel

    def __init__(self, gpu: Gpu, clock: Callable[[], float] = time.monotonic) -> None:
        self.gpu = gpu
        self.clock = clock
        self.steps: list[tuple[float, float]] = []  # (s, J) just after the counter moved
        self.last_j: Optional[float] = None
        self.powers: list[float] = []
        self.cores: list[int] = []
        self.mems: list[int] = []
        self.temperatures: list[float] = []
        self.throttled: set[str] = set()

    def poll(self) -> None:
        """One reading of everything. Raises IoError."""
        energy_j = self.gpu.energy_j()
        if energy_j is not None and self.last_j is not None and energy_j != self.last_j:
            self.steps.append((self.clock(), energy_j))
        self.last_j = energy_j
        readings: tuple[tuple[list[Any], Optional[float]], ...] = (
            (self.powers, self.gpu.power_w()), (self.cores, self.gpu.core_mhz()),
            (self.mems, self.gpu.mem_mhz()), (self.temperatures, self.gpu.temperature_c()))
        for values, value in readings:
            if value is not None:
                values.append(value)
        self.throttled |= self.gpu.throttle_reasons()

    def power(self) -> tuple[float, str]:
        """Average power in W and where it comes from. Raises IoError where the GPU reports none."""
        if len(self.steps) >= self.LEAST_STEPS:
            (begin_s, begin_j), (end_s, end_j) = self.steps[0], self.steps[-1]
            return (end_j - begin_j) / (end_s - begin_s), "energy_counter"
        if self.powers:
            # Many boards report an average over the last second, so the second half is the cleaner one.
            return statistics.fmean(self.powers[len(self.powers) // 2:]), "sampled"
        raise IoError(f"{self.gpu.name}: reports neither energy nor power")


def read_rows(path: Union[str, Path], gpu_name: Optional[str]) -> tuple[set[Key], int]:
    """Keys of the rows in a file of ours and the length of its complete lines in bytes.

    Raises DataError for other columns or another GPU than `gpu_name` (None: any).
    """
    path = Path(path)
    if not path.exists() or path.stat().st_size == 0:
        return set(), 0
    data = path.read_bytes()
    complete = data[:data.rfind(b"\n") + 1]  # the last line may be cut off
    rows = csv.DictReader(io.StringIO(complete.decode("utf-8", "replace"), newline=""))
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise DataError(f"{path}:1: columns are not those of this program", "--resume takes only its own files")
    done = set()
    for line, row in enumerate(rows, start=2):
        if gpu_name and row["gpu"] != gpu_name:
            raise DataError(f"{path}:{line}: gpu is '{row['gpu']}'; expected '{gpu_name}'")
        done.add((row["kernel"], row["core_mhz_requested"], row["mem_mhz_requested"], row["repeat"]))
    return done, len(complete)


def rows_done(path: Union[str, Path], gpu_name: Optional[str]) -> set[Key]:
    """Keys of the rows in a file of ours. Raises DataError as read_rows."""
    return read_rows(path, gpu_name)[0]


class SweepFile:
    """The CSV file, one durable line per measurement. Raises UsageError, DataError, IoError where it cannot go on in it."""

    def __init__(self, path: Union[str, Path], gpu_name: str, resume: bool) -> None:
        self.done: set[Key] = set()
        length = 0
        if Path(path).exists() and Path(path).stat().st_size > 0:
            if not resume:
                raise UsageError(f"{path} is there already", "--resume adds what is missing; or choose another name")
            self.done, length = read_rows(path, gpu_name)
        try:
            self.file = open(path, "a", newline="", encoding="utf-8")
        except OSError as error:
            raise IoError(f"{path}: {error.strerror}") from None
        self.file.truncate(length)
        if length == 0:
            self._line(COLUMNS)

    def write(self, row: Mapping[str, Any]) -> None:
        """Values by column; missing ones are empty cells."""
        self._line([self._text(row.get(column)) for column in COLUMNS])

    def _line(self, cells: Sequence[str]) -> None:
        csv.writer(self.file, lineterminator="\n").writerow(cells)
        self.file.flush()
        os.fsync(self.file.fileno())

    @staticmethod
    def _text(value: Any) -> str:
        return "" if value is None else repr(value) if isinstance(value, float) else str(value)

    def close(self) -> None:
        """Lines are on the disk already."""
        self.file.close()


class Settings:
    """Seconds and degrees C of one measurement."""

    def __init__(self, warm_up_s: float = 0.5, window_s: float = 2.0, settle_s: float = 0.2, idle_settle_s: float = 3.0,
                 cool_below_c: float = 80.0, cool_at_most_s: float = 120.0) -> None:
        self.warm_up_s = warm_up_s
        self.window_s = window_s
        self.settle_s = settle_s
        self.idle_settle_s = idle_settle_s
        self.cool_below_c = cool_below_c
        self.cool_at_most_s = cool_at_most_s

    def seconds(self, tasks: Sequence[Task]) -> float:
        """About how long `tasks` take; 0.5 s is the guess for making a kernel's operands."""
        idle = sum(task.kernel == IDLE for task in tasks)
        pairs = sum(a.pair != b.pair for a, b in zip(tasks, tasks[1:])) + bool(tasks)
        return (idle * (self.idle_settle_s + self.window_s) + pairs * self.settle_s +
                (len(tasks) - idle) * (0.5 + self.warm_up_s + self.window_s))


class Sweep:
    """Runs tasks. `runner` loads, runs and unloads kernels as TorchRunner does; `clock` and `sleep`, in s, are there for tests."""

    def __init__(self, gpu: Gpu, clocks: Clocks, runner: Any, kernels: Sequence[Kernel], settings: Settings,
                 clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep) -> None:
        self.gpu = gpu
        self.clocks = clocks
        self.runner = runner
        self.kernels = {kernel.name: kernel for kernel in kernels}
        self.settings = settings
        self.clock = clock
        self.sleep = sleep

    def run(self, tasks: Sequence[Task], file: SweepFile, log: Callable[[str], object]) -> set[str]:
        """Measures what `file` does not hold yet. Returns the names of kernels that need too much memory. Raises IoError."""
        left = [task for task in tasks if task.key not in file.done]
        too_large: set[str] = set()
        now = None
        for position, task in enumerate(left, start=1):
            if task.kernel in too_large:
                continue
            if task.pair != now:
                self.clocks.set(task.pair.core_mhz, task.pair.mem_mhz)
                self.sleep(self.settings.settle_s)
                now = task.pair
            try:
                row = self._idle(task) if task.kernel == IDLE else self._kernel(task)
            except KernelDoesNotFit:
                too_large.add(task.kernel)
                log(f"{task.kernel}: does not fit into the GPU's memory, left out; try a smaller --batch")
                continue
            file.write(row)
            log(f"{position}/{len(left)} {task.kernel} core {task.pair.core_mhz} mem {task.pair.mem_mhz}: "
                f"{row['power_w']:.1f} W {row['throttled']}")
        return too_large

    def _kernel(self, task: Task) -> dict[str, Any]:
        kernel = self.kernels[task.kernel]
        self._cool_down()
        self.runner.load(kernel)
        try:
            self.runner.run(self.settings.warm_up_s, lambda: None)
            meter = Meter(self.gpu, self.clock)
            times = self.runner.run(self.settings.window_s, meter.poll)
        finally:
            self.runner.unload()
        time_s = statistics.fmean(times)
        row = self._row(task, meter)
        row.update({"class": kernel.kind}, time_s=time_s, energy_j=row["power_w"] * time_s, flop=_counted(kernel.flop),
                   dram_bytes=_counted(kernel.dram_bytes),
                   time_std_s=statistics.stdev(times) if len(times) > 1 else None)
        return row

    def _idle(self, task: Task) -> dict[str, Any]:
        self.sleep(self.settings.idle_settle_s)
        meter = Meter(self.gpu, self.clock)
        end = self.clock() + self.settings.window_s
        while self.clock() < end:
            meter.poll()
            self.sleep(POLL_S)
        return self._row(task, meter)

    def _row(self, task: Task, meter: Meter) -> dict[str, Any]:
        power_w, source = meter.power()
        if not math.isfinite(power_w) or power_w <= 0:
            raise IoError(f"{self.gpu.name}: power is {power_w} W; expected > 0")
        return {"gpu": self.gpu.name, "kernel": task.kernel,
                "core_mhz": _typical(meter.cores, task.pair.core_mhz), "mem_mhz": self._mem_state(task, meter),
                "power_w": power_w, "core_mhz_requested": task.pair.core_mhz,
                "mem_mhz_requested": task.pair.mem_mhz, "repeat": task.repeat,
                "temperature_c": statistics.fmean(meter.temperatures) if meter.temperatures else None,
                "throttled": "+".join(sorted(meter.throttled)), "power_cap_w": self.gpu.power_cap_w(),
                "power_source": source}

    def _mem_state(self, task: Task, meter: Meter) -> Request:
        """The state that was in force: a request is not always followed."""
        if task.pair.mem_state:
            return task.pair.mem_state
        read_mhz = _typical(meter.mems, task.pair.mem_mhz)
        states = self.gpu.supported_mem_mhz()
        if not states or not isinstance(read_mhz, int):
            return read_mhz
        measured_mhz = read_mhz
        return min(states, key=lambda state: abs(state - measured_mhz))

    def _cool_down(self) -> None:
        end = self.clock() + self.settings.cool_at_most_s
        while (self.gpu.temperature_c() or 0) > self.settings.cool_below_c and self.clock() < end:
            self.sleep(1.0)


def _counted(number: Optional[float]) -> Optional[float]:
    return None if number is None else float(number)


def _typical(readings: Sequence[int], otherwise: Request) -> Request:
    """The middle reading: a clock that was really set, unlike a mean."""
    return statistics.median_low(readings) if readings else otherwise
