"""What tests of programs share: runs of a command, and a list of what is not as expected instead of an end at the first."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

failures = []
not_checked = []  # programs that are not on this machine


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


def finished(*command, status=0):
    """A run, however long, that ends as expected. explore may end with 1: every plan is late once switches count."""
    done = run(*command)
    assert done.returncode in ((0, 1) if status == 0 and command[1] == "explore" else (status,)), f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def cpu_s(process):
    """What a process that nobody has waited for yet has used, also when it is over."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_begun(process):
    """Until a program handles Ctrl-C, however long that takes beside others, or is over."""
    while process.poll() is None:
        caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        if int(caught[1], 16) >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.002)


def listed_commands(text):
    """Names of the commands below one, as its --help lists them, under headings."""
    if " COMMAND" not in text:
        return []
    return re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", text, re.MULTILINE)


def check(what, condition, said=""):
    if not condition:
        failures.append(what)
        print("failed:", what, said)


def exit_status():
    """Says how it went."""
    print(f"{len(failures)} failed; not here, so not asked: {', '.join(sorted(set(not_checked))) or 'none'}")
    return 1 if failures else 0
