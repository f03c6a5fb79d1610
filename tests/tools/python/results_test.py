#!/usr/bin/env python3
"""The program and its databases from Python: frames or dicts, errors by their kind; and the notebook, run."""

import os
import subprocess
import sys
import unittest
from unittest import mock

from parts import ROOT, WithProgram, run_tests

import rubato
from rubato.errors import DataError, IoError, UsageError

try:
    import pandas
except ImportError:
    pandas = None
try:
    import matplotlib
except ImportError:
    matplotlib = None


class FromPython(WithProgram):
    def test_explore_gives_the_commands_tables(self):
        tables = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, granularity=["pass", "kernel"], per_kernel=True, db=self.db, pandas=False)
        self.assertEqual([row["granularity"] for row in tables["plans"]], ["iteration", "pass", "kernel"])  # the first is the baseline
        self.assertEqual(len(tables["kernels"]), 2 * 46)
        with rubato.Results(self.db, pandas=False) as results:
            stored = {row["granularity"]: row for row in results.plans}
            self.assertEqual(stored["kernel"]["planned_energy_j"], tables["plans"][2]["energy_j"])
            self.assertIn("v_segments", results.names)
            self.assertEqual(results.query("SELECT count(*) AS n FROM runs WHERE run_id = ?", [1]), [{"n": 1}])

    @unittest.skipIf(pandas is None, "python3-pandas is not installed")
    def test_frames(self):
        plans = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, db=self.db)["plans"]
        self.assertIsInstance(plans, pandas.DataFrame)
        self.assertLess(plans.energy_change_pct.min(), -10)
        with rubato.Results(self.db) as results:
            self.assertIsInstance(results.front, pandas.DataFrame)
            self.assertGreater(len(results.front), 3)

    def test_errors_are_the_programs(self):
        with self.assertRaises(UsageError) as caught:
            rubato.explore("gpt3-xl", granularity="kernle")
        self.assertIn("did you mean 'kernel'", str(caught.exception))
        (self.folder / "bad.json").write_text("{")
        with self.assertRaisesRegex(DataError, "bad.json"):
            rubato.explore(self.folder / "bad.json")
        with mock.patch.dict(os.environ, {"RUBATO": "/no/such/rubato"}), self.assertRaisesRegex(IoError, "No such file"):
            rubato.run("gpus")
        with mock.patch.dict(os.environ, {"RUBATO": "", "PATH": ""}), self.assertRaisesRegex(IoError, "not on the PATH"):
            rubato.run("gpus")
        with self.assertRaisesRegex(AttributeError, "it has Applier"):
            rubato.exlpore

    def test_databases_are_read_and_checked(self):
        with self.assertRaisesRegex(IoError, "there is no such file"):
            rubato.Results(self.db)
        self.db.write_text("no database at all, though it is long enough to look at" * 10)
        with self.assertRaisesRegex(DataError, "not a database"):
            rubato.Results(self.db)
        self.db.unlink()
        rubato.explore("gpt3-xl", granularity="iteration", db=self.db, pandas=False)
        with rubato.Results(self.db, pandas=False) as results:
            with self.assertRaisesRegex(UsageError, "readonly"):
                results.query("DELETE FROM runs")
            with self.assertRaisesRegex(AttributeError, "no table or view 'plains'"):
                results.plains

    @unittest.skipIf(pandas is None or matplotlib is None, "python3-pandas or python3-matplotlib is not installed")
    def test_the_notebook_runs(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "docs" / "examples" / "notebook.py", self.folder], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python"), "MPLCONFIGDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("promised: energy -", done.stdout)
        for name in ("plans.svg", "kernels.svg", "plan.json"):
            self.assertTrue((self.folder / name).stat().st_size > 1000, name)


if __name__ == "__main__":
    run_tests()
