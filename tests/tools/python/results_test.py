#!/usr/bin/env python3
"""The program and its databases from Python: tables with units, errors by their kind; and the notebook, run."""

import io
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
    import torch
except ImportError:
    torch = None
try:
    import matplotlib
except ImportError:
    matplotlib = None


class FromPython(WithProgram):
    def test_the_version_is_the_projects(self):
        self.assertIn(f"project(rubato VERSION {rubato.__version__} ", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))

    def test_explore_gives_the_commands_tables(self):
        tables = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=2, per=["pass", "kernel"], list="kernels", db=self.db)
        self.assertEqual([row["granularity"] for row in tables["plans"]], ["run", "pass", "kernel"])  # the first is the baseline
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

    def test_power_limits_and_budgets(self):
        limits = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", power_limits=[200, 300, 400], slack="any", odds=0)
        self.assertRegex(limits.plans[1]["clocks"], "^1593/auto, (200|300) W$")  # 400 W is its own
        default_s = limits.plans[0]["time_s"]
        within = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", budget=f"{1.1 * default_s}s", per="run", odds=0).plans
        self.assertEqual(within["energy_j"], rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=10, per="run", odds=0).plans["energy_j"])
        jobs = rubato.budget(ROOT / "docs" / "examples" / "jobs.toml", watts=2200, list="options")
        self.assertLessEqual(sum(jobs.jobs["power_w"]), 2200)
        for row in jobs.options.where(job="resnet50"):
            self.assertLess(row["power_low_w"], row["power_w"])
            self.assertLess(row["power_w"], row["power_high_w"])

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
        self.assertEqual(rubato.explore("gpt3-xl", gpu=self.folder / "mine.json", per="run").run[0]["gpu"], "a100-sxm4-80gb")
        with self.assertRaises(DataError):
            rubato.calibrate(examples / "ab.csv")
        measured = rubato.explore(table=examples / "a100-sweep.toml", gpu="a100-sxm4-80gb", slack=5, per="run")  # no trace
        self.assertLess(measured.plans[-1]["energy_change_pct"], -5)

    def test_errors_are_the_programs(self):
        with self.assertRaises(UsageError) as caught:
            rubato.explore("gpt3-xl", per="kernle")
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

    @unittest.skipIf(torch is None, "python3-torch is not installed")
    def test_a_real_profile_of_the_cpu_alone_has_nothing_to_plan(self):
        model, path = torch.nn.Linear(8, 8), self.folder / "cpu.pt.trace.json"
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
            model(torch.randn(2, 8)).sum().backward()
        profile.export_chrome_trace(str(path))
        for command in (rubato.explore, rubato.replay):
            with self.assertRaisesRegex(DataError, "there is no device work in it") as caught:
                command(path)
            self.assertIn("ProfilerActivity.CUDA", caught.exception.hint)

    def test_progress_is_shown_where_somebody_looks(self):
        slow = self.folder / "slow"
        slow.write_text("#!/bin/bash\nexport LC_ALL=C\n[ -z \"$RUBATO_PROGRESS\" ] || for i in 1 2; do printf '\\r\\e[K%s of 2' $i >&2; sleep 0.05; done\n"
                        "printf '\\r\\e[Kerror: no such GPU\\n  hint: see\\n' >&2\nexit 3\n")
        slow.chmod(0o755)
        for looks in (True, False):
            seen = mock.Mock(wraps=io.StringIO())
            seen.isatty.return_value = looks
            with mock.patch.dict(os.environ, {"RUBATO": str(slow)}), mock.patch.object(sys, "stderr", seen), self.assertRaises(DataError) as caught:
                rubato.run("gpus")
            self.assertEqual((str(caught.exception).splitlines()[0], caught.exception.hint), ("no such GPU", "see"))
            self.assertEqual([call.args[0] for call in seen.write.mock_calls], ["\r\x1b[K1 of 2", "\r\x1b[K2 of 2"] if looks else [])

    def test_databases_are_read_and_checked(self):
        with self.assertRaisesRegex(IoError, "there is no such file"):
            rubato.Results(self.db)
        self.db.write_text("no database at all, though it is long enough to look at" * 10)
        with self.assertRaisesRegex(DataError, "not a database"):
            rubato.Results(self.db)
        self.db.unlink()
        rubato.explore("gpt3-xl", per="run", db=self.db)
        with rubato.Results(self.db) as results:
            with self.assertRaisesRegex(UsageError, "readonly"):
                results.query("DELETE FROM runs")
            with self.assertRaisesRegex(AttributeError, "no table or view 'plains'"):
                results.plains

    def test_the_notebook_runs(self):
        """Where matplotlib is not installed, without its pictures."""
        code = "import runpy; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
        if matplotlib is None:
            code = "from unittest.mock import MagicMock; plots = MagicMock(**{'subplots.return_value': (MagicMock(), MagicMock())}); " \
                   "sys.modules.update({'matplotlib': MagicMock(pyplot=plots), 'matplotlib.pyplot': plots}); " + code
        done = subprocess.run([sys.executable, "-B", "-c", "import sys; " + code, ROOT / "docs" / "examples" / "notebook.py", self.folder], capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python"), "MPLCONFIGDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("promised: energy -", done.stdout)
        self.assertNotIn("error: ", done.stdout + done.stderr)
        for name in ("plan.json", *(("plans.svg", "kernels.svg") if matplotlib else ())):
            self.assertTrue((self.folder / name).stat().st_size > 1000, name)


if __name__ == "__main__":
    run_tests()
