#!/usr/bin/env python3
"""A law of searches: who may choose from more clocks never saves less. Runs of all kinds on several GPUs, with the first grid of a spec and with all its clocks.

Usage: more_clocks_test.py RUBATO SOURCE_DIR
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checks import check, exit_status, finished  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
# Passes of stages and segments are searched, not solved: what may be lost, in points of energy. All else is exact.
SEARCHED, LOST = {("stages", "pass"), ("capture", "segment"), ("capture", "kernel"), ("capture", "pass")}, 0.3
KINDS = {
    "trace": ["gpt3-xl", "--per", "run,pass,kernel"],
    "stages": ["gpt3-xl", "--stages", "4", "--per", "run,stage,pass"],
    "capture": [SOURCE / "docs/examples/run.pt.trace.json.gz", "--per", "run,segment"],
}
GPUS = {"rtx-3080-ti": "paper", "h100-sxm5": "coarse", "rtx-5090": "coarse", "a100-sxm4-80gb": "coarse", "a40": "coarse", "v100-pcie": "coarse"}


def energies(kind, gpu, grid):
    done = finished(RUBATO, "explore", *KINDS[kind], "--gpu", gpu, "--slack", "0,2,5", "--odds", "0", "--json", *(["--clocks", grid] if grid else []))
    return {(plan["granularity"], plan["slack_pct"]): plan["energy_change_pct"] for plan in json.loads(done.stdout)["plans"] if plan["slack_pct"] is not None}


for kind in KINDS:
    for gpu, few in GPUS.items() if kind != "capture" else [("a100-sxm4-80gb", "coarse")]:
        of_all, of_few = energies(kind, gpu, None), energies(kind, gpu, few)
        check(f"{kind} on {gpu}: the same questions", of_all.keys() == of_few.keys() and of_all, (of_all, of_few))
        for question, change_pct in of_all.items():
            lost = LOST if (kind, question[0]) in SEARCHED else 1e-6
            check(f"{kind} on {gpu}, {question}: all clocks save as much as '{few}'", change_pct <= of_few[question] + lost, (change_pct, of_few[question]))
sys.exit(exit_status())
