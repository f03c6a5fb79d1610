#!/usr/bin/env python3
"""The questions of docs/schema.md give in DuckDB, which attaches the database, as many rows as in SQLite.

Usage: duckdb_test.py RUBATO SOURCE_DIR; exit status 77: there is no DuckDB, or not its reader of SQLite files.
"""
import importlib.util
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

RUBATO, SOURCE = sys.argv[1], Path(sys.argv[2])


def asker(db):
    """What runs one SELECT and gives its number of rows; None where there is no DuckDB."""
    attach = f"ATTACH '{db}' AS r (TYPE sqlite, READ_ONLY); USE r;"
    if importlib.util.find_spec("duckdb"):
        import duckdb
        connection = duckdb.connect()
        connection.execute("LOAD sqlite")
        connection.execute(attach)
        return lambda sql: len(connection.execute(sql).fetchall())
    program = shutil.which("duckdb")
    if not program:
        return None

    def rows(sql):
        done = subprocess.run([program, "-json", "-c", f"LOAD sqlite; {attach} {sql}"], text=True, capture_output=True, check=True)
        return len(json.loads(done.stdout or "[]"))

    rows("SELECT 1 AS one")
    return rows


def main():
    with tempfile.TemporaryDirectory() as temporary:
        db = Path(temporary) / "r.db"
        subprocess.run([RUBATO, "explore", "gpt3-xl", "--clocks", "mem=5001,auto core=1470,1680,auto", "--db", db], check=True, capture_output=True)
        try:
            ask = asker(db)
        except Exception as error:  # of its modules: the extension is not installed
            print(f"skipped: DuckDB cannot read SQLite files here: {error}")
            return 77
        if ask is None:
            print("skipped: no DuckDB on this machine (pip install duckdb, or its program)")
            return 77
        questions = re.findall(r"```sql\n(.*?)```", (SOURCE / "docs" / "schema.md").read_text(encoding="utf-8"), re.DOTALL)
        plain = sqlite3.connect(db)
        wrong = []
        for question in questions:
            expected = len(plain.execute(question).fetchall())
            try:
                found = ask(question)
            except Exception as error:
                found = error
            if found != expected:
                wrong.append(f"{question}-> {found}, in SQLite {expected} rows")
        print("\n".join(wrong) + f"\n{len(questions)} questions, {len(wrong)} differ")
        return 1 if wrong or not questions else 0


if __name__ == "__main__":
    sys.exit(main())
