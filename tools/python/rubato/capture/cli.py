"""The command line: capture sweep | stages | trace | kernels | restore."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, TextIO, TypeVar

from rubato.capture import plan, stages, sweep, trace
from rubato.errors import RubatoError, IoError, Terminated, UsageError
from rubato.examples import add_examples
from rubato.hardware.backends import NvmlBackend
from rubato.hardware.gpu import AUTO, Clocks, Gpu, load_nvml, signals_raise
from rubato.capture.kernels import Kernel, Shape, choose, gpt_kernels
from rubato.capture.runner import TorchRunner, load_torch
from rubato.hardware.hold import Hold
from rubato.hardware.nvml import Nvml

Number = TypeVar("Number", int, float)


def positive(kind: Callable[[str], Number]) -> Callable[[str], Number]:
    """A reader of numbers > 0 for argparse."""

    def parse(given: str) -> Number:
        value = kind(given)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"is {given}; expected > 0")
        return value

    return parse


def add_shape(command: argparse.ArgumentParser, batch: int) -> None:
    """Options for each field of Shape; `batch` is the default one."""
    defaults, group = Shape(batch=batch), command.add_argument_group("model")
    for name, value in vars(defaults).items():
        group.add_argument(f"--{name}", type=positive(int), default=value, help=f"of the GPT model [{value}]")


def add_effort(command: argparse.ArgumentParser) -> None:
    """Options of what is measured over clocks."""
    group = command.add_argument_group("measurements")
    group.add_argument("--dry-run", action="store_true", help="print the plan and touch nothing")
    group.add_argument("--resume", action="store_true", help="add what is missing in a file that is there")
    group.add_argument("--core", default="", metavar="MHZ", help="900,1200 or FIRST:LAST:STEP")
    group.add_argument("--core-count", type=positive(int), default=12,
                         help="without --core: so many core clocks at each memory clock [12]")
    group.add_argument("--repeats", type=positive(int), default=3, help="[3]")
    group.add_argument("--warm-up", type=positive(float), default=0.5, metavar="S", help="[0.5]")
    group.add_argument("--window", type=positive(float), default=2.0, metavar="S",
                         help="measured time of each; under 1 s the energy counter is coarse [2]")
    group.add_argument("--cool-below", type=positive(float), default=80.0, metavar="C",
                         help="wait up to 2 minutes before each [80]")
    group.add_argument("--seed", type=int, default=1, help="of the order [1]")
    group.add_argument("--shared-gpu", action="store_true", help="measure although others compute on the GPU")
    group.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")


def shape_of(options: argparse.Namespace) -> Shape:
    """Raises UsageError where heads do not divide channels."""
    shape = Shape(**{name: getattr(options, name) for name in Shape.__dataclass_fields__})
    if shape.channels % shape.heads:
        raise UsageError(f"--channels {shape.channels} is no multiple of --heads {shape.heads}")
    return shape


EXAMPLES = {
    "sweep": ("sudo -E rubato capture sweep -o sweep.csv --core-count 8", "sudo -E rubato capture sweep -o sweep.csv --pairs pairs.csv",
              "rubato capture sweep -o sweep.csv --dry-run"),
    "stages": ("sudo -E rubato capture stages -o stages.csv --stages 4", "rubato capture stages -o stages.csv --stages 4 --dry-run",
               "rubato explore stages.csv --microbatches 8"),
    "trace": ("rubato capture trace -o gpt3-xl --batch 8", "rubato capture trace -o gpt3-xl --steps 4 --gpu 1", "rubato capture trace -o gpt3-xl --dry-run"),
    "kernels": ("rubato capture kernels", "rubato capture kernels --batch 8", "rubato capture kernels --layers 48"),
    "restore": ("sudo rubato capture restore", "sudo rubato capture restore --gpu 3", "rubato doctor"),
}


def build_parser() -> argparse.ArgumentParser:
    """Each command sets `run`, which takes the parsed options and a World and returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"{os.environ.get('RUBATO_CALLED_AS', '')} capture".strip(), description="Record clock sweeps and traces for rubato",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join(["Examples", *(f"  {EXAMPLES[name][0]}" for name in ("sweep", "trace", "restore"))]))
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("sweep", help="time and energy of kernels over clocks (needs rights)")
    command.set_defaults(run=run_sweep)
    command.add_argument("-o", "--output", required=True, metavar="CSV", help="read by rubato calibrate")
    command.add_argument("--mem", default="", metavar="MHZ", help="as --core, or 'auto' to leave memory alone [all]")
    command.add_argument("--pairs", metavar="CSV", help="clocks from rubato suggest --csv")
    command.add_argument("--default-clocks", action="store_true", help="measure without locked clocks too")
    command.add_argument("--kernels", default="", metavar="NAMES", help="shell patterns, comma-separated [all]")
    add_effort(command)
    add_shape(command, batch=40)

    command = commands.add_parser("stages", help="time and energy of pipeline stages over clocks (needs rights)")
    command.set_defaults(run=run_stages, pairs=None, default_clocks=False)
    command.add_argument("-o", "--output", required=True, metavar="CSV",
                         help="read by rubato explore; single measurements go beside it")
    command.add_argument("--stages", type=positive(int), required=True, help="of the pipeline; one GPU runs them in turn")
    command.add_argument("--mem", default=AUTO, metavar="MHZ", help="one memory clock for all [auto]")
    add_effort(command)
    add_shape(command, batch=4)

    command = commands.add_parser("trace", help="profile a training step with its power (needs no rights)")
    command.set_defaults(run=run_trace)
    command.add_argument("-o", "--output", required=True, metavar="STEM", help="writes STEM.json.gz, STEM.power.csv")
    command.add_argument("--dry-run", action="store_true", help="print the plan and touch nothing")
    command.add_argument("--steps", type=positive(int), default=2, help="profiled [2]")
    command.add_argument("--warm-up-steps", type=int, default=3, help="[3]")
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    add_shape(command, batch=4)

    command = commands.add_parser("kernels", help="list the kernels of a sweep")
    command.set_defaults(run=run_kernels)
    add_shape(command, batch=40)

    command = commands.add_parser("restore", help="give all clocks back, after a crash or kill -9 (needs rights)")
    command.set_defaults(run=run_restore)
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    add_examples(commands, EXAMPLES)
    return parser


def chosen_pairs(options: argparse.Namespace, gpu: Optional[Gpu]) -> list[plan.Pair]:
    """Clocks to measure at; without a GPU c01, c02, ... stand for core clocks that it would choose. Raises UsageError, DataError."""
    if options.pairs:
        if options.core or options.mem:
            raise UsageError("--pairs excludes --core and --mem")
        pairs = plan.file_pairs(options.pairs, gpu)
    else:
        pairs = plan.grid_pairs(gpu, options.core, options.mem, options.core_count) if gpu else plan.unknown_pairs(
            options.core, options.mem, options.core_count)
    return pairs + [plan.Pair(AUTO, AUTO)] * options.default_clocks


def print_plan(options: argparse.Namespace, gpu: Optional[Gpu], pairs: Sequence[plan.Pair], tasks: Sequence[plan.Task],
               left: Sequence[plan.Task], settings: sweep.Settings, out: TextIO) -> None:
    """What --dry-run says: `left` of `tasks` are still to be measured."""
    print(f"GPU      {gpu.name + ', ' + gpu.uuid if gpu else 'none found; clocks are not checked, c01, c02, ... would be its own'}", file=out)
    print(f"output   {options.output}: {len(left)} of {len(tasks)} measurements to do", file=out)
    print(f"time     about {settings.seconds(left) / 60:.0f} min, without waits to cool down", file=out)
    print("rights   to set clocks: root, as a rule; clocks are given back on every exit", file=out)
    print(f"pairs    {len(pairs)} (core/memory MHz): "
          + " ".join(f"{pair.core_mhz}/{pair.mem_mhz}" for pair in pairs), file=out)
    print(f"order    seed {options.seed}; repeat core/memory: kernels", file=out)
    names: list[str] = []
    last: Optional[tuple[int, plan.Pair]] = None
    for task in [*left, None]:
        here = (task.repeat, task.pair) if task else None
        if last and here != last:
            print(f"  {last[0]} {last[1].core_mhz}/{last[1].mem_mhz}: {' '.join(names)}", file=out)
            names = []
        if task:
            names.append(task.kernel)
        last = here


def open_gpu(options: argparse.Namespace, load: Callable[[], Nvml]) -> Gpu:
    """The GPU of --gpu. Raises IoError without a driver, UsageError where there is no such GPU."""
    return Gpu(load(), options.gpu)


def measure(options: argparse.Namespace, world: World, kernels: Sequence[Kernel], output: Path) -> Optional[set[str]]:
    """Measures what `output` does not hold yet. Returns the names left out; None in a dry run, which prints the plan."""
    gpu: Optional[Gpu] = None
    try:
        gpu = open_gpu(options, world.nvml)
    except IoError:
        if not options.dry_run:
            raise
    pairs = chosen_pairs(options, gpu)
    tasks = plan.tasks([kernel.name for kernel in kernels], pairs, options.repeats, options.seed)
    settings = sweep.Settings(options.warm_up, options.window, cool_below_c=options.cool_below)
    if options.dry_run:
        done = sweep.rows_done(output, gpu.name if gpu else None) if options.resume else set()
        left = [task for task in tasks if task.key not in done]
        print_plan(options, gpu, pairs, tasks, left, settings, world.out)
        return None
    assert gpu is not None  # else it was a dry run
    others = [pid for pid in gpu.processes() if pid != os.getpid()]
    if others and not options.shared_gpu:
        raise IoError(f"{gpu.name}: process {others[0]} computes on it", "end it, or measure with --shared-gpu")
    with signals_raise(), Clocks(gpu, world.log, world.hold(options.gpu)) as clocks:
        clocks.set(pairs[0].core_mhz, pairs[0].mem_mhz)  # refuses before anything is written
        runner = world.runner(gpu)
        file = sweep.SweepFile(output, gpu.name, options.resume)
        try:
            work = sweep.Sweep(gpu, clocks, runner, kernels, settings, world.clock, world.sleep)
            return work.run(tasks, file, lambda line: print(line, file=world.log))
        finally:
            file.close()


def run_sweep(options: argparse.Namespace, world: World) -> int:
    """Status 1: no kernel fitted into memory."""
    kernels = choose(gpt_kernels(shape_of(options)), options.kernels)
    left_out = measure(options, world, kernels, Path(options.output))
    return 1 if left_out is not None and len(left_out) == len(kernels) else 0


def run_stages(options: argparse.Namespace, world: World) -> int:
    """Measures, then writes the profile and says the power of a GPU that waits, W."""
    passes = stages.StagePasses(shape_of(options), options.stages)
    if options.mem != AUTO and len(plan.parse_clocks("--mem", options.mem)) > 1:
        raise UsageError(f"--mem is {options.mem}; expected one memory clock: profiles list core clocks")
    measured = stages.measurements_of(options.output)
    stages.check_run(options.output, passes, options.resume)
    if not options.dry_run:
        stages.note_run(options.output, passes)
    if measure(options, world, passes.kernels(), measured) is None:
        return 0
    profile = stages.profile_of(measured, options.stages)
    stages.write_profile(profile, options.output)
    for name in profile.throttled:
        print(f"note: {name} was held back by the GPU; the clock is the one asked for", file=world.log)
    low_w, high_w = profile.blocked_range_w
    print(f"{options.output}: {len(profile.rows)} rows; a GPU that waits draws {profile.blocked_w:.4g} W "
          f"({low_w:.4g} to {high_w:.4g} over the clocks; one polling thread, the receive of NCCL may differ)\n"
          f"next: rubato explore {options.output} --blocked-power {profile.blocked_w:.4g} "
          f"--microbatches {2 * options.stages}", file=world.out)
    return 0


def run_trace(options: argparse.Namespace, world: World) -> int:
    """Profiles steps and logs power; sets no clock."""
    shape = shape_of(options)
    if options.dry_run:
        print(f"output   {options.output}.json.gz, {options.output}.power.csv\n"
              f"step     {shape}\n"
              f"runs     {options.warm_up_steps} warm-up steps, {options.steps} profiled; clocks are left alone\n"
              "rights   none", file=world.out)
        return 0
    gpu = open_gpu(options, world.nvml)
    written = trace.record(world.torch(gpu), gpu, shape, options.output, options.warm_up_steps, options.steps)
    print(*written, sep="\n", file=world.out)
    return 0


def run_kernels(options: argparse.Namespace, world: World) -> int:
    """Names, FLOPs and bytes of a launch of each kernel."""
    for kernel in gpt_kernels(shape_of(options)):
        print(f"{kernel.name:24}{(kernel.flop or 0.0) / 1e9:12.3f} GFLOP{(kernel.dram_bytes or 0.0) / 1e6:12.3f} MB", file=world.out)
    return 0


def run_restore(options: argparse.Namespace, world: World) -> int:
    """Status 4: clocks may still be set."""
    gpu = open_gpu(options, world.nvml)
    with signals_raise(), Clocks(gpu, world.log, world.hold(options.gpu, guard=False)) as clocks:
        clocks.set(AUTO, AUTO)
    return 4 if clocks.touched else 0


class World:
    """What tests replace: NVML, PyTorch, clock and sleep in s, and the streams."""

    def __init__(self) -> None:
        import time

        self.nvml: Callable[[], Nvml] = load_nvml
        self.clock: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], object] = time.sleep
        self.out: TextIO = sys.stdout
        self.log: TextIO = sys.stderr

    def hold(self, index: int, guard: bool = True) -> Any:
        """The GPU for this process alone, a rubato.hardware.hold.Hold. Raises IoError where another process sets its clocks."""
        return Hold(NvmlBackend(applications=True), [index], guard)

    def torch(self, gpu: Gpu) -> Any:
        """The module torch, which sees this GPU only. Raises IoError."""
        return load_torch(gpu.uuid)

    def runner(self, gpu: Gpu) -> Any:
        """What load, run and unload kernels: a TorchRunner. Raises IoError."""
        return TorchRunner(self.torch(gpu))


def main(arguments: Optional[Sequence[str]] = None, world: Optional[World] = None) -> int:
    """Runs one command. @return its exit status: 0, those of the errors, 128 + the number of a signal"""
    world = world or World()
    options = build_parser().parse_args(arguments)
    try:
        return options.run(options, world)
    except RubatoError as error:
        print(f"error: {error}", file=world.log)
        if error.hint:
            print(f"  hint: {error.hint}", file=world.log)
        return error.status
    except KeyboardInterrupt:
        print("interrupted; --resume goes on from here", file=world.log)
        return 128 + signal.SIGINT
    except Terminated as ended:
        print(f"ended by signal {ended.number}; --resume goes on from here", file=world.log)
        return 128 + ended.number
