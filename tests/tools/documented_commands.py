#!/usr/bin/env python3
"""Runs every command of README.md, CONTRIBUTING.md and docs/ as a reader would, who copies it in a clone.

Commands are taken out of the documents: every line of a fenced sh block, every indented line that begins with
`rubato`, every fenced python block. A document has a scratch copy of the tree of its own, in which its commands run from
the top; all must end with status 0, and no number may read -0.00. A block that cannot run says why in a comment above it, visible in the source:

    <!-- not run: needs a GPU -->

A block of text that quotes what the command before it prints has such a comment too, and is compared line by line,
numbers with decimals to the last digit but one:

    <!-- printed by the command above -->

Of commands inside sentences (`rubato ...`) and of the examples of --help it is only checked that command and options
exist.

Usage: documented_commands.py RUBATO SOURCE_DIR
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
COPIED = ["README.md", "CONTRIBUTING.md", "docs", "tools", "models/data", "traces/data"]  # what commands may refer to
TIMEOUT_S = 60


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


class Blocks:
    """Blocks of a document: (language, lines with their numbers, reason not to run or None)."""

    def __init__(self, text):
        self.found = []
        language, block, reason = None, [], None
        for number, line in enumerate(text.splitlines(), 1):
            fence = re.match(r"```(\w*)", line)
            marker = re.fullmatch(r"<!-- not run: (.+) -->", line)
            indented = language is None and re.match(r"    (rubato .*)", line)
            if marker and language is None:
                reason = marker[1]
            elif fence and language is None:
                language, block = fence[1], []
            elif fence:
                self.found.append((language, block, reason))
                language, reason = None, None
            elif language is not None:
                block.append((number, line))
            elif indented:
                self.found.append(("sh", [(number, indented[1])], reason))
            elif line.strip():
                reason = None


def steps(text):
    """(line number, command, reason not to run or None)."""
    for language, block, reason in Blocks(text).found:
        if language == "python" and block:
            yield block[0][0], "python3 - <<'END'\n" + "\n".join(line for _, line in block) + "\nEND", reason
        elif language == "sh":
            yield from ((number, command, reason) for number, command in joined(block))


def quotes(text):
    """{line of the command: lines that it is said to print}."""
    found, last, marked, inside = {}, None, False, False
    commands = [number for number, _, reason in steps(text) if not reason]
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


def scratch_copy(folder):
    for name in COPIED:
        source = SOURCE / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "rubato").symlink_to(RUBATO)


def run_document(path):
    """Lines to print, and how many commands ran, did not run, and failed."""
    lines, ran, left_out, failed = [], 0, 0, 0
    name = path.relative_to(SOURCE)
    with tempfile.TemporaryDirectory(prefix="rubato-docs-") as temporary:
        folder = Path(temporary)
        scratch_copy(folder)
        environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": temporary,
                       "PYTHONPATH": str(SOURCE / "tools" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        text = path.read_text(encoding="utf-8")
        quoted = quotes(text)
        for number, command, reason in steps(text):
            if reason:
                left_out += 1
                lines.append(f"not run ({reason}): {name}:{number}: {command.splitlines()[0]}")
                continue
            ran += 1
            begin = time.monotonic()
            try:
                done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
                status, said = done.returncode, done.stdout[-500:] + done.stderr[-2000:]
                if minus_zero := re.search(r"(?<![\w.-])-0(\.0*)?(?![\w.])", done.stdout + done.stderr):
                    status, said = "a zero with a sign", (done.stdout + done.stderr)[max(0, minus_zero.start() - 200):][:400]
                if wrong := [line for line in quoted.get(number, []) if not prints(line, done.stdout)]:
                    status, said = "quoted otherwise", "\n".join(wrong) + "\n" + done.stdout[:1000]
            except subprocess.TimeoutExpired:
                status, said = "none", f"still running after {TIMEOUT_S} s"
            lines.append(f"{time.monotonic() - begin:6.2f} s  {name}:{number}: {command.splitlines()[0]}")
            if status != 0:
                failed += 1
                lines.append(f"FAILED {name}:{number}: status {status}\n  {command}\n{said}")
    return lines, ran, left_out, failed


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
        listed = re.search(r"\nSubcommands:\n((?:  .*\n)+)", self.text(path))
        return set(re.findall(r"^  (\S+)", listed[1], re.MULTILINE)) if listed else set()

    def options(self, path):
        """Of the command and of those below it."""
        listed = re.findall(r"^  (-\S+)", self.text(path), re.MULTILINE)
        own = {option for group in listed for option in group.split(",")}
        return own.union(*(self.options(path + (name,)) for name in self.commands(path)))

    def problem(self, command):
        """What does not exist in `rubato ...`, or None. Words in capitals and ... stand for something."""
        words = shlex.split(command.replace("...", " "))[1:]
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
    return bad, len(mentions)


def main():
    bad, mentioned = check_names()
    total = [0, 0, 0]
    for problem in bad:
        print(problem)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines, *counts in pool.map(run_document, documents()):
            for line in lines:
                print(line)
            total = [a + b for a, b in zip(total, counts)]
    ran, left_out, failed = total
    print(f"{ran} commands run, {left_out} not run for the reasons above, {failed} failed; "
          f"{mentioned} in sentences and --help checked for names, {len(bad)} of them wrong")
    # Fewer would mean that commands are no longer found, not that there are none.
    return 1 if failed or bad or ran < 40 or mentioned < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
