#!/usr/bin/env python3
"""Each option of `rubato explore` changes something for each kind of run, or is refused with a reason.

Usage: options_test.py RUBATO SOURCE_DIR
"""
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checks import check, exit_status, run  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs/examples"
KINDS = {
    "trace": ["gpt3-xl", "--granularity", "iteration,pass", "--slack", "5"],
    "table": ["--table", EXAMPLES / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb", "--granularity", "iteration,kernel", "--slack", "5"],
    "capture": [EXAMPLES / "run.pt.trace.json.gz", "--granularity", "iteration,pass", "--slack", "5"],
    "stages": ["gpt3-xl", "--stages", "4", "--slack", "5"],
    "profile": [EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84", "--slack", "5"],
}
# A value of each option, where one for all kinds does; {x} is a folder.
VALUES = {
    "--stages": "2", "--microbatches": "6", "--schedule": "gpipe", "--blocked-power": "60", "--step": "0", "--captured-clock": "1593/1305",
    "--power": EXAMPLES / "run.power.csv", "--also": f"{EXAMPLES / 'clocks/core810.pt.trace.json.gz'}@810", "--disturb": "jitter=0.2", "--comm-sms": "auto", "--goal": "edp", "--slack": "1", "--odds": "0",
    "--budget": "1W", "--prices": "kwh=0.1", "--granularity": "kernel", "--aggregation": "local", "--gpu": "a40", "--clocks": "mem=auto core=auto",
    "--power-limit": "220", "--host-power": "100", "--cluster": "dgx-a100", "--table": EXAMPLES / "a100-sweep.csv", "--switching": "latency=300ms",
    "--db": "{x}/r.db", "--plan-file": "{x}/plan.json", "--timeline": "{x}/t.json", "--output": "{x}/o.csv", "--list": "notes,kernels",
}
OTHER = {("stages", "--granularity"): "launch", ("profile", "--list"): "passes", ("profile", "--granularity"): "launch", ("capture", "--clocks"): "full"}
# A table is a kind of its own, of its own GPU; a profile says how many stages it has, and has no odds, which the answer says.
OWN = {("trace", "--table"), ("table", "--table"), ("table", "--gpu"), ("profile", "--stages"), ("profile", "--odds")}
# What bounds a search, reads damaged files or names the form of what is printed is tested where its effect can be seen.
ELSEWHERE = {"--time-limit", "--gap", "--partial", "--json", "--csv", "--json-lines", "--quiet", "--wide", "--help", "--power-gpu", "--power-period",
             "--power-zone", "--verbose"}
REASONS = re.compile(r"does nothing for a \w+: \w|does nothing: \w|there are no SMs to choose|a profile holds times of passes|is a table of its own")


def said(words, folder):
    done = run(RUBATO, "explore", *words, *(() if "--output" in map(str, words) else ("--json",)), "--quiet", cwd=folder)
    plans = json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout
    if isinstance(plans, dict):
        for row in plans["plans"]:
            row.pop("solve_time_s", None)
    return done, plans


def main():
    text = run(RUBATO, "explore", "--help").stdout
    options = set(re.findall(r"^ +(?:-\w,)?(--[a-z][a-z-]*)", text, re.MULTILINE))
    check("the options are those known here", options == set(VALUES) | (ELSEWHERE & options), options ^ (set(VALUES) | (ELSEWHERE & options)))
    check("there are about 35", len(options - {"--help", "--quiet", "--wide"}) <= 40, len(options))
    with tempfile.TemporaryDirectory() as folder:
        for kind, words in KINDS.items():
            done, usual = said(words, folder)
            check(f"{kind}: works", done.returncode == 0, done.stderr)
            for option, value in VALUES.items():
                if (kind, option) in OWN:
                    continue
                value = str(OTHER.get((kind, option), value)).format(x=folder)
                kept = list(words)
                if option in kept:  # its value in place of the other one
                    at = kept.index(option)
                    del kept[at:at + 2]
                if option == "--stages" and "--granularity" in kept:
                    at = kept.index("--granularity")
                    del kept[at:at + 2]
                if option in ("--goal", "--budget", "--prices") and "--slack" in kept:
                    at = kept.index("--slack")
                    del kept[at:at + 2]
                for old in Path(folder).iterdir():
                    os.unlink(old)
                done, found = said([*kept, option, value], folder)
                what = f"{kind} {option} {value}"
                if done.returncode == 2:
                    check(f"{what}: refused with a reason", REASONS.search(done.stderr) is not None, done.stderr)
                    continue
                check(f"{what}: works", done.returncode in (0, 1), (done.returncode, done.stderr))
                check(f"{what}: changes something", found != usual or any(Path(folder).iterdir()), "the same")
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
