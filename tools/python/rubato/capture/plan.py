"""What a sweep measures and in which order, before anything is touched."""

from __future__ import annotations

import csv
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.gpu import AUTO, Gpu, Request

IDLE = "idle"


@dataclass(frozen=True)
class Pair:
    """Requested clocks, MHz or AUTO."""

    core_mhz: Request
    mem_mhz: Request
    mem_state: str = ""  #: to write instead of the memory clock that is read back


@dataclass(frozen=True)
class Task:
    """One measurement; `kernel` is a name or IDLE, `repeat` counts from 1."""

    kernel: str
    pair: Pair
    repeat: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifies the row in the file, to resume."""
        return self.kernel, str(self.pair.core_mhz), str(self.pair.mem_mhz), str(self.repeat)


def parse_clocks(option: str, given: str) -> list[int]:
    """'900,1200' or 'FIRST:LAST:STEP' (ends included) in MHz as a list of wishes. Raises UsageError naming `option`."""
    span = re.fullmatch(r"(\d+):(\d+):(\d+)", given)
    if span:
        first, last, step = map(int, span.groups())
        if step == 0 or last < first:
            raise UsageError(f"{option} is '{given}'; expected FIRST <= LAST and STEP > 0")
        return list(range(first, last + 1, step))
    if not re.fullmatch(r"\d+(,\d+)*", given):
        raise UsageError(f"{option} is '{given}'; expected MHz as 900,1200 or FIRST:LAST:STEP")
    return [int(part) for part in given.split(",")]


def spread(clocks: Sequence[int], count: int) -> list[int]:
    """At most `count` of `clocks`, evenly over their positions, both ends included."""
    if count >= len(clocks):
        return list(clocks)
    if count == 1:
        return [clocks[0]]
    return [clocks[round(i * (len(clocks) - 1) / (count - 1))] for i in range(count)]


def nearest(option: str, wish_mhz: int, supported: Sequence[int]) -> int:
    """The supported clock next to a wish that lies in their range, MHz. Raises UsageError naming `option` beyond it."""
    if not supported:
        return wish_mhz
    low, high = min(supported), max(supported)
    if not low <= wish_mhz <= high:
        raise UsageError(f"{option} asks for {wish_mhz} MHz; the GPU has {low} to {high} MHz")
    return min(supported, key=lambda clock: (abs(clock - wish_mhz), clock))


def grid_pairs(gpu: Gpu, core: str = "", mem: str = "", core_count: int = 12) -> list[Pair]:
    """All pairs of the wanted clocks that the GPU supports; by default all memory clocks x core_count; before Ampere,
    where memory clocks cannot be locked, the driver's own.

    Raises UsageError for clocks it does not have, IoError where the driver lists none.
    """
    listed_mhz = gpu.supported_mem_mhz()
    mem_clocks: list[Request] = [*listed_mhz]
    if not mem_clocks:
        raise IoError(f"{gpu.name}: the driver lists no clocks", "clocks of this GPU cannot be set")
    if mem == AUTO or (not mem and not gpu.locks_memory()):
        mem_clocks = [AUTO]
    elif mem:
        mem_clocks = [nearest("--mem", wish, listed_mhz) for wish in parse_clocks("--mem", mem)]
    pairs: list[Pair] = []
    for mem_mhz in mem_clocks:
        core_clocks = gpu.supported_core_mhz(mem_mhz if isinstance(mem_mhz, int) else listed_mhz[0])
        if core:
            # Low memory clocks often allow few core clocks only.
            wishes = [wish for wish in parse_clocks("--core", core)
                      if len(mem_clocks) == 1 or min(core_clocks) <= wish <= max(core_clocks)]
            core_clocks = [nearest("--core", wish, core_clocks) for wish in wishes]
        else:
            core_clocks = spread(core_clocks, core_count)
        pairs += [Pair(core_mhz, mem_mhz) for core_mhz in core_clocks]
    pairs = list(dict.fromkeys(pairs))
    if not pairs:
        raise UsageError(f"--core '{core}' names no clock that the GPU has at these memory clocks")
    return pairs


def unknown_pairs(core: str = "", mem: str = "", core_count: int = 12) -> list[Pair]:
    """Pairs as grid_pairs gives for a GPU that is not here: c01, c02, ... stand for its own core clocks, lowest first."""
    mem_clocks: list[Request] = [*parse_clocks("--mem", mem)] if mem and mem != AUTO else [AUTO]
    core_clocks: list[Request] = [*parse_clocks("--core", core)] if core else [f"c{n:02}" for n in range(1, core_count + 1)]
    return [Pair(core_mhz, mem_mhz) for mem_mhz in mem_clocks for core_mhz in core_clocks]


def file_pairs(path: Union[str, Path], gpu: Optional[Gpu] = None) -> list[Pair]:
    """Pairs from `rubato suggest --csv`: columns mem and core, MHz or 'auto'; rows without clocks are passed over.

    `gpu` checks them against what it supports; None leaves them as they are. Raises IoError, DataError naming the
    line, UsageError for clocks it does not have.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = reader.fieldnames or []
    except OSError as error:
        raise IoError(f"{path}: {error.strerror}") from None
    for column in ("mem", "core"):
        if column not in columns:
            raise DataError(f"{path}:1: no column '{column}'; found {', '.join(columns) or 'nothing'}",
                            "write the file with: rubato suggest TRACE --csv > pairs.csv")
    pairs = []
    for line, row in enumerate(rows, start=2):
        if not row["mem"] and not row["core"]:
            continue
        mem_mhz = _clock(path, line, "mem", row["mem"])
        core_mhz = _clock(path, line, "core", row["core"])
        if gpu:
            where = f"{path}:{line}"
            mem_clocks = gpu.supported_mem_mhz()
            if isinstance(mem_mhz, int):
                mem_mhz = nearest(where, mem_mhz, mem_clocks)
            if isinstance(core_mhz, int):
                at = mem_mhz if isinstance(mem_mhz, int) else (mem_clocks[0] if mem_clocks else 0)
                core_mhz = nearest(where, core_mhz, gpu.supported_core_mhz(at) if at else [])
        pairs.append(Pair(core_mhz, mem_mhz, AUTO if mem_mhz == AUTO else ""))
    if not pairs:
        raise DataError(f"{path}: no row has clocks")
    return list(dict.fromkeys(pairs))


def _clock(path: Union[str, Path], line: int, column: str, cell: str) -> Request:
    if cell == AUTO:
        return AUTO
    try:
        value = float(cell)
        if value > 0 and value == round(value):
            return int(value)
    except (TypeError, ValueError):
        pass
    raise DataError(f"{path}:{line}: {column} is '{cell}'; expected whole MHz > 0 or 'auto'")


def idle_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """For each memory clock the lowest and the highest core clock in the plan."""
    chosen: list[Pair] = []
    for mem_mhz in dict.fromkeys(pair.mem_mhz for pair in pairs):
        cores: list[Any] = sorted(p.core_mhz for p in pairs if p.mem_mhz == mem_mhz and p.core_mhz != AUTO)
        wanted: set[Request] = {*cores[:1], *cores[-1:]} or {AUTO}
        chosen += [p for p in pairs if p.mem_mhz == mem_mhz and p.core_mhz in wanted]
    return chosen


def tasks(kernels: Sequence[str], pairs: Sequence[Pair], repeats: int, seed: int) -> list[Task]:
    """All measurements in the order they run: shuffled pairs, and within each shuffled kernels, idle first.

    The same arguments give the same order, so that a resumed sweep goes on where it was.
    """
    rng = random.Random(seed)
    idle = set(idle_pairs(pairs))
    order: list[Task] = []
    for repeat in range(1, repeats + 1):
        for pair in rng.sample(pairs, len(pairs)):
            if pair in idle:
                order.append(Task(IDLE, pair, repeat))
            order += [Task(name, pair, repeat) for name in rng.sample(kernels, len(kernels))]
    return order
