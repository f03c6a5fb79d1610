"""Profiles a GPT training step and logs the power meanwhile. Never sets a clock."""

from __future__ import annotations

import csv
import threading
import time
from pathlib import Path
from typing import Any, Callable, Optional, Union

from rubato.errors import IoError, UsageError
from rubato.capture.gpt import random_tokens, stage_module
from rubato.capture.kernels import Shape
from rubato.hardware.gpu import Gpu

LOG_COLUMNS = ("timestamp_s", "power_w", "power_instant_w", "energy_j", "core_mhz", "mem_mhz", "temperature_c", "throttled")
TAIL_S = 0.75  #: logged after the last step: a mean over 1 s is that of half a second ago
LAST_READINGS_S = 0.25  #: logged before the profiler ends, which keeps Python from going on for a second or two
LATE_PERIODS = 2.0  #: readings that took longer than this cannot be dated: Python was kept from going on


def build_step(torch: Any, shape: Shape, device: str = "cuda") -> Callable[[], Any]:
    """A call that runs forward, backward and AdamW of a GPT with bf16 weights on random tokens."""
    model = stage_module(torch, shape, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=str(device).startswith("cuda"))
    tokens, targets = (random_tokens(torch, shape, device) for _ in range(2))

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.profiler.record_function("forward"):
            loss = model(tokens, targets)
        with torch.profiler.record_function("backward"):
            loss.backward()
        with torch.profiler.record_function("optimizer"):
            optimizer.step()
        return loss

    return step


class PowerLog:
    """A thread that writes one line of readings per `period_s` seconds while the `with` lasts; `clock` gives s since 1970.

    Raises IoError where the file cannot be written or the GPU does not answer.
    """

    def __init__(self, gpu: Gpu, path: Union[str, Path], period_s: float = 0.02, clock: Callable[[], float] = time.time) -> None:
        self.gpu = gpu
        self.path = path
        self.period_s = period_s
        self.clock = clock
        self.stop = threading.Event()
        self.error: Optional[Exception] = None

    def __enter__(self) -> PowerLog:
        try:
            self.file = open(self.path, "w", newline="", encoding="utf-8")
        except OSError as error:
            raise IoError(f"{self.path}: {error.strerror}") from None
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(LOG_COLUMNS)
        self.thread = threading.Thread(target=self._log, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.stop.set()
        self.thread.join()
        self.file.close()
        if self.error and kind is None:
            raise self.error

    def _log(self) -> None:
        try:
            while not self.stop.is_set():
                begun_s, line = self.clock(), self._line()
                if self.clock() - begun_s <= LATE_PERIODS * self.period_s:
                    self.writer.writerow(line)
                self.stop.wait(self.period_s)
        except Exception as error:  # handed to the main thread
            self.error = error

    def _line(self) -> list[Any]:
        values = (self.gpu.power_w(), self.gpu.power_instant_w(), self.gpu.energy_j(), self.gpu.core_mhz(), self.gpu.mem_mhz(),
                  self.gpu.temperature_c(), "+".join(sorted(self.gpu.throttle_reasons())))
        return [f"{self.clock():.6f}", *("" if value is None else value for value in values)]


def record(torch: Any, gpu: Gpu, shape: Shape, stem: str, warm_up_steps: int = 3, steps: int = 2) -> tuple[Path, Path]:
    """Writes STEM.json.gz (Kineto, `steps` training steps) and STEM.power.csv (the same span, its warm-up, and TAIL_S after it).

    Returns both paths. Raises IoError where the step does not fit or a file cannot be written.
    """
    if steps < 1 or warm_up_steps < 0:
        raise UsageError("expected --steps >= 1 and --warm-up-steps >= 0")
    trace, power = Path(f"{stem}.json.gz"), Path(f"{stem}.power.csv")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    try:
        step = build_step(torch, shape)
        with PowerLog(gpu, power):
            for _ in range(warm_up_steps):
                step()
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
                for _ in range(steps):
                    step()
                torch.cuda.synchronize()
                time.sleep(LAST_READINGS_S)
            time.sleep(TAIL_S)
    except torch.cuda.OutOfMemoryError:
        raise IoError(f"{gpu.name}: the training step needs more memory than there is",
                      "try a smaller --batch or fewer --layers") from None
    profile.export_chrome_trace(str(trace))
    return trace, power
