"""Time and energy of the passes of pipeline stages over clocks, stage after stage on one GPU, and power while it waits."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from rubato.errors import DataError, IoError, UsageError
from rubato.capture.gpt import random_tokens, stage_module
from rubato.capture.kernels import Build, Call, Kernel, Shape

WAITING = "waiting"
PASSES = ("forward", "backward", "optimizer")
SPIN_CYCLES = 2_000_000  # about a millisecond between two launches


def pass_name(stage: int, instruction: str) -> str:
    """The name of a pass in the file of single measurements."""
    return f"stage {stage} {instruction}"


@dataclass(frozen=True)
class StagePasses:
    """Makes the passes of a GPT's stages as the sweep measures kernels: build(torch, device) returns the call."""

    shape: Shape  #: of one microbatch
    stages: int

    def __post_init__(self) -> None:
        if not 1 <= self.stages <= self.shape.layers:
            raise UsageError(f"--stages is {self.stages} for {self.shape.layers} layers; expected 1 to {self.shape.layers}")

    def kernels(self) -> list[Kernel]:
        """All passes, stage by stage, and what a GPU does that waits for another."""
        passes = [Kernel(pass_name(stage, instruction), None, None, self._builder(stage, instruction), capturable=False)
                  for stage in range(self.stages) for instruction in PASSES]
        return [*passes, Kernel(WAITING, None, None, _spin, capturable=False)]

    def _builder(self, stage: int, instruction: str) -> Build:
        make = {"forward": self._forward, "backward": self._backward, "optimizer": self._optimizer}[instruction]
        return lambda torch, device: make(torch, device, stage)

    def _module_and_inputs(self, torch: Any, device: str, stage: int) -> tuple[Any, tuple[Any, ...]]:
        module = stage_module(torch, self.shape, self.stages, stage, device)
        if stage == 0:
            x = random_tokens(torch, self.shape, device)
        else:
            x = torch.randn((self.shape.batch, self.shape.sequence, self.shape.channels), device=device,
                            dtype=torch.bfloat16, requires_grad=True)
        last = stage + 1 == self.stages
        return module, (x, random_tokens(torch, self.shape, device)) if last else (x,)

    def _forward(self, torch: Any, device: str, stage: int) -> Call:
        """With gradients on: what a backward pass needs is kept until the pass is over."""
        module, inputs = self._module_and_inputs(torch, device, stage)
        return lambda: module(*inputs)

    def _backward(self, torch: Any, device: str, stage: int) -> Call:
        """One forward pass, whose gradients are computed again and again and added up, as over microbatches."""
        module, inputs = self._module_and_inputs(torch, device, stage)
        output = module(*inputs)
        gradient = torch.ones_like(output)
        return lambda: torch.autograd.backward(output, gradient, retain_graph=True)

    def _optimizer(self, torch: Any, device: str, stage: int) -> Call:
        module = stage_module(torch, self.shape, self.stages, stage, device)
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        return torch.optim.AdamW(module.parameters(), lr=1e-4, fused=str(device).startswith("cuda")).step


def _spin(torch: Any, device: str) -> Call:
    """One thread that polls, as a receiving kernel does until data come."""
    return lambda: torch.cuda._sleep(SPIN_CYCLES)


def measurements_of(output: Union[str, Path]) -> Path:
    """The file of single measurements beside a profile."""
    path = Path(output)
    return path.with_name(path.stem + ".measured.csv")


def run_of(output: Union[str, Path]) -> Path:
    """The file that says which stages of which model were measured."""
    path = Path(output)
    return path.with_name(path.stem + ".run.txt")


def text_of(passes: StagePasses) -> str:
    """What run_of holds."""
    return f"{passes.stages} stages, {passes.shape}\n"


def check_run(output: Union[str, Path], passes: StagePasses, resume: bool) -> None:
    """Raises UsageError where another run's measurements would be mixed with these, or a profile lost."""
    note, measured = run_of(output), measurements_of(output)
    if not resume:
        if Path(output).exists():
            raise UsageError(f"{output} is there already", "--resume adds what is missing; or choose another name")
    elif measured.exists():
        before = note.read_text(encoding="utf-8") if note.exists() else "nothing says what"
        if before != text_of(passes):
            raise UsageError(f"{measured}: measured is {before.strip()}; asked for is {text_of(passes).strip()}",
                             "--resume needs the same stages and shape; or choose another name")


def note_run(output: Union[str, Path], passes: StagePasses) -> None:
    """Writes run_of, unless something is measured already. Raises IoError."""
    if measurements_of(output).exists():
        return
    try:
        run_of(output).write_text(text_of(passes), encoding="utf-8")
    except OSError as error:
        raise IoError(f"{run_of(output)}: {error.strerror}") from None


@dataclass(frozen=True)
class StageProfile:
    """What `rubato explore` reads of stages, and power while waiting, W: median, least and most over the clocks."""

    rows: list[tuple[int, str, int, float, float]]  #: stage, instruction, core clock as asked for in MHz, s, J
    blocked_w: float
    blocked_range_w: tuple[float, float]
    throttled: list[str]  #: names of passes and clocks where the GPU was held back


def profile_of(path: Union[str, Path], stages: int) -> StageProfile:
    """Medians over the repeats of a file of measurements. Raises DataError where a pass or waiting is missing."""
    samples: dict[tuple[str, int], list[tuple[float, float]]] = {}
    waiting: dict[str, list[float]] = {}
    throttled: list[str] = []
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise IoError(f"{path}: {error.strerror}") from None
    for row in csv.DictReader(io.StringIO(text, newline="")):
        mhz, name = row["core_mhz_requested"], row["kernel"]
        if name == WAITING:
            waiting.setdefault(mhz, []).append(float(row["power_w"]))
        elif row["time_s"]:
            samples.setdefault((name, int(mhz)), []).append((float(row["time_s"]), float(row["energy_j"])))
            if row["throttled"]:
                throttled.append(f"{name} at {mhz} MHz")
    clocks = sorted({mhz for _, mhz in samples}, reverse=True)
    rows = []
    for stage in range(stages):
        for instruction in PASSES:
            for mhz in clocks:
                found = samples.get((pass_name(stage, instruction), mhz))
                if not found:
                    raise DataError(f"{path}: no measurement of {pass_name(stage, instruction)} at {mhz} MHz",
                                    "measure what is missing with --resume; what needs too much memory, with a smaller --batch")
                times, energies = zip(*found)
                rows.append((stage, instruction, mhz, statistics.median(times), statistics.median(energies)))
    if not rows or not waiting:
        raise DataError(f"{path}: {'nothing is measured of a GPU that waits' if rows else 'there is no measurement'}")
    powers = [statistics.median(values) for values in waiting.values()]
    return StageProfile(rows, statistics.median(powers), (min(powers), max(powers)), list(dict.fromkeys(throttled)))


def write_profile(profile: StageProfile, path: Union[str, Path]) -> None:
    """The columns of Zeus: stage, instruction, frequency (MHz), time (s), energy (J of one GPU). Raises IoError."""
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("stage", "instruction", "frequency", "time", "energy"))
            writer.writerows((*row[:3], repr(row[3]), repr(row[4])) for row in profile.rows)
    except OSError as error:
        raise IoError(f"{path}: {error.strerror}") from None
