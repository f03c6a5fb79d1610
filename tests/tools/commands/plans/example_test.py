#!/usr/bin/env python3
"""The shipped example against its generator, docs/examples/generate.py: the capture is that of the program of today, its power log
keeps to the board's limit, and what `explore` promises at a plan's clock is what the generator gives at that clock. On cards that
draw more or less than the spec says, that rest deeper between runs, or that once stall: what a log and odd steps change.

Usage: example_test.py RUBATO SOURCE_DIR
"""
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checks import check, exit_status, finished  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs/examples"
CAPTURE, LOG = EXAMPLES / "run.pt.trace.json.gz", EXAMPLES / "run.power.csv"
sys.path.insert(0, str(EXAMPLES))
os.environ["PATH"] = f"{RUBATO.parent}:{os.environ['PATH']}"
import generate  # noqa: E402

FEW_POINTS = 1.5  # between promise and truth, in points of a change; scatter of launches is 3 %


def totals(core_mhz=None):
    """Time in s and energy in J of the generated run, from its first launch to the end of its last one."""
    _, busy, idle_w, _ = generate.run_at(core_mhz)
    begin, end = busy[0][0], busy[-1][1]
    return (end - begin) * 1e-6, generate.mean_power(busy, idle_w, begin, end) * (end - begin) * 1e-6


def explored(*words):
    return json.loads(finished(RUBATO, "explore", CAPTURE, "--per", "run", "--quiet", "--json", *words).stdout)


def check_promises(words, usual, slacks):
    """One clock for all: the interval holds what the generator gives, and the promise is near to it."""
    found = explored(*words, *(word for slack in slacks for word in ("--slack", slack)))
    saved = 0
    for plan in found["plans"][1:]:
        if plan["clocks"].endswith(("auto", "1410")):
            continue
        saved += 1
        time_s, energy_j = totals(int(plan["clocks"].split("/")[1]))
        came = {"time": 100 * (time_s / usual[0] - 1), "energy": 100 * (energy_j / usual[1] - 1)}
        for what, value in came.items():
            at = f"{' '.join(map(str, words)) or 'no log'}, slack {plan['slack_pct']}, {plan['clocks']}: {what}"
            promised, low, high = (plan[f"{what}_{end}_pct"] for end in ("change", "change_low", "change_high"))
            check(f"{at} is near to what comes", abs(promised - value) <= FEW_POINTS, (promised, value))
            check(f"{at} comes within its interval", low <= value <= high, (low, value, high))
    check("some slack has a plan", saved > 0, found["plans"])


def check_shipped(usual):
    """The files are those of this program: who changes the model makes them anew."""
    events = json.loads(gzip.decompress(CAPTURE.read_bytes()))["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    span_s = (kernels[-1]["ts"] + kernels[-1]["dur"] - kernels[0]["ts"]) * 1e-6
    check("the capture takes the time of today's model (else run docs/examples/generate.py)", abs(span_s / usual[0] - 1) < 0.002, (span_s, usual[0]))
    waits = {event["name"] for event in events if event.get("cat") == "cuda_runtime" and "Synchronize" in event["name"]}
    check("the host's waits are recorded", waits == {"cudaStreamSynchronize", "cudaDeviceSynchronize"}, waits)
    spec = json.loads(finished(RUBATO, "gpus", generate.GPU).stdout)
    rows = list(csv.reader(LOG.open(encoding="utf-8")))[1:]
    power_w = [float(row[2].split()[0]) for row in rows]
    noise_w = 5
    check("no reading is above the board's limit", max(power_w) <= spec["power_limit"]["limit_w"] + noise_w, max(power_w))
    check("the log has the SM clock", {row[3].split()[1] for row in rows} == {"MHz"}, rows[0])
    log_j = 0.1 * sum(power_w[10:-10])
    check("the log has the energy of today's model", abs(log_j / usual[1] - 1) < 0.03, (log_j, usual[1]))
    note = finished(RUBATO, "explore", CAPTURE, "--per", "run", "--slack", "5").stderr
    check("no wait of the file is left out", "left out" not in note, note)


def write_run(name, core_mhz, factor=1.0, rest_w=None):
    """A run at one clock on a card that draws `factor` times as much above idle power, and `rest_w` before and after the run. The log
    has an idle stretch on both sides, and waiting inside steps is as the spec has it."""
    events, busy, idle_w, gpu = generate.run_at(core_mhz)
    busy = [(start, end, idle_w + factor * (power_w - idle_w), mhz) for start, end, power_w, mhz in busy]
    generate.write_trace(Path(f"{name}.json.gz"), gpu, events)
    generate.write_power_log(f"{name}.csv", busy, idle_w, core_mhz or generate.MAX_MHZ)
    if rest_w is not None:
        rows = list(csv.reader(open(f"{name}.csv", encoding="utf-8")))
        for row in [*rows[1:10], *rows[-9:]]:
            row[2] = f" {rest_w} W"
        with open(f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    begin, end = busy[0][0], busy[-1][1]
    return generate.mean_power(busy, idle_w, begin, end) * (end - begin) * 1e-6


def energy_at(name, core_mhz, *words):
    found = json.loads(finished(RUBATO, "explore", f"{name}.json.gz", "--per", "run", "--slack", "200", "--clocks",
                                f"mem={generate.MEM_MHZ} core={core_mhz}", "--quiet", "--json", *words).stdout)
    return found["plans"][1]["energy_j"]


def check_logged():
    """Watts that were read count: at the clock of the capture, and at another one."""
    for factor in (0.8, 1.2):
        for rest_w in (None, 40):
            write_run("slow", 1110, factor)
            truth_j = {1200: write_run("card", 1200, factor, rest_w), 1110: write_run("slow", 1110, factor)}
            write_run("card", 1200, factor, rest_w)
            for core_mhz, energy_j in truth_j.items():
                logged_j = energy_at("card", core_mhz, "--power", "card.csv")
                what = f"{factor} x the power, at rest {rest_w or 'as usual'}, at {core_mhz}"
                check(f"{what}: energy is as logged", abs(logged_j / energy_j - 1) < 0.03, (logged_j, energy_j))
            unlogged_j = energy_at("card", 1200, "--captured-clock", "1593/1200")
            check(f"{factor} x the power is not known without the log", abs(unlogged_j / truth_j[1200] - 1) > 0.08, (unlogged_j, truth_j))


def check_odd_step(usual):
    """A checkpoint of seconds in one step is no slack of the others."""
    events = json.loads(gzip.decompress(CAPTURE.read_bytes()))
    steps = [event for event in events["traceEvents"] if event["name"].startswith("ProfilerStep")]
    at, pause_us = steps[3]["ts"] - 10.0, 4e6
    for event in events["traceEvents"]:
        if event["ts"] > at:
            event["ts"] += pause_us
    steps[2]["dur"] += pause_us
    Path("stall.json.gz").write_bytes(gzip.compress(json.dumps(events).encode()))
    done = finished(RUBATO, "explore", "stall.json.gz", "--per", "run", "--slack", "5", "--json")
    check("the odd step is named", f"step {steps[2]['name']} takes" in done.stderr and "left out" in done.stderr, done.stderr)
    plan, run = json.loads(done.stdout)["plans"][1], explored("--slack", "5")["plans"][1]
    check("with the stall another plan would not be in time", plan["clocks"] == run["clocks"], (plan["clocks"], run["clocks"]))
    check("a run of five steps is left", 0.7 * usual[0] < plan["time_s"] < 0.95 * usual[0], plan["time_s"])


def check_late():
    """A plan per kernel that is late once its switches are played is no plan: exit status 1."""
    words = ("--per", "kernel", "--slack", "5", "--odds", "0", "--json")
    done = subprocess.run([RUBATO, "explore", CAPTURE, *words], capture_output=True, text=True, check=False)
    late = json.loads(done.stdout)["plans"][1]
    check("the plan is late as played", done.returncode == 1 and late["counted_time_change_pct"] > 5, (done.returncode, late))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        usual = totals()
        check_shipped(usual)
        check_promises((), usual, (5, 10, 20))
        check_promises(("--power", LOG), usual, (5, 20))
        check_logged()
        check_late()
        check_odd_step(usual)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
