"""A sweep under kill -9, a full disk, locks and damage: nothing finished may be lost.

Usage: sweep_faults_test.py RUBATO [KILLS]     KILLS: random kills per number of threads [8]
"""

import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

EXPERIMENT = """
schema = 1
name = "faults"
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = {from = 1, to = 15, step = 1}
sequence = 1024
granularity = ["pass", "kernel"]
slack_pct = [0, 1, 2]
clocks = "paper"
"""
UNITS = 90

# All results by unit or setting, without row numbers and times, which depend on the order of work.
CONTENTS = [
    "SELECT question_hash, result_hash, granularity, goal, slack_pct, status, objective, lower_bound, time_s, energy_j, applied_energy_j, clock_changes, "
    "is_answer FROM plans ORDER BY 1",
    "SELECT p.question_hash, s.segment_id, s.clock_id, s.launches FROM plans p JOIN plan_segments s USING (plan_id) ORDER BY 1, 2",
    "SELECT p.question_hash, k.unit_id, k.clock_id, k.time_s, k.energy_j FROM plans p JOIN plan_units k USING (plan_id) ORDER BY 1, 2, 3",
    "SELECT r.run_hash, x.unit_id, x.clock_id, x.time_s, x.energy_j, x.power_limited FROM runs r JOIN v_cells x USING (run_id) ORDER BY 1, 2, 3",
    "SELECT r.run_hash, f.granularity, f.point_id, f.time_s, f.energy_j FROM runs r JOIN fronts f USING (run_id) ORDER BY 1, 2, 3",
    "SELECT x.experiment_id, x.scenario, p.question_hash FROM experiment_plans x JOIN plans p USING (plan_id) ORDER BY 1, 2, 3",
]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def rows(db, sql):
    connection = sqlite3.connect(db, timeout=60)  # a busy machine may hold a lock for long
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def contents(db):
    return [rows(db, sql) for sql in CONTENTS]


def finished(db):
    try:
        return {unit for (unit,) in rows(db, "SELECT question_hash FROM plans")}
    except sqlite3.OperationalError as error:
        check("no such table" in str(error) or "unable to open" in str(error), error)
        return set()


class Faults:
    def __init__(self, rubato, kills, folder):
        self.rubato, self.kills, self.folder = rubato, kills, folder
        self.experiment = folder / "faults.toml"
        self.experiment.write_text(EXPERIMENT)
        self.reference = folder / "reference.db"
        self.sweep(self.reference, 1)
        self.expected = contents(self.reference)
        check(len(self.expected[0]) == UNITS, "the reference is complete")

    def command(self, db, threads=1):
        return [self.rubato, "experiment", "run", self.experiment, "--db", db, "--threads", str(threads)]

    def sweep(self, db, threads=1, status=0, says="", **options):
        done = subprocess.run(self.command(db, threads), capture_output=True, text=True, **options)
        check(done.returncode == status and says in done.stderr,
              f"status {done.returncode}, expected {status} and '{says}':\n{done.stderr}")

    def check_complete(self, db):
        check(rows(db, "PRAGMA integrity_check") == [("ok",)], f"{db} is intact")
        check(rows(db, "PRAGMA foreign_key_check") == [], f"{db} has no orphans")
        check(contents(db) == self.expected, f"{db} has the bits of an uninterrupted run")

    def killed(self, threads, generator):
        """Random kills; a sweep that is complete starts over in a new file."""
        completed, cut, mid_run = 0, 0, 0
        db = self.folder / f"killed{threads}.0.db"
        before = set()
        while cut < self.kills:
            process = subprocess.Popen(self.command(db, threads), stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                self.check_complete(db)
                completed += 1
                db = self.folder / f"killed{threads}.{completed}.db"
                before = set()
                continue
            check(process.returncode == -signal.SIGKILL, f"status {process.returncode}")
            cut += 1
            if db.exists():
                check(rows(db, "PRAGMA integrity_check") == [("ok",)], "intact after a kill")
            now = finished(db)
            check(before <= now, "a finished unit was lost")
            mid_run += before < now
            before = now
        self.sweep(db, threads)
        self.check_complete(db)
        print(f"{cut} kills with {threads} threads, {mid_run} of them after new units, {completed + 1} complete sweeps: "
              "nothing lost, same bits")

    def interrupted(self):
        db = self.folder / "interrupted.db"
        process = subprocess.Popen(self.command(db, 2), stderr=subprocess.PIPE, text=True)
        while not finished(db):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        message = process.communicate()[1]
        if process.returncode == 0:
            print("skipped: the sweep ended before Ctrl-C reached it")
            return
        check(process.returncode == 130 and "in flight" in message and "the same command continues" in message, message)
        self.sweep(db, 2)
        self.check_complete(db)
        print("Ctrl-C: finished what was in flight and resumed")

    def two_processes(self):
        db = self.folder / "two.db"
        both = [subprocess.Popen(self.command(db), stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            message = process.communicate()[1]
            check(process.returncode == 0, message)
        self.check_complete(db)
        print("two processes on one database: complete and intact")

    def full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            print("skipped: a small tmpfs may not be mounted here")
            return
        try:
            db = disk / "r.db"
            self.sweep(db, 2, status=4, says="the disk is full")
            kept = finished(db)
            check(0 < len(kept) < UNITS, f"{len(kept)} units before the disk was full")
            check(rows(db, "PRAGMA integrity_check") == [("ok",)], "intact on a full disk")
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            self.sweep(db, 2)
            check(kept <= finished(db), "kept what was finished")
            self.check_complete(db)
        finally:
            subprocess.run(["umount", disk], check=True)
        print(f"full disk: {len(kept)} units kept, resumed with more room")

    def read_only_folder(self):
        if os.geteuid() == 0 and subprocess.run([self.rubato, "--version"], user=65534, cwd="/",
                                                capture_output=True).returncode != 0:
            print("skipped: no other user may run the program here")
            return
        folder = pathlib.Path(tempfile.mkdtemp(prefix="rubato_read_only_"))
        try:
            shutil.copy(self.experiment, folder)
            os.chmod(folder, 0o555)
            user = {"user": 65534} if os.geteuid() == 0 else {}
            done = subprocess.run([self.rubato, "experiment", "run", folder / "faults.toml", "--db", folder / "r.db"],
                                  capture_output=True, text=True, cwd="/", **user)
            check(done.returncode == 4 and "check that the file and its folder exist" in done.stderr, done.stderr)
        finally:
            os.chmod(folder, 0o755)
            shutil.rmtree(folder)
        print("read-only folder: told clearly")

    def locked(self):
        db = self.folder / "locked.db"
        self.sweep(db)
        connection = sqlite3.connect(db, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        self.sweep(db, status=4, says="another program is writing to it")
        connection.execute("ROLLBACK")
        connection.close()
        self.check_complete(db)
        print("locked database: told clearly, nothing lost")

    def damaged(self):
        db = self.folder / "damaged.db"
        self.sweep(db)
        with open(db, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            for page in range(2, size // 4096):
                file.seek(page * 4096)
                file.write(b"\x55" * 4096)
        self.sweep(db, status=4, says="the database is damaged")
        print("damaged pages: told clearly")

    def hostile(self):
        name = "'); DROP TABLE plans; --\\\"<script>alert(1)</script>\\u001b[31m\\u202e" + "x" * 10000
        text = EXPERIMENT.replace('"faults"', f'"{name}"').replace("to = 15", "to = 1") + f'[scenario."{name}"]\n' + \
            'gpu = "rtx-3080-ti"\ntrace = "gpt3-xl"\n'
        (self.folder / "hostile.toml").write_text(text)
        db = self.folder / "hostile.db"
        for arguments in (["experiment", "run", "hostile.toml", "--db", db, "-v", "--log", "-"],
                          ["experiment", "run", "hostile.toml", "--dry-run"],
                          ["query", "--db", db, "SELECT name, scenario FROM experiments JOIN experiment_plans USING (experiment_id)"],
                          ["top", "--db", db], ["show", "1", "--db", db]):
            done = subprocess.run([self.rubato, *arguments], capture_output=True, cwd=self.folder)
            check(done.returncode == 0, done.stderr)
            check(b"\x1b" not in done.stdout + done.stderr, f"{arguments}: an escape reached the terminal")
        check(len(finished(db)) == 7, "the tables are there")
        done = subprocess.run([self.rubato, "report", "--db", db, "--experiment", "latest", "-o", "r.html"],
                              capture_output=True, cwd=self.folder)
        check(done.returncode == 0, done.stderr)
        check(b"<script>alert" not in (self.folder / "r.html").read_bytes(), "the page has the name as text only")
        (self.folder / "bytes.toml").write_bytes(b'schema = 1\nname = "\xff\x1b[2J"\n')
        done = subprocess.run([self.rubato, "experiment", "run", "bytes.toml", "--db", db], capture_output=True, cwd=self.folder)
        check(done.returncode == 3 and b"not valid TOML" in done.stderr and b"\x1b" not in done.stderr
              and b"\xff" not in done.stderr, done.stderr)
        print("hostile names: only text everywhere")


def main():
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    seed = 20261121
    with tempfile.TemporaryDirectory(prefix="rubato_faults_") as folder:
        os.chmod(folder, 0o755)
        faults = Faults(os.path.abspath(sys.argv[1]), kills, pathlib.Path(folder))
        for threads in (1, 2):
            faults.killed(threads, random.Random(seed + threads))
        faults.interrupted()
        faults.two_processes()
        faults.full_disk()
        faults.read_only_folder()
        faults.damaged()
        faults.hostile()
        if kills >= 100:
            faults.locked()


if __name__ == "__main__":
    main()
