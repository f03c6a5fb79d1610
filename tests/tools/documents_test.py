#!/usr/bin/env python3
"""README.md, CONTRIBUTING.md and docs/ as they are read: no line of prose is too long, and every picture is shown. `rubato help terms`
explains every column of a table of plans and every mark.

Usage: documents_test.py RUBATO SOURCE_DIR
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status, finished

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs" / "examples"
LONGEST = 120
DOCUMENTS = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]


def prose(text):
    """Lines that are no code and no table, with their numbers; a link counts as its words."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "![")) and not line.lstrip().startswith("|"):
            yield number, re.sub(r"\]\([^)]*\)|<!--.*?-->", "]", line)


def check_lines():
    wide = [f"{path.relative_to(SOURCE)}:{number}: {len(line)} characters" for path in DOCUMENTS
            for number, line in prose(path.read_text(encoding="utf-8")) if len(line) > LONGEST]
    check(f"no line of prose has more than {LONGEST} characters", not wide, wide)
    made = "word " * 40
    check("a long line is found, in a list too", [number for number, line in prose(f"{made}\n- {made}\n| {made} |\n```\n{made}\n```\n    {made}\n[a]({made})")
                                                  if len(line) > LONGEST] == [1, 2])


def check_pictures():
    shown = {(path.parent / link).resolve() for path in DOCUMENTS for link in re.findall(r"!\[[^]]*\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8"))}
    there = {path.resolve() for path in (SOURCE / "docs" / "pictures").iterdir()}
    check("documents show every picture that there is", shown == there, [path.name for path in shown ^ there])


def terms():
    """{heading: {word: meaning}} of `rubato help terms`."""
    found = {}
    for line in finished(RUBATO, "help", "terms", "--wide").stdout.splitlines():
        if line.startswith("  "):
            word, meaning = re.split(r" {2,}", line.strip(), maxsplit=1)
            list(found.values())[-1][word] = meaning
        elif line:
            found[line] = {}
    return found


def check_terms():
    columns, sources, marks = terms().values()
    words = {word for group in columns for word in group.split(", ")}
    runs = (["gpt3-xl", "--slack", "1,5"], ["gpt3-xl", "--gpu", "h100-sxm5", "--goal", "cost", "--prices", "kwh=0.12,gpu-hour=2"],
            [EXAMPLES / "run.pt.trace.json.gz", "--slack", "5", "--per", "run,kernel", "--clocks", "coarse"],
            [EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84"])
    said = set()
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "r.db"
        for run in runs:
            done = finished(RUBATO, "explore", *run, "--odds", "0", "--db", db, "--wide").stdout
            head = next(line for line in done.splitlines() if line.startswith("one clock for"))
            titles = set(re.split(r" {2,}", head.strip()))
            check(f"every column of {run[0]} is explained", titles <= words, titles - words)
        for row in json.loads(finished(RUBATO, "query", "--db", db, "--json", "SELECT DISTINCT kind FROM v_caveats").stdout):
            said.add(row["kind"])
        shares = json.loads(finished(RUBATO, "query", "--db", db, "--json", "SELECT * FROM v_trust LIMIT 1").stdout)[0]
    check("every mark of these runs is explained", said and said <= set(marks), said - set(marks))
    known = {name.removesuffix("_pct") for name in shares if name.endswith("_pct")} - {"guessed_split"}
    check("every source of times is explained", known == set(sources), known ^ set(sources))
    for columns_wide in ("80", "100"):
        text = subprocess.run([RUBATO, "help", "terms"], text=True, capture_output=True, env={**os.environ, "COLUMNS": columns_wide}).stdout
        check(f"help terms fits {columns_wide} columns", max(map(len, text.splitlines())) <= int(columns_wide))


check_lines()
check_pictures()
check_terms()
sys.exit(exit_status())
