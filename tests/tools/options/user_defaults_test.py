#!/usr/bin/env python3
"""A user's own defaults in rubato.toml: used where the line says nothing, told on standard error, refused with file and line.

Usage: user_defaults_test.py RUBATO
"""
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import check, exit_status, run  # noqa: E402

RUBATO = Path(sys.argv[1]).resolve()
PLAN = ("explore", "gpt3-xl", "--per", "run", "--odds", "0", "--json")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config").mkdir()
        file = folder / "config" / "rubato.toml"

        def rubato(*words, home=False):
            places = {"HOME": str(folder), "XDG_CONFIG_HOME": "" if home else str(folder / "config")}
            return run(RUBATO, *words, cwd=folder, env={**os.environ, **places})

        plain = rubato(*PLAN)
        check("without the file nothing is said", "rubato.toml" not in plain.stderr and json.loads(plain.stdout)["run"][0]["gpu"] == "rtx-3080-ti", plain.stderr)
        file.write_text('gpu = "NVIDIA A40"\ndb = "mine.db"\nprices = "kwh=0.12"\n')
        for home in (False, True):
            if home:
                (folder / ".config").mkdir()
                file.rename(folder / ".config" / "rubato.toml")
                file = folder / ".config" / "rubato.toml"
            mine = rubato(*PLAN, home=home)
            check("the GPU is taken", json.loads(mine.stdout)["run"][0]["gpu"] == "a40", mine.stdout[:300])
            check("and the database", "stored as run" in mine.stderr and (folder / "mine.db").exists(), mine.stderr)
            check("both are told, once", all(mine.stderr.count(f"note: --{key} ") == 1 for key in ("gpu", "db")) and str(file) in mine.stderr, mine.stderr)
            check("what is not used is not told", "--prices" not in mine.stderr, mine.stderr)
        given = rubato(*PLAN, "--gpu", "rtx-3080-ti", "--db", "other.db", home=True)
        check("the line comes first", json.loads(given.stdout)["run"][0]["gpu"] == "rtx-3080-ti" and "note: --" not in given.stderr and (folder / "other.db").exists(),
              given.stderr)
        shown = rubato("show", home=True)
        check("show reads it", shown.returncode == 0 and shown.stdout.startswith("Run 2 of 2") and "note: --db mine.db" in shown.stderr, shown.stdout + shown.stderr)
        check("a database that is named comes first", rubato("show", "other.db", home=True).stdout.startswith("Run 1 of 1"))
        compared = rubato("compare", "mine.db", "other.db", home=True)
        check("two databases are compared, not its runs", "no question in common" in compared.stderr, compared.stderr)
        cost = rubato("explore", "gpt3-xl", "--per", "run", "--odds", "0", "--goal", "cost", home=True)
        check("prices are taken where they count", cost.returncode == 0 and "note: --prices kwh=0.12" in cost.stderr, cost.stderr)
        check("--help needs no file", rubato("explore", "--help", home=True).stderr == "")
        for text, said in (('gpu = "a40"\ncard = 1\n', ":2"), ('\n\ngpu = "no such"\n', ":3"), ("gpu = 3\n", ":1"), ("gpu = a40\n", ":1:"), ('prices = "x"\n', ":1"),
                           ('db = ""\n', ":1")):
            file.write_text(text)
            command = ("explore", "gpt3-xl", "--per", "run", "--goal", "cost") if "prices" in text else ("explore", "gpt3-xl", "--per", "run")
            refused = rubato(*command, home=True)
            check(f"{text!r} is refused with file and line", refused.returncode == 3 and f"error: {file}{said}" in refused.stderr, refused.stderr)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
