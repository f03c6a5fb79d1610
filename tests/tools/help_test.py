#!/usr/bin/env python3
"""What --help says, of every command that there is: it fits its width, options stand in groups, three examples end it.

Usage: help_test.py RUBATO
"""
import os
import re
import subprocess
import sys
from pathlib import Path

from checks import check, exit_status, listed_commands

RUBATO = Path(sys.argv[1]).resolve()
MOST_IN_GROUP = 12  # options that a reader takes in at once
MOST_SHOWN = 40  # options of one command without --help-all
EXAMPLES = r"(?:^|\n)(?:  )?(?:\$ )?(rubato [a-z].*|sudo .*rubato .*)"


def help_of(path, *words, columns=100):
    done = subprocess.run([RUBATO, *path, *words], text=True, capture_output=True, env={**os.environ, "COLUMNS": str(columns)})
    check(f"rubato {' '.join((*path, *words))} has help", done.returncode == 0, done.stderr)
    return done.stdout


def groups_of(text):
    """{heading: options below it}."""
    found, heading = {}, None
    for line in text.splitlines():
        if re.fullmatch(r"[A-Za-z][\w ,]*:?", line):
            heading = line
        elif heading and re.match(r"  -{1,2}\w", line):
            found.setdefault(heading, []).append(line.split()[0])
    return found


def check_help(path, text):
    name = f"help of rubato {' '.join(path)}"
    for columns in (80, 100):
        wide = [line for line in (text if columns == 100 else help_of(path, "--help", columns=columns)).splitlines()
                if len(line) > columns and not (columns < 100 and " rubato " in line)]  # a line to type stays whole
        check(f"{name} fits {columns} columns", not wide, wide)
    check(f"{name} has no blanks at the ends of lines", not re.search(r"[ \t]$", text, re.MULTILINE))
    examples = re.findall(r"^  ((?:sudo (?:-E )?)?rubato .*)$", text.partition("\nExamples\n")[2], re.MULTILINE)
    check(f"{name} ends in three examples", len(examples) >= 3, examples)
    own = [line for line in examples if f"rubato {' '.join(path)}".strip() in line]
    check(f"{name} has examples of it", len(own) >= min(2, len(examples)), examples)
    for heading, options in groups_of(text).items():
        check(f"{name}: '{heading}' can be taken in at once", len(options) <= MOST_IN_GROUP, options)
    shown = sum(map(len, groups_of(text).values()))
    check(f"{name} shows at most {MOST_SHOWN} options", shown <= MOST_SHOWN, shown)


def all_commands(path=()):
    text = help_of(path, "--help")
    yield path, text
    below = re.search(r"^usage: .*?\{([a-z,]+)\}", text, re.DOTALL)  # of the Python package
    for name in below[1].split(",") if below else listed_commands(text):
        yield from all_commands((*path, name))


def main():
    commands = dict(all_commands())
    check("there are as many commands as ever", len(commands) > 45, len(commands))
    for path, text in commands.items():
        check_help(path, text)
    check("commands stand in four groups", re.findall(r"^[A-Z][\w ]+$", commands[()], re.MULTILINE)[:4] == ["Plan", "Data and models", "Results", "On the GPU"])
    explore, whole = commands[("explore",)], help_of(("explore",), "--help-all")
    check("the question comes first", list(groups_of(explore))[0] == "Question")
    check("explore shows about 35 options", sum(map(len, groups_of(explore).values())) <= 35)
    check("--help-all adds rare options", set(re.findall(r"--[\w-]+", explore)) < set(re.findall(r"--[\w-]+", whole)) and "--power-zone" in whole and "--power-zone" not in explore)
    alone = subprocess.run([RUBATO], text=True, capture_output=True)
    check("rubato alone asks what one has", alone.returncode == 0 and "What do you have?" in alone.stdout and not alone.stderr)
    for line in re.findall(r"  (rubato [a-z].*)", alone.stdout):
        check(f"'{line}' is a command", (line.split()[1],) in commands or line.split()[1:3] == ["help", "terms"])
    versions = {subprocess.run([RUBATO, word], text=True, capture_output=True).stdout for word in ("version", "-V", "--version")}
    check("version, -V and --version say the same", len(versions) == 1 and re.match(r"rubato \d", min(versions)), versions)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
