#!/usr/bin/env python3
"""Rubato beside the programs of its field from the package index, where `tools/setup --python` has installed them: each is used as its
users do, and has to say the same. What is not there is skipped, and said.

Usage: neighbours_test.py LIBRARY RUBATO; runs itself again with the Python of build/neighbours where that is.
"""

import os
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[3] / "build" / "neighbours"
if (ENVIRONMENT / "bin/python").exists() and Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
    os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), "-B", *sys.argv])

from neighbours.needs import there  # noqa: E402
from neighbours.plans import Answers, Oracles, Tables  # noqa: E402,F401
from neighbours.runs import Captures, Energy, Notebook, Pipelines, Profiles, Timelines, Trainers  # noqa: E402,F401
from parts import run_tests  # noqa: E402

if __name__ == "__main__":
    if not there:
        print("skipped: no neighbour is installed (tools/setup --python)")
        sys.exit(77)
    print("beside", ", ".join(sorted(there)))
    run_tests()
