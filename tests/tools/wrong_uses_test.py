#!/usr/bin/env python3
"""Every wrong use of wrong_uses.txt: its exit status, a message that says what was wrong, nothing on standard output, no wait.

Usage: wrong_uses_test.py RUBATO SOURCE_DIR
"""
import concurrent.futures
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TIMEOUT_S = 120
LONGEST_LINE = 400  # of a message: lists of names are long, dumps are longer


def cases():
    for number, line in enumerate((Path(__file__).parent / "wrong_uses.txt").read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            status, command, text = (part.strip() for part in line.split(" | "))
            yield number, int(status), command, text


def prepare(folder):
    """What the commands refer to: a stored run, a captured run, and files that are something else."""
    shutil.copy(SOURCE / "docs/examples/run.pt.trace.json.gz", folder)
    shutil.copy(SOURCE / "docs/examples/a100-sweep.csv", folder / "sweep.csv")
    (folder / "text.csv").write_text("a,b\n")
    (folder / "file.txt").write_text("x")
    (folder / "bad.json").write_text('{"schema": 1')
    (folder / "empty.json").write_text("")
    subprocess.run([RUBATO, "explore", "--per", "run", "--db", "r.db"], cwd=folder, check=True, capture_output=True)


def problems(folder, case):
    number, status, command, text = case
    where = f"wrong_uses.txt:{number}: rubato {command}:"
    try:
        done = subprocess.run([RUBATO, *shlex.split(command)], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return [f"{where} still runs after {TIMEOUT_S} s"]
    message = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    found = []
    if done.returncode != status:
        found.append(f"{where} status {done.returncode}, expected {status}: {done.stderr}")
    if text not in done.stderr:
        found.append(f"{where} expected: {text}\n  found: {done.stderr}")
    if not message or not message[0].startswith("error: ") or any(not line.startswith(("error: ", "  in: ", "  hint: ")) for line in message):
        found.append(f"{where} no message like the others: {done.stderr}")
    if status in (2, 3) and not any(line.startswith("  hint: ") for line in message):
        found.append(f"{where} does not say what to do next: {done.stderr}")
    if done.stdout:
        found.append(f"{where} writes to standard output: {done.stdout[:200]}")
    if any(len(line) > LONGEST_LINE for line in message):
        found.append(f"{where} a line of {max(map(len, message))} characters")
    return found


def main():
    listed = list(cases())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        before = sorted(os.listdir(folder))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = [problem for some in pool.map(lambda case: problems(folder, case), listed) for problem in some]
        left = sorted(set(os.listdir(folder)) - set(before) - {"r.db-shm", "r.db-wal"})
        if left:
            found.append(f"wrong uses leave files: {left}")
    print("\n".join([*found, f"{len(listed)} wrong uses, {len(found)} problems"]))
    return 1 if found or len(listed) < 97 else 0


if __name__ == "__main__":
    sys.exit(main())
