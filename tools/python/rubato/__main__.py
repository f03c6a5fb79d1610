"""rubato apply | latency | match | capture | restore: the program runs this as python3 -m rubato."""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import sys
from pathlib import Path
from typing import Any, Optional, Sequence

from rubato.errors import RubatoError, UsageError


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        raise argparse.ArgumentTypeError(f"is '{text}'; expected whole numbers with commas") from None


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=os.environ.get("RUBATO_CALLED_AS", "python3 -m rubato"), description="Plans of rubato on GPUs")
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("apply", help="run a training script under a plan",
                                  epilog="example: rubato apply plan.json -- python3 train.py --batch 8")
    command.set_defaults(act=run_apply)
    command.add_argument("plan", help="of rubato export --plan")
    command.add_argument("--backend", default="auto", help="auto, nvml, zeusd or dry [auto]")
    command.add_argument("--granularity", default="auto", help="a coarser plan that the file has too [the plan it was made for]")
    command.add_argument("--latency-ms", type=float, help="request to effect [the GPU spec's]")
    command.add_argument("--gpus", type=_numbers, help="NVML indices [LOCAL_RANK's]")
    command.add_argument("--stage", type=int, help="pipeline stage of this rank [rank // (WORLD_SIZE / stages), Megatron's default order]")
    command.add_argument("--strict", action="store_true", help="end where the plan cannot be applied, instead of training without it")
    command.add_argument("--any-gpu", action="store_true", help="also on another GPU than the plan's")
    command.add_argument("--shared-gpu", action="store_true", help="also while another process computes on the GPU")
    command.add_argument("script", nargs="*", help="-- [python3] SCRIPT.py ARGUMENTS, or -- -m MODULE ARGUMENTS")

    command = commands.add_parser("latency", help="measure how long a change of clock takes (needs rights)",
                                  epilog="example: sudo rubato latency --core 900,1410 --spec gpu.json -o gpu-latency.json")
    command.set_defaults(act=run_latency)
    command.add_argument("--core", type=_numbers, default=[], metavar="MHZ", help="[lowest, middle, highest]")
    command.add_argument("--mem", type=_numbers, default=[], metavar="MHZ", help="[all, where there are several]")
    command.add_argument("--repeats", type=int, default=10, help="[10]")
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    command.add_argument("--spec", help="GPU spec to write the result into")
    command.add_argument("-o", "--output", help="the spec with its new section, or the measurements")

    command = commands.add_parser("match", help="how much of a profiled run a plan knows")
    command.set_defaults(act=run_match)
    command.add_argument("plan")
    command.add_argument("trace", help="of the PyTorch profiler")

    command = commands.add_parser("restore", help="give all clocks back (needs rights)")
    command.set_defaults(act=run_restore)
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    commands.add_parser("capture", help="clock sweeps and traces; see capture --help", add_help=False)
    return parser


def run_apply(options: argparse.Namespace) -> int:
    from rubato import hooks
    from rubato.applier import Applier
    from rubato.plan_file import load_plan

    words = options.script
    if words and Path(words[0]).name.startswith("python"):
        words = words[1:]
    if not words or words == ["-m"]:
        raise UsageError("no script is given", "rubato apply plan.json -- python3 train.py")
    plan = load_plan(options.plan)
    try:
        import torch

        event = hooks.cuda_event if torch.cuda.is_available() else None
    except ImportError:
        raise UsageError("python module torch is not installed; marks come from its hooks",
                         "in other programs call rubato.Applier.mark()") from None
    latency_s = None if options.latency_ms is None else options.latency_ms * 1e-3
    applier = Applier(plan, gpus=options.gpus, stage=options.stage, backend=options.backend, granularity=options.granularity, latency_s=latency_s,
                      event=event, strict=options.strict, any_gpu=options.any_gpu, shared_gpu=options.shared_gpu)
    detach = hooks.attach_everywhere(applier)
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path[0] = str(Path(words[0]).resolve().parent)
            runpy.run_path(words[0], run_name="__main__")
    finally:
        detach()
        print(f"rubato: {applier.close()}", file=sys.stderr)
    return 0


def run_latency(options: argparse.Namespace) -> int:
    from rubato.hardware.latency import measure_latency

    if options.spec and not options.output:
        raise UsageError("--spec needs -o: the file to write")
    found = measure_latency(options.core, options.mem, gpu=options.gpu, repeats=options.repeats)
    print(found.gpu)
    for pair in found.pairs:
        print(f"  {pair}")
    if options.spec:
        found.write_spec(options.spec, options.output)
    elif options.output:
        Path(options.output).write_text(found.to_json() + "\n", encoding="utf-8")
    return 0


def run_match(options: argparse.Namespace) -> int:
    from rubato.plan_file import match_launches

    found = match_launches(options.plan, options.trace)
    print(f"{found.launches} launches, {found.unmatched_launches} unknown to the plan; it covers {100 * found.applied_time_frac:.1f} % of their time")
    for name in found.unmatched_names[:10]:
        print(f"  unknown: {name}")
    return 0 if found.unmatched_launches == 0 else 1


def run_restore(options: argparse.Namespace) -> int:
    from rubato.capture.cli import main as capture

    return capture(["restore", "--gpu", str(options.gpu)])


def main(arguments: Optional[Sequence[str]] = None) -> Any:
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["capture"]:
        from rubato.capture.cli import main as capture

        return capture(words[1:])
    cut = words.index("--") if "--" in words else len(words)
    options = build_parser().parse_args(words[:cut])
    if words[cut + 1:]:
        options.script = words[cut + 1:]
    try:
        return options.act(options)
    except RubatoError as error:
        print(f"error: {error}" + (f"\n  hint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.status


if __name__ == "__main__":
    sys.exit(main())
