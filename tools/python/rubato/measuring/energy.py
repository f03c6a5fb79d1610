"""Energy of any window of a program, without a plan: GPUs, and CPU and DRAM where the system lets it."""

from __future__ import annotations

import os
import time
from typing import Any, Optional, Sequence

from rubato.devices import visible_gpus
from rubato.errors import IoError, RubatoError
from rubato.hardware.backends import NvmlBackend
from rubato.measuring.rapl import Zone, zones
from rubato.measuring.recorder import Recorder, synchronize


class Energy:
    """Measures the block of a `with`. While it runs, and after, its numbers say what was used so far.

        with rubato.energy() as used:
            train()
        print(used, used.energy_j)

    gpus   NVML indices; default: LOCAL_RANK's, else those of CUDA_VISIBLE_DEVICES, else all
    sync   waits for CUDA at both ends where PyTorch is loaded, so that a window holds the work that it queued

    GPUs are counted by the board's energy counter, interpolated between its steps of 20 to 100 ms (before Volta by sampled power): a
    window should last seconds. CPU and DRAM are whole packages, with whatever else runs there. Raises IoError where nothing
    can be measured; what alone cannot is None, and `unknown` says why.
    """

    def __init__(self, gpus: Optional[Sequence[int]] = None, sync: bool = True):
        self.unknown: dict[str, str] = {}  #: 'gpu', 'cpu', 'dram' and why it is not known
        self.time_s = 0.0
        self._sync, self._ended = sync, False
        self._zones = self._open_zones()
        self.gpus: list[int] = []  #: NVML indices of what is measured
        recorded: list[Any] = []
        try:
            backend = NvmlBackend()
            self.gpus = list(gpus) if gpus is not None else visible_gpus(backend)
            recorded = [backend.gpu(index) for index in self.gpus]
        except RubatoError as error:
            if gpus is not None:
                raise
            self.unknown["gpu"] = str(error)
        if not recorded and not self._zones:
            raise IoError(f"no energy can be measured here: {'; '.join(f'{what}: {why}' for what, why in self.unknown.items())}", "see rubato doctor")
        self._recorder = Recorder(recorded, self._zones, keep=False)

    def _open_zones(self) -> list[Zone]:
        found, kept = zones(), []
        for zone in found:
            if os.access(zone.counter, os.R_OK):
                kept.append(zone)
            else:
                self.unknown[zone.kind] = f"{zone.counter} is not for this user"
        for kind in ("cpu", "dram"):
            if all(zone.kind != kind for zone in found):
                self.unknown[kind] = "the kernel has no counter (RAPL)"
        return [zone for zone in kept if zone.kind not in self.unknown]

    def __enter__(self) -> "Energy":
        self._wait()
        self._recorder.look()
        self._begin_s = self._recorder.clock()
        self._recorder.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._wait()
        end_s = self._recorder.clock()
        try:
            self._recorder.wait_for(end_s)
        finally:
            self._recorder.stop()
        self.time_s, self._end_s, self._ended = end_s - self._begin_s, end_s, True

    def _wait(self) -> None:
        if self._sync:
            synchronize()

    def _span(self) -> tuple[float, float]:
        return self._begin_s, self._end_s if self._ended else self._recorder.clock()

    @property
    def gpu_j(self) -> Optional[dict[int, float]]:
        """J by GPU. Raises IoError where a counter does not move."""
        return dict(zip(self.gpus, self._recorder.energies_j(*self._span()))) if self.gpus else None

    def _kind_j(self, kind: str) -> Optional[float]:
        if kind in self.unknown:
            return None
        try:
            return sum(joules for zone, joules in zip(self._zones, self._recorder.zone_energies_j(*self._span())) if zone.kind == kind)
        except IoError:  # on some virtual machines it stands still
            self.unknown[kind] = "its counter does not move"
            return None

    @property
    def cpu_j(self) -> Optional[float]:
        """J of all CPU packages."""
        return self._kind_j("cpu")

    @property
    def dram_j(self) -> Optional[float]:
        """J of the DRAM of all packages."""
        return self._kind_j("dram")

    @property
    def energy_j(self) -> float:
        """J of all that is known."""
        return sum((self.gpu_j or {}).values()) + (self.cpu_j or 0.0) + (self.dram_j or 0.0)

    def as_row(self) -> dict[str, Any]:
        """The numbers by name, for JSON."""
        return {"time_s": self.time_s or self._span()[1] - self._begin_s, "energy_j": self.energy_j, "gpu_j": self.gpu_j, "cpu_j": self.cpu_j,
                "dram_j": self.dram_j, "unknown": self.unknown}

    def __str__(self) -> str:
        row = self.as_row()
        parts = [(f"GPU {gpu}", joules) for gpu, joules in (row["gpu_j"] or {}).items()] or [("GPU", None)]
        parts += [("CPU", row["cpu_j"]), ("DRAM", row["dram_j"])]
        told = [f"{name} {joules:.1f} J ({joules / row['time_s']:.1f} W)" for name, joules in parts if joules is not None]
        lacking = [f"{name} not known" for name, joules in parts if joules is None]
        return f"{row['time_s']:.3f} s: " + ", ".join(told + lacking)


def energy(gpus: Optional[Sequence[int]] = None, sync: bool = True) -> Energy:
    """`with rubato.energy() as used: train()`: energy of the block; see rubato.Energy for what `used` has."""
    return Energy(gpus, sync)
