"""The command line of capture."""

import argparse
import sys

from gpu import CaptureError, Gpu, Interrupted, load_nvml
from step import capture_step
from sweep import SweepSettings, clock_pairs, describe, pairs_from_csv, run_sweep
from workloads import gpt_workloads


def load_torch():
    try:
        import torch
    except ImportError as error:
        raise CaptureError("PyTorch is missing; see pytorch.org for how to install it") from error
    if not torch.cuda.is_available():
        raise CaptureError("PyTorch finds no CUDA device")
    return torch


def core_range(text):
    try:
        if ":" not in text:
            return [int(part) for part in text.split(",")]
        first, last, step = (int(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not FIRST:LAST:STEP or a list of MHz") from None
    if step <= 0 or first > last:
        raise argparse.ArgumentTypeError(f"'{text}' holds no clock")
    return first, last, step


def parser():
    root = argparse.ArgumentParser(prog="capture", description="Records what Rubato reads on a machine with an NVIDIA GPU.")
    commands = root.add_subparsers(dest="command", required=True)

    sweep = commands.add_parser("sweep", help="kernels over core and memory clocks, for rubato calibrate")
    sweep.add_argument("-o", "--output", default="sweep.csv", help="CSV; an unfinished one is continued [%(default)s]")
    sweep.add_argument("--core", type=core_range, help="core clocks, MHz: 210:2100:210 or 1050,1410 [all supported]")
    sweep.add_argument("--mem", type=lambda text: [int(part) for part in text.split(",")],
                       help="memory clocks, MHz, with commas [all supported]")
    sweep.add_argument("--pairs", help="clock pairs from a file of rubato suggest --csv")
    sweep.add_argument("--kernels", help="names, with commas [all]")
    sweep.add_argument("--warm-up", type=float, default=2.0, help="s per kernel and clock pair [%(default)s]")
    sweep.add_argument("--measure", type=float, default=2.0, help="s per repeat [%(default)s]")
    sweep.add_argument("--repeats", type=int, default=2, help="[%(default)s]")
    sweep.add_argument("--seed", type=int, default=1, help="of the order of the clock pairs [%(default)s]")

    trace = commands.add_parser("trace", help="a GPT training step at default clocks, with its power")
    trace.add_argument("-o", "--output", default="gpt3-xl", help="writes NAME.json.gz and NAME.power.csv [%(default)s]")
    for name, value, help_text in (("layers", 24, ""), ("hidden", 2048, ""), ("heads", 16, ""), ("batch", 8, "sequences "),
                                   ("sequence", 1024, "tokens "), ("vocabulary", 50304, ""), ("steps", 3, "profiled "),
                                   ("warm-up-steps", 10, "")):
        trace.add_argument(f"--{name}", type=int, default=value, help=f"{help_text}[%(default)s]")

    for command in (sweep, trace):
        command.add_argument("--gpu", type=int, default=0, help="index of the GPU [%(default)s]")
        command.add_argument("--dry-run", action="store_true", help="say what would be done and touch nothing")
    return root


def sweep_plan(gpu, o):
    workloads = gpt_workloads()
    if o.kernels:
        wanted = o.kernels.split(",")
        unknown = set(wanted) - {w.name for w in workloads}
        if unknown:
            raise CaptureError(f"kernel '{sorted(unknown)[0]}' is not known; there are " +
                               ", ".join(w.name for w in workloads))
        workloads = [w for w in workloads if w.name in wanted]
    pairs = pairs_from_csv(o.pairs, gpu) if o.pairs else clock_pairs(gpu, o.mem, o.core)
    if o.repeats < 1 or o.measure <= 0 or o.warm_up < 0:
        raise CaptureError("--repeats and --measure must be positive, --warm-up not negative")
    return workloads, SweepSettings(warm_up_s=o.warm_up, measure_s=o.measure, repeats=o.repeats, seed=o.seed, pairs=pairs)


def main(arguments, nvml=None, torch=None):
    """@return exit status: 0 done, 2 usage, 4 no rights or device trouble, 130 interrupted"""
    o = parser().parse_args(arguments)
    try:
        gpu = Gpu(nvml or load_nvml(), o.gpu)
        if o.command == "sweep":
            workloads, settings = sweep_plan(gpu, o)
            print(describe(gpu, workloads, settings))
            if not o.dry_run:
                run_sweep(gpu, torch or load_torch(), workloads, settings, o.output)
        elif o.dry_run:
            print(f"GPU    {gpu.name}\nstep   {o.layers} layers, hidden {o.hidden}, batch {o.batch} x {o.sequence} tokens\n"
                  f"writes {o.output}.json.gz and {o.output}.power.csv; changes no clock, needs no rights")
        else:
            capture_step(gpu, torch or load_torch(), o)
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except Interrupted as signal_name:
        print(f"stopped by {signal_name}; the clocks are given back, the rows so far are kept: the same command continues",
              file=sys.stderr)
        return 130
    return 0
