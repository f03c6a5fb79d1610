"""What tests of programs share: runs of a command, and a list of what is not as expected instead of an end at the first."""
import re
import subprocess

failures = []
not_checked = []  # programs that are not on this machine


def run(*command, timeout=60, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **more)


def finished(*command, status=0):
    """A run, however long, that ends as expected."""
    done = run(*command, timeout=None)
    assert done.returncode == status, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def listed_commands(text):
    """Names of the commands below one, as its --help lists them, under headings."""
    if " SUBCOMMAND" not in text:
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
