#!/usr/bin/env python3
"""The screenshots of README.md and docs, from the examples: docs/pictures/*.png.

Usage: screenshots.py RUBATO FOLDER
"""
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser

RUBATO, FOLDER = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SOURCE = Path(__file__).resolve().parents[2]
WIDTH = 960
CAPTURE = "docs/examples/run.pt.trace.json.gz"
PROFILE = "docs/examples/gpt3-175b-a100.csv"
# Name, what ends the picture, commands; the page is {page}, a database {db}. CHARTS alone: without the rest of the page and its buttons.
CHARTS = "main section:nth-of-type(2) .panels"
PICTURES = [
    ("report-captured", "#front", [f"explore {CAPTURE} --slack 5 --db {{db}}", "report --db {db} -o {page}"]),
    ("report-paper", "#front", ["explore gpt3-xl --slack 5 --db {db}", "report --db {db} -o {page}"]),
    ("report-pipeline", "#gantt", [f"explore {PROFILE} --blocked-power 83.64 --slack 0,5 --timeline {{page}}"]),
    ("latency", CHARTS, ["latency-scan gpt3-xl --page {page}"]),
    ("transfer", CHARTS, ["explore gpt3-xl --per kernel --odds 0 --db {db}", "transfer --db {db} --plan 1 --batches 1,5,10,20,40 --tp 1,2,4,8,16 --page {page}"]),
    ("scale-h100", CHARTS, ["trace scale llama3-70b --seq 8192 --batch 1 --zero 1 --cluster hgx-h100 --gpu h100-sxm5 --tp 8 --pp 1,4,16 --dp 1,16,256 --page {page}"]),
    ("report-experiment", "#front", ["experiment run docs/examples/experiment.toml --db {db}", "report --db {db} --experiment latest -o {page}"]),
]


def main():
    with tempfile.TemporaryDirectory() as temporary, Browser() as browser:
        for name, until, commands in PICTURES:
            page, db = Path(temporary) / f"{name}.html", Path(temporary) / f"{name}.db"
            for command in commands:
                words = command.format(page=page, db=db).split()
                subprocess.run([RUBATO, *words], cwd=SOURCE, check=True, capture_output=True)
            browser.open(page, width=WIDTH)
            # The database's own place is of no use to readers.
            browser.evaluate(f"document.querySelectorAll('code').forEach((c) => {{ c.textContent = c.textContent.replaceAll('{db}', 'results.db'); }})")
            if until == CHARTS:
                browser.evaluate("document.head.append(Object.assign(document.createElement('style'), {textContent: '.tools, .top { display: none; }'}))")
            browser.screenshot(FOLDER / f"{name}.png", until, CHARTS if until == CHARTS else None)
            print(f"wrote {FOLDER / name}.png")


if __name__ == "__main__":
    main()
