"""How long a GPU takes from the request of a clock to its effect, by pair of clocks."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import statistics
import threading
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, ContextManager, Optional, Sequence, Union

from rubato.hardware.backends import NvmlBackend, release
from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.gpu import Gpu
from rubato.hardware.hold import Hold
from rubato.measuring.intervals import quantile

_log = logging.getLogger("rubato")
LOOK_S = 2e-4  #: between two readings of the clock
LONGEST_S = 2.0  #: a change not seen by then counts as refused
SETTLE_S = 0.05  #: at a clock before the next request


@dataclass(frozen=True)
class PairLatency:
    """Repeats of one switch. Seconds from the request until a reading showed the new clock; the call is part of it."""

    clock: str  #: 'core' or 'mem'
    from_mhz: int
    to_mhz: int
    latency_s: tuple[float, ...]
    call_s: tuple[float, ...]  #: of these the driver's call
    unseen: int  #: changes that no reading showed

    @property
    def median_s(self) -> Optional[float]:
        """None where no change was seen."""
        return statistics.median(self.latency_s) if self.latency_s else None

    def quantile_s(self, share: float) -> Optional[float]:
        """Of the repeats seen, 0 <= share <= 1: the least value that at least this share of them does not exceed; None without any."""
        return quantile(self.latency_s, share) if self.latency_s else None

    def __str__(self) -> str:
        text = f"{self.clock} {self.from_mhz:5} -> {self.to_mhz:5} MHz: "
        if self.median_s is None:
            return text + f"never seen in {self.unseen} tries"
        text += (f"median {1e3 * self.median_s:7.2f} ms, 5 to 95 % {1e3 * quantile(self.latency_s, 0.05):.2f} to "
                 f"{1e3 * quantile(self.latency_s, 0.95):.2f}, "
                 f"most {1e3 * max(self.latency_s):.2f}")
        return text + (f", {self.unseen} unseen" if self.unseen else "")


@dataclass(frozen=True)
class LatencyResult:
    """Switches of one GPU; pairs that were never seen are among them."""

    gpu: str
    pairs: tuple[PairLatency, ...]

    def quantile_s(self, clock: str, share: float) -> Optional[float]:
        """Over all pairs and repeats of a clock, as PairLatency.quantile_s; None where none was measured."""
        values = [value for pair in self.pairs if pair.clock == clock for value in pair.latency_s]
        return quantile(values, share) if values else None

    def switching(self) -> dict[str, Any]:
        """The `switching` section of a GPU spec: medians; the source says the spread."""
        section: dict[str, Any] = {"source": ""}
        told = []
        for clock in ("core", "mem"):
            pairs = [pair for pair in self.pairs if pair.clock == clock]
            values = [value for pair in pairs for value in pair.latency_s]
            unseen = sum(pair.unseen for pair in pairs)
            if not values:
                told += [f"{clock}: none of {unseen} changes was seen"] if unseen else []
                continue
            section[f"{clock}_s"] = statistics.median(values)
            told.append(f"{clock}: median of {len(values)} changes over {sum(bool(pair.latency_s) for pair in pairs)} pairs, "
                        f"95 % within {1e3 * quantile(values, 0.95):.3g} ms, at most {1e3 * max(values):.3g} ms")
            if unseen:
                told[-1] += f"; {unseen} more were not seen within {LONGEST_S:g} s and do not count"
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


def measure_latency(core_mhz: Sequence[int] = (), mem_mhz: Sequence[int] = (), *, gpu: int = 0, repeats: int = 10,
                    load: Optional[ContextManager[Any]] = None, guard: bool = True) -> LatencyResult:
    """Sets each ordered pair of the given clocks `repeats` times and watches the clock that NVML reads.

    Without clocks: the lowest, middle and highest core clock, and all memory clocks where there are several and they can be locked. `load` keeps the
    GPU busy meanwhile (an idle one sleeps at clocks of its own); default: matrix products where PyTorch sees CUDA. A reading
    proves the clock no earlier than the driver shows it. Clocks are given back on every exit; where that fails, it is logged and
    the guard goes on trying. Raises IoError, also where another process sets the GPU's clocks, and UsageError also where CUDA's name of the GPU is not known: give `load` then.
    """
    backend = NvmlBackend()
    device = backend.gpu(gpu)
    memories = device.supported_mem_mhz()
    cores = list(core_mhz) or _three(device.supported_core_mhz(memories[0]) if memories else [])
    mems = list(mem_mhz) or (memories if len(memories) > 1 and device.locks_memory() else [])
    if len(cores) < 2 and len(mems) < 2:
        raise UsageError(f"{device.name}: expected two clocks at least", "core_mhz=(900, 1410)")
    hold = Hold(backend, [gpu], guard)
    try:
        with load if load is not None else _busy(device):
            pairs = [_pair(backend, hold, gpu, clock, a, b, repeats) for clock, clocks in (("core", cores), ("mem", mems))
                     for a, b in itertools.permutations(clocks, 2)]
    finally:
        failed = release(backend, [gpu])
        for error in failed:
            _log.error("rubato: clocks may still be locked: %s", error)
        hold.close(not failed)
    return LatencyResult(device.name, tuple(pairs))


def _three(clocks: Sequence[int]) -> list[int]:
    return sorted({min(clocks), sorted(clocks)[len(clocks) // 2], max(clocks)}) if clocks else []


def _pair(backend: NvmlBackend, hold: Hold, gpu: int, clock: str, from_mhz: int, to_mhz: int, repeats: int) -> PairLatency:
    set_clock = backend.set_core if clock == "core" else backend.set_mem
    latencies, calls, unseen = [], [], 0
    for _ in range(repeats):
        hold.check()
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


def cuda_device(torch: Any, gpu: Gpu) -> int:
    """CUDA's number of a GPU of NVML: they count in different orders. Raises UsageError where it cannot be told."""
    count = torch.cuda.device_count()
    for device in range(count):
        uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
        if uuid and uuid == (gpu.uuid[4:] if gpu.uuid.startswith("GPU-") else gpu.uuid):
            return device
    if count == 1 and gpu.nvml.nvmlDeviceGetCount() == 1:
        return 0
    raise UsageError(f"{gpu.name} {gpu.uuid} is none of PyTorch's {count} CUDA devices, or it does not tell their UUIDs",
                     "keep the GPU busy otherwise, and pass load=contextlib.nullcontext()")


@contextlib.contextmanager
def _busy(gpu: Gpu) -> Any:
    try:
        import torch
    except ImportError:
        yield
        return
    if not torch.cuda.is_available():
        yield
        return
    device = cuda_device(torch, gpu)
    over = threading.Event()

    def work() -> None:
        with torch.no_grad():
            a = torch.randn(2048, 2048, device=f"cuda:{device}")
            while not over.is_set():
                a = torch.nn.functional.normalize(a @ a)
                torch.cuda.synchronize(device)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
