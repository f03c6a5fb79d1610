"""rubato apply | measure | energy | watch | serve | doctor | latency | match | capture | restore: the program runs this as python3 -m rubato."""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Sequence

from rubato.errors import IoError, RubatoError, UsageError
from rubato.examples import add_examples

if TYPE_CHECKING:
    from rubato.applier import Applier

EXAMPLES = {
    "apply": ("sudo -E rubato apply plan.json -- python3 train.py --batch 8", "rubato apply plan.json --backend dry -- python3 train.py",
              "rubato apply plan.json --backend zeusd -- python3 train.py"),
    "measure": ("sudo -E rubato measure plan.json -o ab.csv -- python3 train.py", "sudo -E rubato measure plan.json --pairs 4 -- python3 train.py",
                "rubato verify --plan plan.json --measured ab.csv"),
    "energy": ("rubato energy -- python3 train.py", "rubato energy --gpus 0,1 -- python3 train.py", "rubato energy -o energy.json -- python3 train.py"),
    "watch": ("rubato watch", "rubato watch --once --gpus 0", "rubato watch --port 9401"),
    "serve": ("rubato serve results.db", "rubato serve results.db --port 8000", "rubato report --db results.db --run all"),
    "doctor": ("rubato doctor", "sudo -E rubato doctor", "rubato doctor --json"),
    "latency": ("sudo -E rubato latency", "sudo -E rubato latency --core 900,1410 --repeats 20",
                "sudo -E rubato latency --spec gpu.json -o gpu-latency.json"),
    "match": ("rubato match plan.json run.pt.trace.json.gz", "rubato export --plan latest --db results.db -o plan.json",
              "rubato match plan.json next-run.pt.trace.json.gz"),
    "restore": ("sudo rubato restore", "sudo rubato restore --gpu 3", "rubato doctor"),
}


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        raise argparse.ArgumentTypeError(f"is '{text}'; expected whole numbers with commas") from None


def _add_playing(command: argparse.ArgumentParser) -> None:
    command.add_argument("plan", help="of rubato export --plan")
    group = command.add_argument_group("how the plan is applied")
    group.add_argument("--backend", default="auto", help="auto, nvml, zeusd or dry [auto]")
    group.add_argument("--per", default="auto", help="a coarser plan that the file has too [the plan it was made for]")
    group.add_argument("--latency-ms", type=float, help="request to effect [the GPU spec's]")
    group.add_argument("--gpus", type=_numbers, help="NVML indices [LOCAL_RANK's]")
    group.add_argument("--stage", type=int, help="pipeline stage of this rank [rank // (WORLD_SIZE / stages), Megatron's default order]")
    group.add_argument("--strict", action="store_true", help="end where the plan cannot be applied, instead of training without it")
    group.add_argument("--any-gpu", action="store_true", help="also on another GPU than the plan's")
    group.add_argument("--shared-gpu", action="store_true", help="also while another process computes on the GPU")
    command.add_argument("script", nargs="*", metavar="-- SCRIPT", help="[python3] SCRIPT.py ARGUMENTS, or -m MODULE ARGUMENTS")


def _add_serve(commands: Any) -> None:
    command = commands.add_parser("serve", help="all runs and experiments of a result database in the browser, on this machine only; reads only")
    command.set_defaults(act=run_serve)
    command.add_argument("db", help="result database")
    command.add_argument("--port", type=int, default=0, help="of 127.0.0.1 [any free port]")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=os.environ.get("RUBATO_CALLED_AS", "python3 -m rubato"), description="Plans of rubato on GPUs")
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("apply", help="run a training script under a plan")
    command.set_defaults(act=run_apply)
    _add_playing(command)

    command = commands.add_parser("measure", help="run a training script under a plan and at the default clocks in turns: what is saved")
    command.set_defaults(act=run_measure)
    _add_playing(command)
    command.add_argument("--pairs", type=int, default=8, help="windows under the plan, and as many at the default clocks [8]")
    command.add_argument("--steps", type=int, default=50, help="of a window; it should last a second or more [50]")
    command.add_argument("--settle-steps", type=int, default=3, help="not counted before each window [3]")
    command.add_argument("-o", "--output", default="ab.csv", help="for rubato verify --measured [ab.csv]")

    command = commands.add_parser("energy", help="energy of a program: GPUs, and CPU and DRAM where the system lets it")
    command.set_defaults(act=run_energy)
    command.add_argument("--gpus", type=_numbers, help="NVML indices [those of CUDA_VISIBLE_DEVICES, else all]")
    command.add_argument("-o", "--output", help="a JSON file with the numbers")
    command.add_argument("script", nargs="*", metavar="-- PROGRAM", help="and its arguments")

    command = commands.add_parser("watch", help="clock, power, plan, time lost and energy saved, as training goes on")
    command.set_defaults(act=run_watch)
    command.add_argument("--gpus", type=_numbers, help="NVML indices [all]")
    command.add_argument("--interval", type=float, default=1.0, help="seconds between readings [1]")
    command.add_argument("--once", action="store_true", help="one reading, and end")
    command.add_argument("--port", type=int, help="serve http://127.0.0.1:PORT/metrics for Prometheus (OpenMetrics, DCGM's names) instead; 0: any free port")

    _add_serve(commands)

    command = commands.add_parser("doctor", help="what this machine lets you do, and what to do about the rest; sets nothing",
                                  description="What this machine can measure and set. Status 0: plans can be set, 1: not yet.")
    command.set_defaults(act=run_doctor)
    command.add_argument("--json", action="store_true", help="findings as JSON")

    command = commands.add_parser("latency", help="measure how long a switch takes (needs rights)")
    command.set_defaults(act=run_latency)
    command.add_argument("--core", type=_numbers, default=[], metavar="MHZ", help="[lowest, middle, highest]")
    command.add_argument("--mem", type=_numbers, default=[], metavar="MHZ", help="[all, where there are several]")
    command.add_argument("--repeats", type=int, default=10, help="[10]")
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    command.add_argument("--spec", help="GPU spec to write the result into")
    command.add_argument("-o", "--output", help="the spec with its new section, or the measurements")

    command = commands.add_parser("match", help="how much of a profiled run a plan covers")
    command.set_defaults(act=run_match)
    command.add_argument("plan")
    command.add_argument("trace", help="of the PyTorch profiler")

    command = commands.add_parser("restore", help="give all clocks back (needs rights)")
    command.set_defaults(act=run_restore)
    command.add_argument("--gpu", type=int, default=0, help="index in nvidia-smi [0]")
    add_examples(commands, EXAMPLES)
    commands.add_parser("capture", help="clock sweeps and traces; see capture --help", add_help=False)
    return parser


def _applier(options: argparse.Namespace) -> "Applier":
    """For a script whose marks come from PyTorch's hooks."""
    from rubato import hooks
    from rubato.applier import Applier
    from rubato.plan_file import load_plan

    words = _script(options)
    if not words or words == ["-m"]:
        raise UsageError("no script is given", f"rubato {options.command} plan.json -- python3 train.py")
    plan = load_plan(options.plan)
    try:
        import torch

        event = hooks.cuda_event if torch.cuda.is_available() else None
    except ImportError:
        raise UsageError("python module torch is not installed; marks come from its hooks",
                         "in other programs call rubato.Applier.mark()") from None
    latency_s = None if options.latency_ms is None else options.latency_ms * 1e-3
    return Applier(plan, gpus=options.gpus, stage=options.stage, backend=options.backend, per=options.per, latency_s=latency_s,
                   event=event, strict=options.strict, any_gpu=options.any_gpu, shared_gpu=options.shared_gpu)


def _script(options: argparse.Namespace) -> list[str]:
    words = options.script
    return words[1:] if words and Path(words[0]).name.startswith("python") else words


def _run_script(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


def run_apply(options: argparse.Namespace) -> int:
    from rubato import hooks

    applier = _applier(options)
    detach = hooks.attach_everywhere(applier)
    try:
        _run_script(_script(options))
    finally:
        detach()
        print(f"rubato: {applier.close()}", file=sys.stderr)
    return 0


def run_measure(options: argparse.Namespace) -> int:
    from rubato import hooks
    from rubato.devices import rank_of
    from rubato.measuring.measurement import Windows

    options.strict = True  # without the plan there is nothing to measure
    with _applier(options) as applier:
        windows = Windows(applier, options.pairs, options.steps, options.settle_steps)
        detach = hooks.attach_everywhere(windows)
        try:
            _run_script(_script(options))
        finally:
            detach()
            windows.close()
        found = windows.result()
    if rank_of("RANK") == 0:
        found.write_csv(options.output)
        print(f"rubato: {found}\n  compare: rubato verify --plan {options.plan} --measured {options.output}", file=sys.stderr)
    return 0


def run_energy(options: argparse.Namespace) -> int:
    import json
    import subprocess

    from rubato.measuring.energy import Energy

    if not options.script:
        raise UsageError("no program is given", "rubato energy -- python3 train.py")
    with Energy(options.gpus, sync=False) as used:
        try:
            status = subprocess.run(options.script).returncode
        except OSError as error:
            raise IoError(f"{options.script[0]}: {error.strerror}") from None
    print(f"rubato: {used}", file=sys.stderr)
    for what, why in used.unknown.items():
        print(f"note: {what} is not known: {why}", file=sys.stderr)
    if options.output:
        Path(options.output).write_text(json.dumps(used.as_row()) + "\n", encoding="utf-8")
    return status if status >= 0 else 128 - status


def run_watch(options: argparse.Namespace) -> int:
    from rubato.measuring.watch import Watch

    if not 0.05 <= options.interval <= 3600:
        raise UsageError(f"--interval is {options.interval:g}; expected seconds from 0.05 to 3600")
    watch = Watch(options.gpus)
    try:
        if options.port is None:
            watch.show(options.interval, options.once)
        else:
            with watch.server(options.port) as server:
                print(f"http://127.0.0.1:{server.server_port}/metrics", flush=True)
                server.serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


def run_serve(options: argparse.Namespace) -> int:
    from rubato.serve import Server

    with Server(Path(options.db), options.port) as server:
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0  # that is how it ends
    return 0


def run_doctor(options: argparse.Namespace) -> int:
    import json

    from rubato import doctor

    findings = doctor.examine()
    print(json.dumps(doctor.as_rows(findings), indent=2) if options.json else doctor.text(findings))
    return 0 if doctor.sets_plans(findings) else 1


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
