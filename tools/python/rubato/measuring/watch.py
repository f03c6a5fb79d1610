"""rubato watch: clocks and power of GPUs, who plays which plan on them, and what it has saved so far; on a terminal or for Prometheus.

Needs no rights, and nothing from the training but the file of the GPU's lock, in which a plan that begins writes its promise and the
energy counter. Saved and lost are that promise on what was measured since: where a plan changes energy by c, E joules would
have been E / (1 + c) at the default clocks. `rubato measure` measures it.
"""

from __future__ import annotations

import contextlib
import http.server
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Sequence

from rubato.errors import IoError, RubatoError
from rubato.hardware.backends import NvmlBackend
from rubato.hardware.gpu import Gpu
from rubato.hardware.lock import record_of

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: name, type, help, value: those of NVIDIA's DCGM exporter where it has them, then ours. DCGM counts energy in mJ.
METRICS: tuple[tuple[str, str, str, Callable[["Reading"], Optional[float]]], ...] = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock in MHz.", lambda one: one.core_mhz),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock in MHz.", lambda one: one.mem_mhz),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature in degrees C.", lambda one: one.temperature_c),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power in W.", lambda one: one.power_w),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "unknown", "Energy since the driver was loaded in mJ.",
     lambda one: None if one.energy_j is None else 1e3 * one.energy_j),
    ("rubato_plan_seconds", "gauge", "Time since the plan began.", lambda one: one.played_s),
    ("rubato_plan_joules", "gauge", "Energy since the plan began.", lambda one: one.played_j),
    ("rubato_energy_saved_joules", "gauge", "Energy saved since the plan began, by its promise.", lambda one: one.saved_j[0] if one.saved_j else None),
    ("rubato_time_lost_seconds", "gauge", "Time lost since the plan began, by its promise.", lambda one: one.lost_s[0] if one.lost_s else None),
)

Interval = tuple[float, float, float]  #: middle, low, high


@dataclass(frozen=True)
class Reading:
    """One GPU at a moment; None is not known, or no plan is applied."""

    index: int
    name: str
    uuid: str
    core_mhz: Optional[int]
    mem_mhz: Optional[int]
    power_w: Optional[float]
    temperature_c: Optional[float]
    energy_j: Optional[float]
    throttled: tuple[str, ...]
    holder: str = ""  #: process that sets its clocks
    plan: str = ""
    granularity: str = ""
    played_s: Optional[float] = None
    played_j: Optional[float] = None
    saved_j: Optional[Interval] = None
    lost_s: Optional[Interval] = None


def read(gpu: Gpu, index: int, now_s: Optional[float] = None) -> Reading:
    """Reads a GPU and the plan applied to it. Raises IoError where it does not answer."""
    energy_j, record = gpu.energy_j(), record_of(gpu.uuid)
    plan = record.get("plan")
    told: dict[str, Any] = {"holder": f"process {record.get('pid')}" if record else ""}
    if isinstance(plan, dict):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # a file that anybody could have written
            told.update(plan=str(plan["file"]), granularity=str(plan["granularity"]))
            told["played_s"] = played_s = max((time.time() if now_s is None else now_s) - float(plan["begun_s"]), 0.0)
            told["lost_s"] = _by_promise(played_s, plan["time_change_pct"])
            if energy_j is not None:
                told["played_j"] = played_j = energy_j - float(plan["begun_j"])
                told["saved_j"] = _by_promise(-played_j, plan["energy_change_pct"])
    return Reading(index, gpu.name, gpu.uuid, gpu.core_mhz(), gpu.mem_mhz(), gpu.power_w(), gpu.temperature_c(), energy_j,
                   tuple(sorted(gpu.throttle_reasons())), **told)


def _by_promise(amount: float, change_pct: Sequence[Optional[float]]) -> Optional[Interval]:
    """What part of `amount` the plan has added: amount - amount / (1 + change), least first; the middle alone where it has no interval."""
    known = [0.01 * float(change) for change in change_pct if change is not None]
    middle, *ends = [amount - amount / (1 + change) for change in known]
    return middle, min(ends, default=middle), max(ends, default=middle)


def line(one: Reading) -> str:
    """As the terminal shows it."""
    def number(value: Optional[float], unit: str, digits: int = 0) -> str:
        return f"{value:.{digits}f} {unit}" if value is not None else f"? {unit}"

    parts = [f"GPU {one.index} {one.name}", f"core {number(one.core_mhz, 'MHz')}", f"memory {number(one.mem_mhz, 'MHz')}", number(one.power_w, "W", 1),
             number(one.temperature_c, "C")]
    if one.throttled:
        parts.append("held down by " + ", ".join(one.throttled))
    if one.plan and one.played_s is not None:
        text = f"{one.plan} per {one.granularity} for {one.played_s:.0f} s"
        if one.saved_j:
            text += f": saved {_span(one.saved_j, 1e-3, 'kJ')}"
        if one.lost_s:
            text += f", lost {_span(one.lost_s, 1, 's')}"
        parts.append(text + ", by its promise")
    else:
        parts.append(f"clocks set by {one.holder}" if one.holder else "no plan")
    return " | ".join(parts)


def _span(values: Interval, scale: float, unit: str) -> str:
    middle, low, high = (f"{scale * value:.2f}" for value in values)
    return f"{middle} {unit}" + (f" ({low} to {high})" if low != high else "")


def openmetrics(readings: Sequence[Reading]) -> str:
    """The readings as OpenMetrics 1.0 text (https://prometheus.io/docs/specs/om/open_metrics_spec/, read 2026-11-27)."""
    lines = []
    for name, kind, told, value in METRICS:
        found = [(one, number) for one in readings if (number := value(one)) is not None]
        if found:
            lines += [f"# TYPE {name} {kind}", f"# HELP {name} {told}"]
            lines += [f"{name}{{{_labels(one)}}} {number:.10g}" for one, number in found]
    return "\n".join([*lines, "# EOF", ""])


def _labels(one: Reading) -> str:
    named = {"gpu": str(one.index), "UUID": one.uuid, "modelName": one.name, **({"plan": one.plan, "granularity": one.granularity} if one.plan else {})}
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, value in named.items()}
    return ",".join(f'{key}="{value}"' for key, value in escaped.items())


class Watch:
    """Reads GPUs again and again. Raises IoError without a driver, UsageError for a GPU that is not there."""

    def __init__(self, gpus: Optional[Sequence[int]] = None):
        backend = NvmlBackend()
        indices = range(backend.nvml.nvmlDeviceGetCount()) if gpus is None else gpus
        self._gpus = [(index, backend.gpu(index)) for index in indices]

    def readings(self) -> list[Reading]:
        """One of each GPU that answers."""
        found = []
        for index, gpu in self._gpus:
            with contextlib.suppress(RubatoError):
                found.append(read(gpu, index))
        return found

    def show(self, interval_s: float, once: bool) -> None:
        """Lines on standard output; on a terminal they are written over the ones before."""
        up = ""
        while True:
            lines = [line(one) for one in self.readings()] or ["no GPU answers"]
            print(up + "\n".join(("\x1b[2K" if sys.stdout.isatty() else "") + one for one in lines), flush=True)
            if once:
                return
            up = f"\x1b[{len(lines)}A" if sys.stdout.isatty() else ""
            time.sleep(interval_s)

    @contextlib.contextmanager
    def server(self, port: int) -> Iterator[http.server.ThreadingHTTPServer]:
        """GET /metrics on the loopback; port 0 takes a free one. Raises IoError where the port is taken."""
        watch = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = self.path in ("/", "/metrics")
                body = (openmetrics(watch.readings()) if is_known else "see /metrics\n").encode()
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", CONTENT_TYPE if is_known else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise IoError(f"port {port} of 127.0.0.1: {error.strerror}", "--port 0 takes a free one") from None
        with server:
            yield server
