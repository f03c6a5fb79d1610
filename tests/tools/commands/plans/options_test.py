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
    "trace": ["gpt3-xl", "--per", "run,pass", "--slack", "5"],
    "table": ["--table", EXAMPLES / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb", "--per", "run,kernel", "--slack", "5"],
    "capture": [EXAMPLES / "run.pt.trace.json.gz", "--per", "run,pass", "--slack", "5", "--clocks", "coarse"],
    "stages": ["gpt3-xl", "--stages", "4", "--slack", "5", "--gpu", "a100-sxm4-80gb", "--clocks", "coarse"],
    "profile": [EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84", "--slack", "5"],
}
# A value of each option, where one for all kinds does; {x} is a folder.
VALUES = {
    "--stages": "2", "--microbatches": "6", "--schedule": "gpipe", "--blocked-power": "60", "--step": "0", "--step-time": "0.9", "--captured-clock": "1593/1305",
    "--power": EXAMPLES / "run.power.csv", "--also": f"{EXAMPLES / 'clocks/core810.pt.trace.json.gz'}@810", "--disturb": "jitter=0.2", "--comm-sms": "auto", "--goal": "edp", "--slack": "1", "--odds": "0",
    "--budget": "1W", "--prices": "kwh=0.1", "--per": "kernel", "--aggregation": "local", "--gpu": "a40", "--clocks": "mem=auto core=auto",
    "--power-limit": "220", "--power-limits": "200,250", "--host-power": "100", "--cluster": "dgx-a100", "--table": EXAMPLES / "a100-sweep.csv", "--switching": "latency=300ms",
    "--db": "{x}/r.db", "--plan-file": "{x}/plan.json", "--timeline": "{x}/t.json", "--output": "{x}/o.csv", "--list": "notes,kernels",
}
KERNELS = Path(tempfile.mkdtemp()) / "kernels.csv"  # of the capture, at two clocks
OTHER = {("profile", "--list"): "passes", ("capture", "--clocks"): "mem=1593 core=1005,1200,auto", ("stages", "--clocks"): "mem=1593 core=1005,1200,auto", ("capture", "--table"): KERNELS}
# A table is a kind of its own, of its own GPU; a profile says how many stages it has, and has no odds, which the answer says.
OWN = {("trace", "--table"), ("table", "--table"), ("table", "--gpu"), ("profile", "--stages"), ("profile", "--odds")}
# What bounds a search, reads damaged files or a server's, or names the form of what is printed is tested where its effect can be seen.
ELSEWHERE = {"--time-limit", "--gap", "--partial", "--phase", "--json", "--csv", "--json-lines", "--quiet", "--wide", "--help", "--help-all", "--power-gpu", "--power-period",
             "--power-zone", "--verbose"}
REASONS = re.compile(r"does nothing for a \w+: \w|does nothing: \w|there are no SMs to choose|a profile holds times of passes|is a table of its own|are of whole steps")


def said(words, folder):
    done = run(RUBATO, "explore", *words, *(() if "--output" in map(str, words) else ("--json",)), "--quiet", cwd=folder)
    plans = json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout
    if isinstance(plans, dict):
        for row in plans["plans"]:
            row.pop("solve_time_s", None)
    return done, plans


def write_kernels():
    rows = json.loads(run(RUBATO, "explore", *KINDS["capture"][:1], "--per", "run", "--slack", "5", "--list", "kernels", "--json", "--quiet").stdout)["kernels"]
    KERNELS.write_text("kernel,mem_mhz,core_mhz,time_s,power_w\n" + "".join(
        f'"{row["kernel"]}",1593,{mhz},{row["time_s"] / row["launches"]},{100 + 0.1 * mhz}\n' for row in rows for mhz in (1410, 1005)))


def main():
    write_kernels()
    text = run(RUBATO, "explore", "--help-all").stdout
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", text, re.MULTILINE))
    check("the options are those known here", options == set(VALUES) | (ELSEWHERE & options), options ^ (set(VALUES) | (ELSEWHERE & options)))
    check("there are about 35", len(options - {"--help", "--help-all", "--quiet", "--wide"}) <= 41, len(options))
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
                if option == "--stages" and "--per" in kept:
                    at = kept.index("--per")
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
