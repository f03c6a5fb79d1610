#!/usr/bin/env python3
"""Result databases in places and states that users have: folders that may not be written to, damaged values, files that a sweep has just begun.

Usage: databases_test.py RUBATO SOURCE_DIR
"""
import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
NUMBERS = ("power_limit_w", "switch_stall_s", "time_s", "energy_j", "slack_frac", "gap_frac", "default_s", "default_j", "gpus", "clock_changes", "launches")
COUNT = "SELECT count(*) AS n FROM runs WHERE kind = 'trace'"
NOBODY = 65534


def run(*words, cwd, user=None, **options):
    """@param user  of the program; root may write everywhere"""
    return subprocess.run([RUBATO, *map(str, words)], cwd=cwd, user=user, capture_output=True, text=True, check=False, **options)


class Databases(unittest.TestCase):
    made = None

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.made = Path(cls.kept.name) / "r.db"
        done = run("explore", "gpt3-xl", "--per", "run,kernel", "--odds", 0, "--db", cls.made, cwd=cls.kept.name)
        assert done.returncode == 0, done.stderr
        captured = run("explore", SOURCE / "docs/examples/run.pt.trace.json.gz", "--slack", 1, "--per", "pass,kernel", "--odds", 0, "--db", cls.made, cwd=cls.kept.name)
        assert captured.returncode == 0, captured.stderr

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.db = self.folder / "r.db"
        shutil.copy(self.made, self.db)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def forbid_writing(self):
        """To somebody who may read: another user, if we are root. Rights of all folders above are needed too."""
        for path in self.folder.iterdir():
            path.chmod(0o444)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        if os.geteuid() != 0:
            return None
        for above in [self.folder, *self.folder.parents]:
            if not above.stat().st_mode & stat.S_IXOTH:
                self.skipTest(f"{above} may not be entered by others")
        if subprocess.run([RUBATO, "--version"], user=NOBODY, capture_output=True, check=False).returncode != 0:
            self.skipTest("another user cannot run the program")
        return NOBODY

    def test_reading_leaves_nothing_beside(self):
        done = run("query", "--db", "r.db", COUNT, "--csv", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, "n\n1\n"))
        self.assertEqual(self.files(), ["r.db"])

    def test_reading_leaves_alone_what_others_write(self):
        with sqlite3.connect(self.db) as writer:
            writer.execute("UPDATE runs SET host = 'elsewhere'")
            writer.commit()
            done = run("query", "--db", "r.db", "SELECT DISTINCT host FROM runs", "--csv", cwd=self.folder)
            self.assertEqual(done.stdout, "host\nelsewhere\n")
            self.assertIn("r.db-wal", self.files())
            self.assertEqual(writer.execute("SELECT count(*) FROM runs WHERE kind = 'trace'").fetchone(), (1,))

    def test_folders_that_may_not_be_written_to_are_read(self):
        user = self.forbid_writing()
        for words in (["query", "--db", "r.db", COUNT, "--csv"], ["show", "--db", "r.db"], ["export", "plans", "--db", "r.db", "--csv"]):
            done = run(*words, cwd=self.folder, user=user)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("may not be written to", done.stderr)
            self.assertTrue(done.stdout)
        self.assertEqual(self.files(), ["r.db"])
        refused = run("explore", "gpt3-xl", "--per", "run", "--db", "r.db", cwd=self.folder, user=user)
        self.assertEqual(refused.returncode, 4, refused.stderr)

    def test_such_databases_are_merged(self):
        shutil.copy(self.made, self.folder / "other.db")
        user = self.forbid_writing()
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o777)
            done = run("merge", self.db, self.folder / "other.db", "-o", "all.db", "--csv", cwd=name, user=user)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(name), ["all.db"])
            self.assertEqual(run("query", "--db", "all.db", COUNT, "--csv", cwd=name).stdout, "n\n1\n")

    def test_the_log_beside_such_a_file_is_read_too(self):
        # As a program leaves it that was killed: the row is in the log only.
        script = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"UPDATE runs SET host = 'in the log'\"); c.commit(); os._exit(0)"
        subprocess.run([sys.executable, "-c", script, self.db], check=True)
        self.assertIn("r.db-wal", self.files())
        for index in (True, False):
            with self.subTest(index=index):
                self.folder.chmod(0o755)
                if not index:
                    (self.folder / "r.db-shm").unlink()
                before = self.files()
                user = self.forbid_writing()
                done = run("query", "--db", "r.db", "SELECT DISTINCT host FROM runs", "--csv", cwd=self.folder, user=user)
                self.assertEqual((done.returncode, done.stdout), (0, "host\nin the log\n"), done.stderr)
                self.assertIn("a copy", done.stderr)
                self.assertEqual(self.files(), before)

    def change_schema(self, *changes):
        """As in a file that was damaged, or that another program changed: the rules of the tables are gone."""
        with contextlib.closing(sqlite3.connect(self.db, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT, ', ''), ') STRICT', ')') WHERE type = 'table'")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'")
        with contextlib.closing(sqlite3.connect(self.db, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for change in changes:
                connection.execute(change)

    def test_values_of_a_wrong_type_are_bad_input(self):
        commands = [
            ["show", "--db", "r.db"],
            ["report", "--db", "r.db", "-o", "page.html"],
            ["export", "--plan", "latest", "--db", "r.db"],
            ["transfer", "--db", "r.db", "--batches", "1"],
            ["impact", SOURCE / "docs/examples/training-run.toml", "--db", "r.db"],
            ["compare", "--db", "r.db", "1", "1"],
            ["top", "--db", "r.db"],
            ["show", "1", "--db", "r.db"],
            ["report", "--run", "1", "--db", "r.db", "-o", "page.html"],
            ["export", "plans", "--run", "1", "--db", "r.db"],
        ]
        columns = {
            "runs": ["work", "gpu", "kind", "options_json", "clock_grid", "power_limit_w", "switch_stall_s", "created_utc", "command", "default_time_s", "default_energy_j",
                     "gpus", "steps", "headline_want"],
            "plans": ["granularity", "goal", "aggregation", "status", "time_s", "energy_j", "slack_pct", "gap_pct", "wall_time_s", "applied_energy_j", "want", "is_answer"],
            "inputs": ["text", "name"],
            "caveats": ["reason"],
            "units": ["name", "pass", "source", "launches", "default_energy_j"],
            "clocks": ["label", "core_mhz", "time_s"],
            "plan_units": ["launches", "time_s"],
            "plan_segments": ["block", "launches", "repeats", "time_s"],
            "run_inputs": ["position"],
        }
        tried, wrong = 0, []
        for table, names in columns.items():
            for column in names:
                for value in ("NULL", "'word'" if column in NUMBERS else "x'00ff'"):
                    shutil.copy(self.made, self.db)
                    try:
                        self.change_schema(f"UPDATE {table} SET {column} = {value}")
                    except sqlite3.Error:
                        continue  # a key
                    for words in commands:
                        done = run(*words, cwd=self.folder)
                        tried += 1
                        if done.returncode not in (0, 1, 2, 3, 4):
                            wrong.append(f"{table}.{column} = {value}: {words[0]}: status {done.returncode}: {done.stderr}")
        self.assertEqual(wrong, [])
        self.assertGreater(tried, 300)

    def test_the_column_is_named(self):
        self.change_schema("UPDATE plans SET applied_energy_j = 'word'")
        done = run("show", "1", "--plans", "--db", "r.db", cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("plans.applied_energy_j holds 'word'", done.stderr)
        # Whoever asks in SQL gets what is there.
        self.assertIn("word", run("query", "--db", "r.db", "SELECT applied_energy_j FROM plans", cwd=self.folder).stdout)

    def test_a_reader_waits_for_a_sweep_that_has_just_begun(self):
        begun = self.folder / "begun.db"
        begun.touch()  # the first that a sweep does
        whole = self.made.read_bytes()

        def write():
            time.sleep(1)
            with sqlite3.connect(begun) as target, sqlite3.connect(self.made) as source:
                source.backup(target)

        writer = threading.Thread(target=write)
        writer.start()
        done = run("query", "--db", "begun.db", COUNT, "--csv", cwd=self.folder)
        writer.join()
        self.assertEqual((done.returncode, done.stdout), (0, "n\n1\n"), done.stderr)
        self.assertEqual(self.made.read_bytes(), whole)

    def test_an_empty_file_is_no_database(self):
        (self.folder / "empty.db").touch()
        os.utime(self.folder / "empty.db", (1, 1))
        done = run("query", "--db", "empty.db", COUNT, cwd=self.folder)
        self.assertEqual(done.returncode, 4)
        self.assertIn("was not made by rubato", done.stderr)


class Files(unittest.TestCase):
    """What a command replaces is there, old or new, whatever happens."""


    def test_a_full_disk_leaves_the_older_file(self):
        # A small file system of our own, in a mount namespace of our own.
        script = """
            mkdir full && mount -t tmpfs -o size=256k none full 2>/dev/null || exit 77
            cp r.db full/r.db 2>/dev/null; cd full; rm -f r.db
            for name in x.csv x.svg x.html x.json; do echo older > $name; done
            head -c 10000000 /dev/zero > filler 2>/dev/null
            for words in "latency-scan --latencies-us 1,10 -o x.csv" "latency-scan --latencies-us 1,10 --page x.html" \\
                "report --db ../r.db -o x.html" "export --plan latest --db ../r.db -o x.json" "trace gen gpt3-xl --batch 1 -o x.json"; do
              "$0" $words > /dev/null 2> ../told; status=$?
              [ $status = 4 ] && grep -q 'No space left' ../told || { echo "$words: $status"; cat ../told; }
            done
            for name in x.csv x.svg x.html x.json; do [ "$(cat $name)" = older ] || echo "$name was changed"; done
            ls | grep -v -e '^x\\.' -e '^filler$'
            true
        """
        with tempfile.TemporaryDirectory() as name:
            shutil.copy(Databases.made, Path(name) / "r.db") if Databases.made and Databases.made.exists() else run("explore", "gpt3-xl", "--odds", 0, "--db", "r.db", cwd=name)
            done = subprocess.run(["unshare", "-mr", "sh", "-c", script, RUBATO], cwd=name, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("no file system of our own can be mounted")
        self.assertEqual(done.stdout, "", done.stderr)

    def test_links_devices_and_rights_stay(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "real.json").write_text("older")
            (folder / "real.json").chmod(0o640)
            (folder / "x.json").symlink_to("real.json")
            self.assertEqual(run("trace", "gen", "gpt3-xl", "--batch", "1", "-o", "x.json", cwd=name).returncode, 0)
            self.assertTrue((folder / "x.json").is_symlink())
            self.assertGreater(len((folder / "real.json").read_text()), 1000)
            self.assertEqual(stat.S_IMODE((folder / "real.json").stat().st_mode), 0o640)
            os.mkfifo(folder / "pipe.json")
            with subprocess.Popen(["cat", "pipe.json"], cwd=name, stdout=subprocess.PIPE) as reader:
                self.assertEqual(run("trace", "gen", "gpt3-xl", "--batch", "1", "-o", "pipe.json", cwd=name).returncode, 0)
                self.assertEqual(reader.communicate()[0].decode(), (folder / "real.json").read_text())
            self.assertTrue(stat.S_ISFIFO((folder / "pipe.json").stat().st_mode))

    def test_nobody_else_chooses_where_a_temporary_file_goes(self):
        """Names are not known before, and what is there is never opened."""
        with tempfile.TemporaryDirectory() as name:
            names = set()
            for _ in range(3):
                log = Path(name) / "log"
                traced = subprocess.run(
                    ["strace", "-f", "-e", "trace=open,openat", "-o", log, RUBATO, "trace", "gen", "gpt3-xl", "--batch", "1", "-o", "x.json"], cwd=name, capture_output=True, check=False
                ) if shutil.which("strace") else None
                if traced is None or traced.returncode != 0:
                    self.skipTest("strace cannot be used")
                opened = [line for line in log.read_text().splitlines() if ".part" in line]
                self.assertEqual(len(opened), 1)
                self.assertIn("O_EXCL", opened[0])
                self.assertIn("O_NOFOLLOW", opened[0])
                names.add(opened[0].split('"')[1])
            self.assertEqual(len(names), 3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
