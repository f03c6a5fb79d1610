#!/usr/bin/env python3
"""Two captures in one command: `explore A --also B@CLOCK` knows the times of kernels better and says so, takes what `calibrate --captures` takes,
names the next measurement where there is one capture, as `suggest` does, and refuses what is not a second capture.

Usage: also_test.py RUBATO SOURCE_DIR
"""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checks import check, exit_status, finished, run  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FOLDER = Path(tempfile.mkdtemp())
CLOCKS = SOURCE / "docs/examples/clocks"
FAST, SLOW = CLOCKS / "core1200.pt.trace.json.gz", CLOCKS / "core810.pt.trace.json.gz"
GRID = "mem=1593 core=705:1200:15"
GPU = FOLDER / "gpu.json"  # with the clock of the first capture as its default
SLACKS = "2,5,10,20"


def explored(*words):
    gpu = () if "--gpu" in words else ("--gpu", GPU)
    found = json.loads(finished(RUBATO, "explore", FAST, *gpu, "--captured-clock", "1593/1200", "--clocks", GRID, "--per", "run",
                               "--slack", SLACKS, *words, "--json", "--quiet", status=0).stdout)
    del found["plans"][0]  # the default clocks
    return found


def width(plan):
    return plan["time_change_high_pct"] - plan["time_change_low_pct"]


def check_two_captures(one, two):
    check("one capture: split by model", one["run"][0]["anchored_pct"] > 50, one["run"][0])
    check("two captures: measured", two["run"][0]["measured_pct"] > 90, two["run"][0])
    bold = [explored("--odds", 0, *words)["plans"] for words in ((), ("--also", f"{SLOW}@1593/810"))]
    widths = [sum(width(plan) for plan in plans) for plans in bold]
    check("and narrow the intervals of time by half", widths[1] < widths[0] / 2, widths)
    # The memory clock is the GPU's own where none is said.
    short = explored("--also", f"{SLOW}@810")
    check("a core clock is enough", short["plans"] == two["plans"], (short["plans"], two["plans"]))
    spec = FOLDER / "fitted.json"
    finished(RUBATO, "calibrate", "--captures", f"{FAST}@1593/1200", f"{SLOW}@1593/810", "--gpu", GPU, "-o", spec, "--quiet", status=0)
    fitted = explored("--gpu", spec)
    for a, b in zip(fitted["plans"], two["plans"]):
        check(f"calibrate gives the same, slack {b['slack_pct']}", a["clocks"] == b["clocks"] and abs(width(a) - width(b)) < 1e-3, (a, b))


def energy_width(plan):
    return plan["energy_change_high_pct"] - plan["energy_change_low_pct"]


def check_power_of_both():
    """Energies that were read at both clocks are known better than at one or at none."""
    fast, slow = CLOCKS / "core1200.power.csv", CLOCKS / "core810.power.csv"
    words = ("--odds", 0, "--power", fast)
    none, one, both = (explored("--odds", 0, "--also", f"{SLOW}@1593/810"), explored(*words, "--also", f"{SLOW}@1593/810"),
                       explored(*words, "--also", f"{SLOW}@1593/810,power={slow}"))
    widths = [sum(energy_width(plan) for plan in found["plans"]) for found in (none, one, both)]
    check("power of both captures narrows the energies", widths[2] < 0.9 * min(widths[:2]), widths)
    check("the clock of the second is in its log", explored(*words, "--also", f"{SLOW},power={slow}")["plans"] == both["plans"])
    done = finished(RUBATO, "explore", FAST, "--gpu", GPU, "--captured-clock", "1593/1200", "--also", f"{SLOW}@810,power={slow}", "--quiet", status=2)
    check("a log of the second alone is refused", "the first capture has no power log" in done.stderr and "--power" in done.stderr, done.stderr)


def check_next(one, two):
    check("two captures need no third", "next" not in two, two.get("next"))
    best = [row for row in one["next"] if row["best"]]
    check("one clock is the best", len(best) == 1 and best[0]["saving_pct"] >= max(row["saving_pct"] for row in one["next"]) - 0.1, one["next"])
    check("it is between 0.6 and 0.92 of the captured one", all(720 <= row["core_mhz"] <= 1104 for row in one["next"]), one["next"])
    check("and narrows the time", best[0]["time_width_pct"] < best[0]["time_width_now_pct"], best)
    words = ("--gpu", GPU, "--captured-clock", "1593/1200", "--clocks", GRID, "--slack", 20, "--quiet")
    suggested = json.loads(finished(RUBATO, "suggest", FAST, *words, "--json", status=0).stdout)
    check("suggest says the same", suggested == one["next"], (suggested, one["next"]))
    text = finished(RUBATO, "suggest", FAST, *words, status=0).stdout
    check("in words, with what to lock", f"-lgc {best[0]['core_mhz']:.0f},{best[0]['core_mhz']:.0f}" in text, text)


def check_refusals():
    for words, said in ((("--also", SLOW), "the clock it was captured at is missing"), (("--also", f"{SLOW}@1593/1200"), "a capture at this clock already"),
                        (("--also", f"{SLOW}@1593/fast"), "fast"), (("--also", f"{FOLDER / 'none.json'}@810"), "none.json")):
        done = run(RUBATO, "explore", FAST, "--captured-clock", "1593/1200", *words, "--quiet")
        check(f"{words}: refused", done.returncode in (2, 3, 4) and said in done.stderr and done.stderr.count("error") == 1, done.stderr)
    done = finished(RUBATO, "explore", "gpt3-xl", "--also", f"{SLOW}@810", "--quiet", status=2)
    check("a trace has no captures", "does nothing for a trace" in done.stderr, done.stderr)
    done = finished(RUBATO, "explore", FAST, SLOW, "--also", f"{SLOW}@810", "--quiet", status=2)
    check("several ranks have no second capture", "one capture" in done.stderr, done.stderr)
    done = finished(RUBATO, "suggest", FAST, "--points", 3, "--quiet", status=2)
    check("suggest: what does nothing is refused", "does nothing for a captured run" in done.stderr, done.stderr)


def check_away_from_the_default():
    """Every change is against the default clocks: a run that was captured at others is captured at these next."""
    found = explored("--gpu", "a100-sxm4-80gb")
    check("the default clock is next", [round(row["core_mhz"]) for row in found["next"]] == [1410], found["next"])


def main():
    described = json.loads(finished(RUBATO, "gpus", "a100-sxm4-80gb", status=0).stdout)
    described["default_clock"] = {"mem": "1593", "core": 1200.0}
    GPU.write_text(json.dumps(described))
    one, two = explored(), explored("--also", f"{SLOW}@1593/810")
    check_two_captures(one, two)
    check_power_of_both()
    check_next(one, two)
    check_away_from_the_default()
    check_refusals()


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
