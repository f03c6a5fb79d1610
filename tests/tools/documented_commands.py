#!/usr/bin/env python3
"""Runs every command of README.md, CONTRIBUTING.md and docs/ as a reader would, who copies it in a clone.

Commands are taken out of the documents: every line of a fenced sh block, every indented line that begins with
`rubato`, every fenced python block. A document has a scratch copy of the tree of its own, in which its commands run from
the top; all must end with status 0, and no number may read -0.00. A block that cannot run as it stands says so in a
comment above it, visible in the source:

    <!-- not run: needs a GPU -->
    <!-- run by tests/tools/packaging/fresh_root.sh -->
    <!-- on a simulated GPU -->
    <!-- on a simulated GPU, after: import rubato; data = [1, 2] -->

The second names a test that does the same with what the block needs; it must exist. On a simulated GPU (the driver's
library of tests/tools/python) sudo does nothing, and Python blocks may need what the text around them has made.

A block of text that quotes what the command before it prints has such a comment too, and is compared line by line,
numbers with decimals to the last digit but one:

    <!-- printed by the command above -->

Of commands inside sentences (`rubato ...`) and of the examples of --help it is only checked that command and options
exist; of paths inside sentences (`explorer/graph/planner`, a unit without its ending) that they do.

Usage: documented_commands.py RUBATO SOURCE_DIR [LIBRARY]; LIBRARY: the stand-in for libnvidia-ml.so.1
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from checks import listed_commands

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
LIBRARY = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
COPIED = ["README.md", "CONTRIBUTING.md", "docs", "tools", "models/data", "traces/data"]  # what commands may refer to
CPU_LIMIT_S = 60  # of each process: beside others it takes longer, not more
WALL_LIMIT_S = 400  # for what waits


def documents():
    return [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]


def joined(lines):
    """(line number, command), with lines that end in a backslash put together; without comments and empty lines."""
    command, first = "", 0
    for number, line in lines:
        first = first if command else number
        command += line.strip() + "\n"
        if command.endswith("\\\n"):
            continue
        if command.strip() and not command.startswith("#"):
            yield first, command.strip()
        command = ""


class Block(NamedTuple):
    """Lines with their numbers, and what the comment above says: why it is left out, or with what it runs."""

    language: str
    lines: list
    reason: str = ""  # not run
    test: str = ""  # run by it
    simulated: bool = False
    before: str = ""  # Python


MARKERS = (r"not run: (?P<reason>.+)", r"run by (?P<test>\S+)", r"on a simulated GPU(?P<simulated>)(?:, after: (?P<before>.+))?")


def marked(line):
    """What a comment says of the block below it; {} of any other line."""
    found = re.fullmatch(r"<!-- (?:" + "|".join(MARKERS) + r") -->", line)
    said = found.groupdict() if found else {}
    return {**{key: value for key, value in said.items() if value}, **({"simulated": True} if said.get("simulated") is not None else {})}


def blocks(text):
    language, lines, marks = None, [], {}
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"```(\w*)", line)
        indented = language is None and re.match(r"    (rubato .*)", line)
        if language is None and marked(line):
            marks = marked(line)
        elif fence and language is None:
            language, lines = fence[1], []
        elif fence:
            yield Block(language, lines, **marks)
            language, marks = None, {}
        elif language is not None:
            lines.append((number, line))
        elif indented:
            yield Block("sh", [(number, indented[1])], **marks)
        elif line.strip():
            marks = {}


def steps(text):
    """(line number, command, its block)."""
    for block in blocks(text):
        if block.language == "python" and block.lines:
            code = "".join(f"{line.strip()}\n" for line in block.before.split(";")) + "\n".join(line for _, line in block.lines)
            yield block.lines[0][0], f"python3 - <<'END'\n{code}\nEND", block
        elif block.language == "sh":
            yield from ((number, command, block) for number, command in joined(block.lines))


def left_out(block):
    """Why a block is not run here, or None."""
    if block.test:
        return f"run by {block.test}"
    return block.reason or ("no simulated GPU given" if block.simulated and not LIBRARY else None)


def quotes(text):
    """{line of the command: lines that it is said to print}."""
    found, last, marked, inside = {}, None, False, False
    commands = [number for number, _, block in steps(text) if not left_out(block)]
    for number, line in enumerate(text.splitlines(), 1):
        last = number if number in commands else last
        if line == "<!-- printed by the command above -->":
            marked = True
        elif line.startswith("```") and (marked or inside):
            inside, marked = not inside, False
        elif inside:
            found.setdefault(last, []).append(line)
    return found


DECIMAL = r"[+-]?\d+\.\d+"


def prints(line, printed):
    """Whether a line was printed, numbers with decimals to ten units of the last place."""
    for other in printed.splitlines():
        ours, theirs = re.findall(DECIMAL, line), re.findall(DECIMAL, other)
        if re.sub(DECIMAL, "#", line) == re.sub(DECIMAL, "#", other.rstrip()) and all(
                abs(float(a) - float(b)) <= 10.01 * 10 ** -len(a.split(".")[1]) for a, b in zip(ours, theirs)):
            return True
    return False


def sentences(text):
    """(line number, command) of `rubato ...` inside sentences."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, command) for command in re.findall(r"(?<!`)`(rubato [^`]+)`", line))


LAYERS = "common|traces|models|sim|explorer|tools|tests|bench|docs"
NOT_PATHS = {"docs/testing.md"}  # names of tests look like paths there


def wrong_paths(path):
    """Paths of this tree inside sentences that lead nowhere. `schema_N.sql` stands for several."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for name in re.findall(rf"`((?:{LAYERS})/[\w./-]+)`", line):
            if not any((SOURCE / (name + ending)).exists() for ending in ("", ".hpp", ".cpp")) and "schema_N" not in name:
                yield f"FAILED {path.relative_to(SOURCE)}:{number}: there is no {name}"


def scratch_copy(folder):
    for name in COPIED:
        source = SOURCE / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "rubato").symlink_to(RUBATO)


def simulated_gpu(folder):
    """Environment with an A100 of the tests behind the driver's library, and a sudo that needs no rights."""
    sys.path[:0] = [str(SOURCE / "tests" / "tools" / "python")]
    from simulated.machine import Machine

    (folder / "root").mkdir()
    (folder / "root" / "sudo").write_text("#!/bin/sh\n[ \"$1\" != -E ] || shift\nexec \"$@\"\n")
    (folder / "root" / "sudo").chmod(0o755)
    with ALONE:  # it also sets variables of this process
        machine = Machine(LIBRARY, folder)
        return machine.environment()


ALONE = threading.Lock()


def run(command, folder, environment):
    """(status, what was printed on standard output, all that was printed)."""
    limited = f"ulimit -t {CPU_LIMIT_S}\n{command}"
    try:
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", limited], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=WALL_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"none after {WALL_LIMIT_S} s", "", ""
    out_of_time = done.returncode in (128 + signal.SIGXCPU, 128 + signal.SIGKILL, -signal.SIGXCPU)
    return f"more than {CPU_LIMIT_S} s of CPU time" if out_of_time else done.returncode, done.stdout, done.stdout + done.stderr


def problem_of(status, printed, said, quoted):
    """(what is wrong, text that shows it), or None."""
    if status != 0:
        return f"status {status}", said[-2500:]
    if minus_zero := re.search(r"(?<![\w.-])-0(\.0*)?(?![\w.])", said):
        return "a zero with a sign", said[max(0, minus_zero.start() - 200):][:400]
    if wrong := [line for line in quoted if not prints(line, printed)]:
        return "quoted otherwise", "\n".join(wrong) + "\n" + printed[:1000]
    return None


class Counts(NamedTuple):
    ran: int = 0
    elsewhere: int = 0  # by a test of their own
    left_out: int = 0
    failed: int = 0


def run_document(path):
    """Lines to print, and Counts."""
    lines, counts = [], Counts()
    name = path.relative_to(SOURCE)
    with tempfile.TemporaryDirectory(prefix="rubato-docs-") as temporary:
        folder = Path(temporary)
        scratch_copy(folder)
        environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": temporary,
                       "PYTHONPATH": str(SOURCE / "tools" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        text = path.read_text(encoding="utf-8")
        quoted, gpu = quotes(text), {}
        for number, command, block in steps(text):
            where = f"{name}:{number}: {command.splitlines()[0]}"
            missing = block.test and not (SOURCE / block.test).is_file()
            if (reason := left_out(block)) and not missing:
                counts = counts._replace(elsewhere=counts.elsewhere + 1) if block.test else counts._replace(left_out=counts.left_out + 1)
                lines.append(f"{reason}: {where}" if block.test else f"not run ({reason}): {where}")
                continue
            if block.simulated and not gpu:
                gpu = {**simulated_gpu(folder), "PATH": f"{folder / 'root'}:{environment['PATH']}"}
            begin = time.monotonic()
            wrong = (f"there is no test {block.test}", "") if missing else problem_of(
                *run(command, folder, {**environment, **(gpu if block.simulated else {})}), quoted.get(number, []))
            lines.append(f"{time.monotonic() - begin:6.2f} s  {where}")
            counts = counts._replace(ran=counts.ran + 1, failed=counts.failed + bool(wrong))
            if wrong:
                lines.append(f"FAILED {name}:{number}: {wrong[0]}\n  {command}\n{wrong[1]}")
    return lines, counts


class Help:
    """What commands and options there are, by --help."""

    def __init__(self):
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            done = subprocess.run([RUBATO, *path, "--help"], text=True, capture_output=True, check=True)
            self.texts[path] = done.stdout
        return self.texts[path]

    def commands(self, path):
        return set(listed_commands(self.text(path)))

    def options(self, path):
        """Of the command and of those below it."""
        listed = re.findall(r"^  (\S+(?: \S+)*)(?:  |$)", self.text(path), re.MULTILINE)
        own = {option for names in listed for option in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", names)}
        return own.union(*(self.options(path + (name,)) for name in self.commands(path)))

    def problem(self, command):
        """What does not exist in `rubato ...`, or None. Words in capitals and ... stand for something."""
        words = shlex.split(command.replace("...", " "))[1:]
        if words[:1] == ["help"]:
            words = [] if words[1:] == ["terms"] else words[1:]
        path = ()
        while words and words[0] in self.commands(path):
            path += (words.pop(0),)
        if self.commands(path) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
            return f"no command '{words[0]}' in 'rubato {' '.join(path)}'"
        for word in words:
            if word in ("|", ">", "&&", ";"):
                break
            option = word.split("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", option) and option not in self.options(path):
                return f"no option '{option}' in 'rubato {' '.join(path)}'"
        return None

    def all_commands(self, path=()):
        yield path
        for name in sorted(self.commands(path)):
            yield from self.all_commands(path + (name,))


def check_names():
    helped = Help()
    mentions = [(f"{path.relative_to(SOURCE)}:{number}", command) for path in documents()
                for number, command in sentences(path.read_text(encoding="utf-8"))]
    for path in helped.all_commands():
        examples = re.findall(r"^  (rubato .*)$", helped.text(path), re.MULTILINE)
        mentions += [(f"rubato {' '.join(path)} --help", command) for command in examples]
    problems = [(where, command, helped.problem(command)) for where, command in mentions]
    bad = [f"FAILED {where}: {problem}\n  {command}" for where, command, problem in problems if problem]
    for path in documents():
        if str(path.relative_to(SOURCE)) not in NOT_PATHS and "decisions" not in path.parts:
            bad += wrong_paths(path)
    return bad, len(mentions)


def main():
    only = os.environ.get("RUBATO_DOCUMENTS")  # for trying: names, with commas
    bad, mentioned = check_names()
    total = Counts()
    for problem in bad:
        print(problem)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines, counts in pool.map(run_document, [path for path in documents() if not only or path.name in only.split(",")]):
            print(*lines, sep="\n", end="\n" if lines else "")
            total = Counts(*map(sum, zip(total, counts)))
    print(f"{total.ran} commands run, {total.elsewhere} run by other tests, {total.left_out} not run for the reasons above, {total.failed} failed; "
          f"{mentioned} in sentences and --help checked for names, {len(bad)} of them wrong")
    # Fewer would mean that commands are no longer found, not that there are none.
    return 1 if total.failed or bad or (not only and total.ran < 120) or mentioned < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
