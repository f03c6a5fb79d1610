"""Runs kernels with PyTorch on CUDA and times them with events."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Optional

from rubato.capture.kernels import Call, Kernel
from rubato.errors import IoError

BATCH_S = 0.02     # a batch of launches lasts about this long between two events
POLL_S = 0.002     # pause between two readings
GRAPH_LAUNCHES = 2000  # most launches in one graph


class KernelDoesNotFit(Exception):
    """The operands need more memory than the GPU has."""


def load_torch(gpu_uuid: str) -> Any:
    """PyTorch that sees only the GPU with this UUID. Raises IoError where there is none."""
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu_uuid
    try:
        import torch
    except ImportError:
        raise IoError("python module torch is not installed", "see https://pytorch.org; pip install torch") from None
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise IoError(f"PyTorch is {torch.__version__}; expected 2.0 or later", "pip install --upgrade torch")
    if not torch.cuda.is_available():
        raise IoError("PyTorch sees no GPU", "was it built for CUDA, and does the driver fit its version?")
    return torch


class TorchRunner:
    """Keeps the GPU busy with one kernel at a time."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.replay: Optional[Call] = None
        self.launches = 1  # in one replay

    def load(self, kernel: Kernel) -> None:
        """Allocates the operands and captures as many launches as last BATCH_S. Raises KernelDoesNotFit."""
        try:
            call = kernel.build(self.torch, "cuda")
            self.replay, self.launches = call, 1
            self._seconds(3)  # the first calls choose algorithms
            count = max(1, min(GRAPH_LAUNCHES, round(BATCH_S / max(self._seconds(5), 1e-6))))
            self.replay = self._graph(call, count) if kernel.capturable else self._loop(call, count)
            self.launches = count
        except self.torch.cuda.OutOfMemoryError:
            self.unload()
            raise KernelDoesNotFit(kernel.name) from None

    def unload(self) -> None:
        """Frees the operands."""
        self.replay = None
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()

    def run(self, seconds: float, poll: Callable[[], object]) -> list[float]:
        """Launches for at least `seconds` without a gap, calling poll() meanwhile.

        Returns the time of one launch in seconds, once per batch.
        """
        replay = self._loaded()
        events = [self._mark()]
        replay()
        events.append(self._mark())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            replay()  # one batch ahead, so that the GPU never waits for the host
            events.append(self._mark())
            while not events[-2].query():
                poll()
                time.sleep(POLL_S)
        self.torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e-3 / self.launches for a, b in zip(events, events[1:])]  # from ms

    def _loaded(self) -> Call:
        if self.replay is None:
            raise RuntimeError("no kernel is loaded")
        return self.replay

    def _mark(self) -> Any:
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _seconds(self, count: int) -> float:
        replay = self._loaded()
        begin = self._mark()
        for _ in range(count):
            replay()
        end = self._mark()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / count

    def _graph(self, call: Call, count: int) -> Call:
        graph = self.torch.cuda.CUDAGraph()
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            call()
        self.torch.cuda.current_stream().wait_stream(stream)
        with self.torch.cuda.graph(graph):
            for _ in range(count):
                call()
        return graph.replay

    @staticmethod
    def _loop(call: Call, count: int) -> Call:
        def replay() -> None:
            for _ in range(count):
                call()

        return replay
