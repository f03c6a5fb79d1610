#!/usr/bin/env python3
"""The program and its databases from Python: tables with units, errors by their kind; and the notebook, run."""

import os
import subprocess
import sys
import traceback
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
        tables = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, granularity=["pass", "kernel"], list="kernels", db=self.db)
        self.assertEqual([row["granularity"] for row in tables["plans"]], ["iteration", "pass", "kernel"])  # the first is the baseline
        self.assertEqual(len(tables["kernels"]), 2 * 46)
        with rubato.Results(self.db) as results:
            stored = {row["granularity"]: row for row in results.plans}
            self.assertEqual(stored["kernel"]["planned_energy_j"], tables["plans"][2]["energy_j"])
            self.assertIn("v_segments", results.names)
            self.assertEqual(results.query("SELECT count(*) AS n FROM runs WHERE run_id = ?", [1]), [{"n": 1}])

    def test_tables_have_units_columns_and_rows(self):
        answer = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, db=self.db)
        self.assertEqual(answer.command, f"rubato explore gpt3-xl --gpu a100-sxm4-80gb --slack 2 --db {self.db}")
        plans = answer.plans
        self.assertIs(plans, answer["plans"])
        self.assertEqual(rubato.Table([{"j": 1, "best_j": 2}]).units, {"j": None, "best_j": "J"})  # a number, and an energy
        self.assertEqual([plans.units[name] for name in ("time_s", "energy_j", "energy_change_pct", "granularity")], ["s", "J", "%", None])
        self.assertEqual(plans["energy_j"], [row["energy_j"] for row in plans])
        self.assertEqual(plans[["granularity"]].where(granularity="pass"), [{"granularity": "pass"}])
        self.assertIsInstance(plans[1:], rubato.Table)
        with self.assertRaisesRegex(KeyError, "the table has granularity"):
            plans["time"]
        with self.assertRaisesRegex(AttributeError, "no table 'plains'; it has run"):
            answer.plains

    def test_a_notebook_shows_them(self):
        table = rubato.Table([{"kernel": "a<b>", "time_s": 0.123456789, "clock": None}] * 30)
        shown = table._repr_html_()
        for part in ("<th>time_s<br><small>s</small></th>", "<td>a&lt;b&gt;</td>", "<td>0.12346</td>", "<td></td>", "10 more rows"):
            self.assertIn(part, shown)
        self.assertEqual(shown.count("<tr>"), 21)
        self.assertIn("<summary>plans, 1 rows</summary>", rubato.Answer("rubato x", {"run": [], "plans": [{"a": 1}]})._repr_html_())

    @unittest.skipIf(pandas is None, "python3-pandas is not installed")
    def test_frames(self):
        plans = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, odds=0, db=self.db).plans.to_pandas()
        self.assertLess(plans.energy_change_pct.min(), -5)
        self.assertEqual(plans.attrs["units"]["time_s"], "s")
        with rubato.Results(self.db) as results:
            front = results.front.to_pandas()
            self.assertGreater(len(front), 3)
            self.assertEqual(front.columns.tolist(), results.front.columns)

    def test_without_the_modules_the_error_says_what_to_install(self):
        with mock.patch.dict(sys.modules, {"pandas": None, "polars": None, "pyarrow": None}):
            for convert in ("to_pandas", "to_polars", "to_arrow"):
                with self.assertRaises(IoError) as caught:
                    getattr(rubato.Table([{"a": 1}]), convert)()
                self.assertIn("pip install", caught.exception.hint)

    def test_pipelines_replays_and_fits(self):
        examples = ROOT / "docs" / "examples"
        pipeline = rubato.explore("gpt3-xl", stages=2, gpu="a100-sxm4-80gb", slack=5, microbatches=4)
        self.assertEqual(pipeline.plans[0]["clocks"], "default clocks")
        self.assertLess(min(pipeline.plans["energy_change_pct"]), -5)
        replayed = rubato.replay(examples / "run.pt.trace.json.gz")
        self.assertEqual(replayed.runs[0]["run"], "captured")
        self.assertEqual(replayed.runs.units["time_ms"], "ms")
        fitted = rubato.calibrate(examples / "a100-sweep.csv", gpu="a100-sxm4-80gb", no_validation=True, kernels_only=True)
        self.assertTrue(fitted.spec["calibrated"])
        fitted.save(self.folder / "mine.json")
        self.assertEqual(rubato.explore("gpt3-xl", gpu=self.folder / "mine.json", granularity="iteration").run[0]["gpu"], "a100-sxm4-80gb")
        with self.assertRaises(DataError):
            rubato.calibrate(examples / "ab.csv")

    def test_errors_are_the_programs(self):
        with self.assertRaises(UsageError) as caught:
            rubato.explore("gpt3-xl", granularity="kernle")
        self.assertIn("did you mean 'kernel'", str(caught.exception))
        with self.assertRaises(UsageError) as caught:
            rubato.explore("gpt3-xl", salck=5)
        self.assertEqual(caught.exception.hint, "see 'rubato explore --help'")
        if sys.version_info >= (3, 11):  # what tracebacks show, in a notebook too
            self.assertIn(f"hint: {caught.exception.hint}", traceback.format_exception(caught.exception)[-1] + "".join(caught.exception.__notes__))
        (self.folder / "bad.json").write_text("{")
        with self.assertRaisesRegex(DataError, "bad.json"):
            rubato.explore(self.folder / "bad.json")
        with mock.patch.dict(os.environ, {"RUBATO": "/no/such/rubato"}), self.assertRaisesRegex(IoError, "No such file"):
            rubato.run("gpus")
        with mock.patch.dict(os.environ, {"RUBATO": "", "PATH": ""}), self.assertRaisesRegex(IoError, "not on the PATH"):
            rubato.run("gpus")
        with self.assertRaisesRegex(AttributeError, "it has Answer, Applier"):
            rubato.exlpore

    def test_databases_are_read_and_checked(self):
        with self.assertRaisesRegex(IoError, "there is no such file"):
            rubato.Results(self.db)
        self.db.write_text("no database at all, though it is long enough to look at" * 10)
        with self.assertRaisesRegex(DataError, "not a database"):
            rubato.Results(self.db)
        self.db.unlink()
        rubato.explore("gpt3-xl", granularity="iteration", db=self.db)
        with rubato.Results(self.db) as results:
            with self.assertRaisesRegex(UsageError, "readonly"):
                results.query("DELETE FROM runs")
            with self.assertRaisesRegex(AttributeError, "no table or view 'plains'"):
                results.plains

    @unittest.skipIf(matplotlib is None, "python3-matplotlib is not installed")
    def test_the_notebook_runs(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "docs" / "examples" / "notebook.py", self.folder], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python"), "MPLCONFIGDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("promised: energy -", done.stdout)
        self.assertNotIn("error: ", done.stdout + done.stderr)
        for name in ("plans.svg", "kernels.svg", "plan.json"):
            self.assertTrue((self.folder / name).stat().st_size > 1000, name)


if __name__ == "__main__":
    run_tests()
