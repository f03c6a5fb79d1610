"""How long a GPU takes from the request of a clock to its effect, by pair of clocks."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import statistics
import threading
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, ContextManager, Optional, Sequence, Union

from rubato.backends import NvmlBackend, release
from rubato.errors import DataError, IoError, UsageError
from rubato.guard import Guard

LOOK_S = 2e-4  #: between two readings of the clock
LONGEST_S = 2.0  #: a change not seen by then counts as refused
SETTLE_S = 0.05  #: at a clock before the next request


@dataclass(frozen=True)
class PairLatency:
    """Repeats of one change of clock. Seconds from the request until a reading showed the new clock; the call is part of it."""

    clock: str  #: 'core' or 'mem'
    from_mhz: int
    to_mhz: int
    latency_s: tuple[float, ...]
    call_s: tuple[float, ...]  #: of these the driver's call
    unseen: int  #: changes that no reading showed

    @property
    def median_s(self) -> float:
        return statistics.median(self.latency_s)

    def quantile_s(self, share: float) -> float:
        """Of the repeats, 0 <= share <= 1: the least value that at least this share of them does not exceed."""
        return _quantile(self.latency_s, share)


@dataclass(frozen=True)
class LatencyResult:
    """Changes of clock of one GPU."""

    gpu: str
    pairs: tuple[PairLatency, ...]

    def quantile_s(self, clock: str, share: float) -> Optional[float]:
        """Over all pairs and repeats of a clock, as PairLatency.quantile_s; None where none was measured."""
        values = [value for pair in self.pairs if pair.clock == clock for value in pair.latency_s]
        return _quantile(values, share) if values else None

    def switching(self) -> dict[str, Any]:
        """The `switching` section of a GPU spec: medians; the source says the spread."""
        section: dict[str, Any] = {"source": ""}
        told = []
        for clock in ("core", "mem"):
            values = [value for pair in self.pairs if pair.clock == clock for value in pair.latency_s]
            if not values:
                continue
            section[f"{clock}_s"] = statistics.median(values)
            pairs = [pair for pair in self.pairs if pair.clock == clock]
            told.append(f"{clock}: median of {sum(len(pair.latency_s) for pair in pairs)} changes over {len(pairs)} pairs, "
                        f"95 % within {1e3 * self.quantile_s(clock, 0.95):.3g} ms, at most {1e3 * self.quantile_s(clock, 1.0):.3g} ms")
        section["source"] = f"rubato.measure_latency on {self.gpu}, {date.today()}; {'; '.join(told) or 'nothing measured'}"
        return section

    def write_spec(self, spec: Union[str, Path], output: Union[str, Path]) -> None:
        """Copies a GPU spec (JSON) with this `switching` section. Raises IoError, DataError."""
        try:
            document = json.loads(Path(spec).read_text(encoding="utf-8"))
        except OSError as error:
            raise IoError(f"{spec}: {error.strerror}") from None
        except ValueError as error:
            raise DataError(f"{spec}: is not JSON: {error}") from None
        if not isinstance(document, dict) or "core_clocks" not in document:
            raise DataError(f"{spec}: is no GPU spec", "rubato gpus NAME prints a shipped one")
        document["switching"] = self.switching()
        Path(output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def to_json(self) -> str:
        return json.dumps({"gpu": self.gpu, "switching": self.switching(), "pairs": [asdict(pair) for pair in self.pairs]}, indent=1)


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def measure_latency(core_mhz: Sequence[int] = (), mem_mhz: Sequence[int] = (), *, gpu: int = 0, repeats: int = 10,
                    load: Optional[ContextManager[Any]] = None, guard: bool = True) -> LatencyResult:
    """Sets each ordered pair of the given clocks `repeats` times and watches the clock that NVML reads.

    Without clocks: the lowest, middle and highest core clock, and all memory clocks where there are several. `load` keeps the
    GPU busy meanwhile (an idle one sleeps at clocks of its own); default: matrix products where PyTorch sees CUDA. A reading
    proves the clock no earlier than the driver shows it. Clocks are given back on every exit. Raises IoError, UsageError.
    """
    backend = NvmlBackend()
    device = backend.gpu(gpu)
    memories = device.supported_mem_mhz()
    cores = list(core_mhz) or _three(device.supported_core_mhz(memories[0]) if memories else [])
    mems = list(mem_mhz) or (memories if len(memories) > 1 else [])
    if len(cores) < 2 and len(mems) < 2:
        raise UsageError(f"{device.name}: expected two clocks at least", "core_mhz=(900, 1410)")
    watcher = Guard(backend, [gpu]) if guard else None
    try:
        with load if load is not None else _busy(gpu):
            pairs = [_pair(backend, gpu, clock, a, b, repeats) for clock, clocks in (("core", cores), ("mem", mems))
                     for a, b in itertools.permutations(clocks, 2)]
    finally:
        release(backend, [gpu])
        if watcher:
            watcher.close()
    return LatencyResult(device.name, tuple(pair for pair in pairs if pair.latency_s))


def _three(clocks: Sequence[int]) -> list[int]:
    return sorted({min(clocks), sorted(clocks)[len(clocks) // 2], max(clocks)}) if clocks else []


def _pair(backend: NvmlBackend, gpu: int, clock: str, from_mhz: int, to_mhz: int, repeats: int) -> PairLatency:
    set_clock = backend.set_core if clock == "core" else backend.set_mem
    latencies, calls, unseen = [], [], 0
    for _ in range(repeats):
        set_clock(gpu, from_mhz)
        if _wait(backend, gpu, clock, from_mhz) is None:
            unseen += 1
            continue
        time.sleep(SETTLE_S)
        begin_s = time.perf_counter()
        set_clock(gpu, to_mhz)
        called_s = time.perf_counter()
        end_s = _wait(backend, gpu, clock, to_mhz)
        if end_s is None:
            unseen += 1
            continue
        calls.append(called_s - begin_s)
        latencies.append(end_s - begin_s)
    return PairLatency(clock, from_mhz, to_mhz, tuple(latencies), tuple(calls), unseen)


def _wait(backend: NvmlBackend, gpu: int, clock: str, mhz: int) -> Optional[float]:
    """When the clock was read as `mhz`; None after LONGEST_S."""
    end_s = time.perf_counter() + LONGEST_S
    while (now_s := time.perf_counter()) < end_s:
        if backend.read(gpu)[0 if clock == "core" else 1] == mhz:
            return now_s
        time.sleep(LOOK_S)
    return None


@contextlib.contextmanager
def _busy(gpu: int) -> Any:
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        yield
        return
    over = threading.Event()

    def work() -> None:
        with torch.no_grad():
            a = torch.randn(2048, 2048, device="cuda")
            while not over.is_set():
                a = torch.nn.functional.normalize(a @ a)
                torch.cuda.synchronize()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
