#!/usr/bin/env python3
"""The first tasks of README.md, each typed as it stands there: at most three commands, which must do what the task says.

The commands are taken out of the table, in order, and run in one copy of the examples on a simulated GPU. A task without a check here,
or a check without its task, is an error.

Usage: first_tasks_test.py RUBATO SOURCE_DIR [LIBRARY]; LIBRARY: the stand-in for libnvidia-ml.so.1
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status, not_checked

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
LIBRARY = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
MOST_COMMANDS = 3
GPU_LINE = r"(?m)^nvidia-smi -i \d+ (-lgc \d+,\d+|-rgc)$"
# What the last command of a task must print.
CHECKS = {
    "plan my capture": r"(?m)^Set +\S[\s\S]*^Saves +[\d.]+ % energy",
    "which clock on which GPU": GPU_LINE,
    "set it": r"(?m)^nvidia-smi( -i \d+)? -lgc \d+,\d+",
    "check that it saved": r"Measured: energy -[\d.]+ %",
    "does it pay off": r"The training run takes ",
    "compare two GPUs": r"(?m)^Run 2 uses [\s\S]*GPU a100-sxm4-80gb -> ",
    "what does a switch cost here": r"MHz[\s\S]* ms",
    "a model that I have no capture of": r"(?m)^Planned +\S+ on NVIDIA H100",
    "a pipeline": r"(?m)^Planned[\s\S]*8 stages[\s\S]*^Saves +[\d.]+ % energy",
    "my own GPU": r"(?m)^Planned +gpt3-xl on My A100",
    "many questions": r"Best answer by energy: run \d+",
    "ask with SQL": r"(?m)^forward +-[\d.]+",
}


def tasks():
    """{task: its commands} of the table below 'First tasks'."""
    part = (SOURCE / "README.md").read_text(encoding="utf-8").partition("## First tasks\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.*) \|$", part, re.MULTILINE)[2:]
    return {name: [command.replace("\\|", "|") for command in re.findall(r"`((?:sudo -E )?rubato [^`]+)`", cell)] for name, cell in rows}


def environment_of(folder):
    """A shell in a copy of the examples, where `rubato` is the program, sudo needs no rights and the GPU is simulated."""
    (folder / "bin").mkdir()
    (folder / "bin" / "rubato").symlink_to(RUBATO)
    (folder / "bin" / "sudo").write_text("#!/bin/sh\n[ \"$1\" != -E ] || shift\nexec \"$@\"\n")
    (folder / "bin" / "sudo").chmod(0o755)
    shutil.copytree(SOURCE / "docs/examples", folder / "docs/examples", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "HOME": str(folder), "COLUMNS": "100", "PYTHONPATH": str(SOURCE / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    if LIBRARY:
        sys.path[:0] = [str(SOURCE / "tests/tools/python")]
        from simulated.machine import Machine

        environment.update(Machine(LIBRARY, folder).environment())
    return {**environment, "PATH": f"{folder / 'bin'}:{environment['PATH']}"}


def main():
    found = tasks()
    check("README has the tasks of this test", set(found) == set(CHECKS), set(found) ^ set(CHECKS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_of(folder)
        for task, commands in found.items():
            check(f"'{task}' takes at most {MOST_COMMANDS} commands", 0 < len(commands) <= MOST_COMMANDS, commands)
            if not LIBRARY and any(command.startswith("sudo") for command in commands):
                not_checked.append(task)
                continue
            shown = ""
            for command in commands:
                done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment, text=True, capture_output=True,
                                      stdin=subprocess.DEVNULL)
                differs = command.startswith("rubato compare") and done.returncode == 1  # says that the runs differ
                check(f"'{task}': {command}", done.returncode == 0 or differs, done.stdout[-500:] + done.stderr[-1000:])
                shown = done.stdout
            check(f"'{task}' is answered", re.search(CHECKS.get(task, "$^"), shown), json.dumps(shown[:1500]))
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
