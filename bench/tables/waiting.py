#!/usr/bin/env python3
"""What users wait for, old beside new, in one run: a Markdown table with the goal of each row.

Usage: bench/tables/waiting.py [OLD] NEW [--runs N] [--only TEXT ...] [--captures FILE ...]
OLD and NEW are build folders (cmake --preset release -DRUBATO_BENCH=ON); they run one after the other, N times each,
and medians count. Whatever takes less than some seconds is repeated, and the least time of its repetitions is that of
one run. Rows that have a reference (bare inserts, a plain copy, the ceiling of the processor, HiGHS) are ratios to it,
measured in the same process. --only takes rows whose name contains one of the texts, --captures other
captured runs of an H100 than the one in tests/captures.
Times are CPU times (user and system) of whole processes unless a row says wall, since machines are shared. Wall times are
without what a thread waited for a processor that others had (of its threads the one that ran and slept longest).
HiGHS needs python3-scipy; programs that were not built are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEASURED = ROOT / "models" / "data" / "measured"
CAPTURE = ROOT / "tests" / "captures" / "traces" / "kineto_h100_qwen_fwd.json.gz"
SWEEP = """schema = 1
name = 'waiting'
[axes]
gpu = ['rtx-3080-ti', 'a100-sxm4-80gb', 'a40', 'rtx-8000', 'rtx-pro-6000']
model = ['gpt3-xl', 'gpt3-medium']
batch = [1, 2, 4, 8, 16, 32]
sequence = [1024, 2048]
tensor_parallel = [1, 2, 4, 8]
clocks = 'full'
granularity = ['run', 'pass', 'kernel']
slack_pct = [0, 1, 2, 5, 10, 20]
"""
UNITS = 8640


class Figure(NamedTuple):
    """One number of a row. The goal is met at `at_most` or less, or at `at_least` or more."""

    name: str
    unit: str
    at_most: Optional[float] = None
    at_least: Optional[float] = None


class Row(NamedTuple):
    name: str
    figures: list[Figure]
    measure: Callable[[Path], list[float]]  # of a build folder, in the order of the figures


class Missing(Exception):
    """A program that a row needs is not there."""


class Run(NamedTuple):
    cpu_s: float
    wall_s: float  # without waiting for a processor
    peak_mb: float
    printed: str


def threads_of(pid: int) -> dict[str, tuple[int, int]]:
    """Of each thread that lives, ns that it ran, and that it waited for a processor; nothing where the system does not say."""
    found = {}
    for file in Path("/proc", str(pid), "task").glob("*/schedstat"):
        try:
            ran, waited, _ = file.read_text().split()
        except (OSError, ValueError):
            continue
        found[file.parent.name] = (int(ran), int(waited))
    return found


def wall_without_waiting(process: subprocess.Popen, start: float) -> float:
    """Waits for the end of a process, which is still to be reaped then."""
    threads: dict[str, tuple[int, int]] = {}
    pause_s = 0.001
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        threads.update(threads_of(process.pid))
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.1)
    wall_s = time.monotonic() - start
    threads.update(threads_of(process.pid))
    busy = 0.5 * max((ran for ran, _ in threads.values()), default=0)
    return wall_s - 1e-9 * min((waited for ran, waited in threads.values() if ran >= busy), default=0)


def measured(program: Path, arguments: list[str], may_end: tuple[int, ...] = (0,)) -> Run:
    if not program.exists():
        raise Missing(f"{program} was not built")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sweep.toml").write_text(SWEEP)
        start = time.monotonic()
        with open(os.path.join(folder, "printed"), "w+", encoding="utf-8") as printed:
            process = subprocess.Popen([str(program), *arguments], cwd=folder, stdout=printed, stderr=subprocess.DEVNULL)
            wall_s = wall_without_waiting(process, start)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in may_end:
                raise SystemExit(f"error: {program} {' '.join(arguments)} ended with status {process.returncode}")
            printed.seek(0)
            return Run(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024, printed.read())


def rubato(build: Path, *arguments: str, most: int = 5) -> Run:
    """Repeated as long as that takes some seconds: the least times."""
    runs = [measured(build / "rubato", list(arguments))]
    while len(runs) < most and sum(run.cpu_s for run in runs) < 3.0:
        runs.append(measured(build / "rubato", list(arguments)))
    return runs[0]._replace(cpu_s=min(run.cpu_s for run in runs), wall_s=min(run.wall_s for run in runs))


def command(name: str, limit_s: Optional[float], *arguments: str) -> Row:
    return Row(name, [Figure("", "s", at_most=limit_s)], lambda build: [rubato(build, *arguments).cpu_s])


def planned(name: str, limit_s: Optional[float], limit_gap_pct: Optional[float], *arguments: str) -> Row:
    def measure(build: Path) -> list[float]:
        run = rubato(build, *arguments, "--json")
        plan = json.loads(run.printed)["plans"][-1]
        return [run.cpu_s, plan["gap_pct"]]

    return Row(name, [Figure("", "s", at_most=limit_s), Figure("gap", "%", at_most=limit_gap_pct)], measure)


SWITCHED = ["explore", "gpt3-xl", "--per", "segment", "--switching", "latency=6ms"]
A100 = ["explore", "gpt3-xl", "--per", "segment", "--gpu", "a100-sxm4-80gb", "--switching", "spec", "--clocks", "full"]


def more_clocks(build: Path) -> list[float]:
    """Energy with 763 clocks beyond that with the 66 they contain."""
    energies = [json.loads(rubato(build, *SWITCHED, *grid, "--json").printed)["plans"][-1]["energy_j"]
                for grid in (["--clocks", "full"], [])]
    return [100.0 * (energies[0] / energies[1] - 1.0)]


def sweep(build: Path) -> list[float]:
    one, two = (rubato(build, "experiment", "run", "sweep.toml", "--db", "sweep.db", "--threads", n) for n in ("1", "2"))
    return [UNITS / one.cpu_s, UNITS / one.wall_s, UNITS / two.cpu_s, one.wall_s / two.wall_s, one.peak_mb, two.peak_mb]


def benchmarks(build: Path, program: str, wanted: str, repetitions: int = 3) -> dict[str, dict]:
    """Rows of Google Benchmark by name, the one of least CPU time of several."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        measured(build / program, [f"--benchmark_filter={wanted}", f"--benchmark_out={out}", "--benchmark_out_format=json",
                                   f"--benchmark_repetitions={repetitions}"])
        rows: dict[str, dict] = {}
        for row in json.loads(out.read_text())["benchmarks"]:
            if row.get("error_occurred"):
                raise SystemExit(f"error: {program}: {row['name']}: {row['error_message']}")
            best = rows.get(row["run_name"])
            if row["run_type"] == "iteration" and (best is None or row["cpu_time"] < best["cpu_time"]):
                rows[row["run_name"]] = row
        return rows


def slacks(build: Path) -> list[float]:
    rows = benchmarks(build, "solver_bench", "global_optimum_at|k46_c763_slack0")
    times_ms = sorted(row["cpu_time"] for row in rows.values())
    return [times_ms[0], statistics.median(times_ms), times_ms[-1]]


def highs(build: Path) -> list[float]:
    instance = build / "mckp_instance"
    if not instance.exists():
        raise Missing(f"{instance} was not built")
    run = measured(Path(sys.executable), [str(HERE / "highs_ratio.py"), str(instance)], may_end=(0, 77))
    ratios = re.findall(r"ratio (?:>= )?([0-9,]+)x of CPU", run.printed)
    if not ratios:
        raise Missing("python3-scipy is not on this machine")
    return [float(ratio.replace(",", "")) for ratio in ratios]


FILLS = [("46 x 66", "new_table/{}/paper/kernels:46/threads:{}"), ("46 x 763", "new_table/{}/full/kernels:46/threads:{}"),
         ("1,000 x 66", "new_table/{}/paper/kernels:1000/threads:{}"),
         ("1,000 x 763", "fill_costs/{}/full/kernels:1000/threads:{}")]


def fills(build: Path) -> list[float]:
    """Of the fastest instruction set, the last one that is listed."""
    rows = benchmarks(build, "models_bench", "(new_table|fill_costs)/.*/(46|1000|kernels:46|kernels:1000)/")
    best = [name.split("/")[1] for name in rows][-1]
    found = []
    for _, form in FILLS:
        for threads in (1, 2):
            of_name = [row for name, row in rows.items() if name.startswith(form.format(best, threads) + "/")]
            found.append(of_name[0]["of_ceiling"] if of_name else float("nan"))
    return found


def beside(program: str, ours: str, reference: str) -> Callable[[Path], list[float]]:
    """CPU time of the reference over ours, for as many cells."""

    def measure(build: Path) -> list[float]:
        rows = benchmarks(build, program, f"^({ours}|{reference})/")
        by_family = {name.split("/")[0]: row["cpu_time"] for name, row in rows.items()}
        return [by_family[reference] / by_family[ours]]

    return measure


def all_rows(captures: list[Path]) -> list[Row]:
    fill_figures = [Figure(f"{name}, {threads} thread{'s' * (threads - 1)}", "", at_least=0.3 if "66" in name else 0.5)
                    for name, _ in FILLS for threads in (1, 2)]
    rows = [
        planned("explore, 6 ms ahead, 763 clocks", 1.0, 0.02, *SWITCHED, "--clocks", "full"),
        Row("energy beyond that of 66 clocks", [Figure("", "%", at_most=0.0)], more_clocks),
        planned("explore, 6 ms ahead, 66 clocks", None, None, *SWITCHED),
        planned("explore, A100 as its spec switches", 1.0, 0.02, *A100),
        planned("explore, A100, 2 % slack", 1.0, 0.02, *A100, "--slack", "2"),
        planned("explore, core 1 and memory 6 ms ahead, 763 clocks", None, None, "explore", "gpt3-xl", "--per", "segment",
                "--switching", "latency=1ms,mem.latency=6ms", "--clocks", "full"),
        command("latency-scan with a picture", 2.0, "latency-scan", "gpt3-xl", "--page", "latency.html"),
        Row("sweep of 8,640 units",
            [Figure("1 thread", "units/s of CPU", at_least=500), Figure("1 thread", "units/s of wall time", at_least=500),
             Figure("2 threads", "units/s of CPU", at_least=500), Figure("2 threads over 1", "times, wall", at_least=1.8),
             Figure("1 thread", "MB", at_most=100), Figure("2 threads", "MB", at_most=100)], sweep),
    ]
    rows += [planned(f"per kernel, {file.name}", 0.5, None, "explore", str(file), "--gpu", "h100-sxm5", "--per", "kernel",
                     "--slack", "1") for file in captures]
    return rows + [
        Row("46 x 763 proven, 13 slacks", [Figure("least", "ms"), Figure("median", "ms"), Figure("most", "ms", at_most=1.0)], slacks),
        Row("HiGHS over Rubato", [Figure(size, "times", at_least=1000) for size in ("46 x 66", "200 x 66", "1,000 x 66")], highs),
        Row("table fill, of the ceiling", fill_figures, fills),
        Row("storing a run, of bare inserts", [Figure("", "", at_least=0.7)], beside("store_bench", "store_run", "bare_inserts")),
        Row("merging shards, of a plain copy", [Figure("", "", at_least=0.7)], beside("sweep_bench", "merge_shards", "copy_cells")),
        Row("--help and start", [Figure("", "ms, wall", at_most=20.0)], lambda build: [1e3 * rubato(build, "--help", most=20).wall_s]),
    ]


def shown(value: float) -> str:
    if value != value:
        return "not there"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_row(row: Row, runs: list[list[list[float]]]) -> None:
    """@param runs  shape [runs x builds x figures]"""
    for i, figure in enumerate(row.figures):
        medians = [statistics.median(of_build) for of_build in zip(*([found[i] for found in run] for run in runs))]
        new, old = medians[-1], medians[0] if len(medians) > 1 else None
        name = ", ".join(part for part in (row.name, figure.name) if part)
        goal, met = "", ""
        if figure.at_most is not None:
            goal, met = f"<= {figure.at_most:g}", "yes" if new <= figure.at_most else "**no**"
        elif figure.at_least is not None:
            goal, met = f">= {figure.at_least:g}", "yes" if new >= figure.at_least else "**no**"
        ratio = f"{new / old:.2f}" if old else ""
        before = "" if old is None else shown(old)
        print(f"| {name} | {figure.unit} | {before} | {shown(new)} | {ratio} | {goal} | {met} |", flush=True)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    fields = dict(part.split(":", 1) for part in lines if ":" in part)
    of = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{of.get('model name', 'unknown')} (family {of.get('cpu family')}, model {of.get('model')})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", type=Path, metavar="BUILD", help="of the program before, if any, and now")
    parser.add_argument("--runs", type=int, default=1, choices=range(1, 100), metavar="N")
    parser.add_argument("--only", nargs="*", default=[""], metavar="TEXT")
    parser.add_argument("--captures", nargs="*", type=Path, default=[CAPTURE], metavar="FILE")
    options = parser.parse_args()
    if len(options.builds) > 2:
        parser.error("expected one build folder or two")
    chosen = [row for row in all_rows([file.resolve() for file in options.captures])
              if any(text in row.name for text in options.only)]
    if not chosen:
        parser.error(f"no row's name contains {' or '.join(options.only)}")
    builds = [folder.resolve() for folder in options.builds]
    print(f"{processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| What | Unit | Old | New | New / old | Goal | Met |\n| --- | --- | --- | --- | --- | --- | --- |")
    for row in chosen:
        try:
            print_row(row, [[row.measure(build) for build in builds] for _ in range(options.runs)])
        except Missing as missing:
            print(f"| {row.name} | | | | | | left out: {missing} |", flush=True)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
