#!/usr/bin/env python3
"""Rubato beside the programs of its field from the package index, where `tools/setup --python` has installed them: each is used as its
users do, and has to say the same. What is not there is skipped, and said.

Usage: neighbours_test.py LIBRARY RUBATO; runs itself again with the Python of build/neighbours where that is.
"""

import ast
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[3] / "build" / "neighbours"
if (ENVIRONMENT / "bin/python").exists() and Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
    os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), "-B", *sys.argv])

from parts import ROOT, WithProgram, run_tests  # noqa: E402

import rubato  # noqa: E402

EXAMPLES = ROOT / "docs" / "examples"
CAPTURE = EXAMPLES / "run.pt.trace.json.gz"


there = set()  # packages that a test here uses


def needs(*packages):
    """Skips a test without these packages of the index."""
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    there.update([] if missing else found)
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed (tools/setup --python)")


class Tables(WithProgram):
    """Answers and databases in what people read tables with."""

    def setUp(self):
        super().setUp()
        self.plans = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", slack=[0, 2], odds=0, db=self.db).plans
        self.energy_j = sum(self.plans["energy_j"])

    @needs("pandas")
    def test_pandas(self):
        import pandas

        frame = self.plans.to_pandas()
        self.assertAlmostEqual(frame.energy_j.sum(), self.energy_j, places=9)
        self.assertEqual(str(frame.energy_j.dtype), "float64")
        import sqlite3
        stored = pandas.read_sql("SELECT * FROM v_plans", sqlite3.connect(self.db))
        with rubato.Results(self.db) as results:
            self.assertEqual(stored.energy_j.tolist(), results.plans["energy_j"])

    @needs("polars")
    def test_polars(self):
        import polars

        frame = self.plans.to_polars()
        self.assertAlmostEqual(frame["energy_j"].sum(), self.energy_j, places=9)
        self.assertEqual(frame.schema["energy_j"], polars.Float64)
        self.assertEqual(frame.filter(polars.col("slack_pct") == 2).height, len(self.plans.where(slack_pct=2)))

    @needs("pyarrow")
    def test_arrow_with_units(self):
        table = self.plans.to_arrow()
        self.assertEqual(table.schema.field("energy_j").metadata, {b"unit": b"J"})
        self.assertEqual(table.num_rows, len(self.plans))
        self.assertEqual(table.column("energy_j").to_pylist(), self.plans["energy_j"])

    @needs("duckdb", "pyarrow")
    def test_duckdb_reads_arrow_without_a_copy_through_text(self):
        import duckdb

        plans = self.plans.to_arrow()  # noqa: F841, found by its name
        self.assertAlmostEqual(duckdb.sql("SELECT sum(energy_j) FROM plans").fetchall()[0][0], self.energy_j, places=9)

    @needs("datasette")
    def test_datasette_serves_a_database(self):
        done = subprocess.run([sys.executable, "-m", "datasette", str(self.db), "--get", "/results.json?sql=select+count(*)+as+n+from+v_plans&_shape=array"],
                              capture_output=True, text=True)
        with rubato.Results(self.db) as results:
            self.assertEqual(json.loads(done.stdout), [{"n": len(results.plans)}], done.stderr)


def one_f_one_b(stages, microbatches):
    """(graph of passes, node by (stage, kind, microbatch)), with one node before and one behind all, as lowtime wants it."""
    import networkx

    graph, passes = networkx.DiGraph(), {}
    for stage in range(stages):
        warm = min(stages - stage, microbatches)  # so many forward passes, then turns
        order = [("forward", i) for i in range(warm)]
        for i in range(microbatches):
            order += [("backward", i)] + [("forward", warm + i)] * (warm + i < microbatches)
        for one in order:
            passes[(stage, *one)] = len(passes) + 1
        networkx.add_path(graph, [passes[(stage, *one)] for one in order])
    for i in range(microbatches):
        networkx.add_path(graph, [passes[stage, "forward", i] for stage in range(stages)])
        networkx.add_path(graph, [passes[stage, "backward", i] for stage in reversed(range(stages))])
        graph.add_edge(passes[stages - 1, "forward", i], passes[stages - 1, "backward", i])
    source, sink = 0, len(passes) + 1
    first = [node for node in graph if not graph.in_degree(node)]
    last = [node for node in graph if not graph.out_degree(node)]
    graph.add_edges_from([(source, node) for node in first] + [(node, sink) for node in last])
    graph.graph.update(source_node=source, sink_node=sink)
    return graph, passes


class Oracles(WithProgram):
    @needs("highspy", "numpy")
    def test_highs_finds_no_better_plan_per_kernel(self):
        """min energy, one clock for each kernel, all times within the budget: HiGHS proves the least to 1e-7."""
        import highspy

        slack = 2
        answer = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", granularity="kernel", slack=slack, odds=0, db=self.db)
        with rubato.Results(self.db) as results:
            cells = results.query("SELECT unit_id AS kernel, clock_id AS clock, launches * time_s AS t, launches * energy_j AS e FROM v_cells")
            default = results.query("SELECT clock_id FROM clocks WHERE is_default")[0]["clock_id"]
        plan = answer.plans.where(granularity="kernel")[0]
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("mip_rel_gap", 1e-7)
        chosen = [highs.addBinary(obj=cell["e"]) for cell in cells]
        for kernel in {cell["kernel"] for cell in cells}:
            highs.addConstr(sum(one for one, cell in zip(chosen, cells) if cell["kernel"] == kernel) == 1)
        budget_s = (1 + slack / 100) * sum(cell["t"] for cell in cells if cell["clock"] == default)
        highs.addConstr(sum(cell["t"] * one for one, cell in zip(chosen, cells)) <= budget_s)
        highs.run()
        least_j = highs.getObjectiveValue()
        self.assertLessEqual(plan["time_s"], budget_s * (1 + 1e-9))
        self.assertAlmostEqual(plan["energy_j"] / least_j, 1.0, delta=1e-6)
        self.assertLess(plan["energy_j"], 0.97 * rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", granularity="iteration", odds=0).plans[0]["energy_j"])

    @needs("lowtime", "networkx")
    def test_lowtime_saves_no_more_on_a_pipeline(self):
        """The Perseus authors' solver on the same measured passes and schedule: in the time that its clocks take, ours use no more."""
        from lowtime.cost_model import ExponentialModel
        from lowtime.operation import CandidateExecutionOptions, DummyOperation, ExecutionOption, Operation, OperationSpec
        from lowtime.solver import PhillipsDessouky
        import networkx

        stages, microbatches, blocked_w, unit_s = 4, 6, 83.64, 0.001
        profile = rubato.Table(dict(zip(("stage", "instruction", "mhz", "time_s", "energy_j"), line.split(",")))
                               for line in (EXAMPLES / "gpt3-175b-a100.csv").read_text().splitlines()[1:])
        measured = {(int(row["stage"]), row["instruction"], int(row["mhz"])): (float(row["time_s"]), float(row["energy_j"])) for row in profile}
        specs = {}
        for stage in range(stages):
            for kind in ("forward", "backward"):
                options = CandidateExecutionOptions([ExecutionOption(real_time=t, unit_time=unit_s, cost=e - blocked_w * t, knob=mhz)
                                                     for (s, k, mhz), (t, e) in measured.items() if (s, k) == (stage, kind)])
                specs[stage, kind] = OperationSpec(options=options, cost_model=ExponentialModel(options))
        graph, passes = one_f_one_b(stages, microbatches)
        source, sink = graph.graph["source_node"], graph.graph["sink_node"]
        for node in (source, sink):
            graph.nodes[node]["op"] = DummyOperation()
        for key, node in passes.items():
            graph.nodes[node]["op"] = Operation(specs[key[:2]])
        kinds = {node: key[:2] for key, node in passes.items()}

        def played(clock_of):
            """Time and energy of the iteration at a clock for each pass, as measured."""
            ends, energy_j, busy_s = {source: 0.0}, 0.0, 0.0
            for node in networkx.topological_sort(graph):
                begin = max((ends[before] for before in graph.predecessors(node)), default=0.0)
                time_s, joules = measured[(*kinds[node], clock_of(node))] if node in kinds else (0.0, 0.0)
                ends[node], energy_j, busy_s = begin + time_s, energy_j + joules, busy_s + time_s
            return ends[sink], energy_j + blocked_w * (stages * ends[sink] - busy_s)

        default_s, default_j = played(lambda _: 1410)
        pipeline = self.folder / "pipeline.json"
        rubato.run("pipeline", "describe", "--profile", EXAMPLES / "gpt3-175b-a100.csv", "--stages", stages, "--stage-map", "0,1,2,3",
                   "--microbatches", microbatches, "--blocked-power", blocked_w, "-o", pipeline)
        ours = rubato.explore(pipeline, odds=0, slack=0).plans
        self.assertAlmostEqual(ours[0]["time_s"] / default_s, 1, delta=1e-9)  # the same problem
        self.assertAlmostEqual(ours[0]["energy_j"] / default_j, 1, delta=1e-9)
        theirs = []
        for step in PhillipsDessouky(graph).run():
            clocks = {node: graph.nodes[node]["op"].assigned_knob for node in kinds}
            theirs.append(played(clocks.get))
        time_s, energy_j = min((one for one in theirs if one[0] <= 1.01 * default_s), key=lambda one: one[1])
        slack_pct = max(100 * (time_s / default_s - 1), 0) + 1e-6
        same = rubato.explore(pipeline, odds=0, slack=slack_pct).plans[-1]
        print(f"lowtime: {100 * (energy_j / default_j - 1):+.2f} % energy at {100 * (time_s / default_s - 1):+.2f} % time; ours {same['energy_change_pct']:+.2f} %")
        self.assertLess(energy_j, 0.95 * default_j)
        self.assertLessEqual(same["energy_j"], energy_j * (1 + 1e-9))
        self.assertLessEqual(same["lower_bound_j"], energy_j * (1 + 1e-9))


class Captures(WithProgram):
    @needs("HolisticTraceAnalysis")
    def test_holistic_trace_analysis_counts_the_same_kernels_and_times(self):
        """It leaves out the last step of a profile; the rest has the same kernels, launches and time at work."""
        from hta.trace_analysis import TraceAnalysis

        folder = self.folder / "traces"
        folder.mkdir()
        (folder / "rank0.json.gz").write_bytes(CAPTURE.read_bytes())
        analysis = TraceAnalysis(trace_files={0: str(folder / "rank0.json.gz")}, trace_dir=str(folder))
        _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10_000, duration_ratio=1.0, include_memory_kernels=False)
        busy_us = analysis.get_temporal_breakdown(visualize=False).iloc[0]["compute_time(us)"]
        ours = rubato.replay(CAPTURE)
        named = {row["kernel"]: row for row in ours.kernels}
        self.assertEqual(len(kernels), 46)
        for row in kernels.to_dict("records"):
            mine, launches = named[row["name"]], round(row["sum (us)"] / row["mean (us)"])
            self.assertEqual(launches * len(ours.steps), mine["launches"] * (len(ours.steps) - 1), row["name"])
            mean_us = 1e3 * mine["captured_ms"] / mine["launches"]
            self.assertAlmostEqual(row["mean (us)"], mean_us, delta=2 + 0.01 * mean_us)  # it cuts begin and end to whole us
        in_step_ms = sum(ours.steps["captured_ms"]) * (len(ours.steps) - 1) / len(ours.steps)
        self.assertAlmostEqual(1e-3 * busy_us / in_step_ms, 1, delta=1e-3)


class Energy(WithProgram):
    @needs("zeus", "nvidia-ml-py")
    def test_zeus_measures_the_same_energy(self):
        """Through NVIDIA's own binding of NVML, on the simulated machine, in one window with ours."""
        machine = self.machine(counter_step_s=0.02)
        for _ in range(3000):  # 30 s: importing Zeus takes some
            machine.launch("gemm")
        code = ("import json, time, rubato; from zeus.monitor import ZeusMonitor; monitor = ZeusMonitor(gpu_indices=[0])\n"
                "with rubato.energy() as used:\n monitor.begin_window('w', sync_execution=False); time.sleep(2); theirs = monitor.end_window('w', sync_execution=False)\n"
                "print(json.dumps([used.gpu_j[0], used.time_s, theirs.gpu_energy[0], theirs.time]))")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                              env={**os.environ, **machine.environment(), "PYTHONPATH": str(ROOT / "tools" / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours_j, ours_s, theirs_j, theirs_s = json.loads(done.stdout.splitlines()[-1])
        print(f"zeus: {theirs_j:.2f} J in {theirs_s:.3f} s; rubato.energy: {ours_j:.2f} J in {ours_s:.3f} s")
        self.assertAlmostEqual(ours_j / ours_s, theirs_j / theirs_s, delta=0.03 * ours_j / ours_s)  # a step of the counter is 1 % of the window


class Notebook(WithProgram):
    @needs("nbclient", "nbformat", "ipykernel", "matplotlib")
    def test_the_notebook_runs_as_one(self):
        """docs/examples/notebook.py as Jupyter has it, every cell, with answers that show themselves."""
        import nbclient
        import nbformat

        cells = (EXAMPLES / "notebook.py").read_text(encoding="utf-8").split("# %%")[1:]
        made = nbformat.v4.new_notebook(cells=[
            nbformat.v4.new_markdown_cell("\n".join(line.removeprefix("# ") for line in cell.splitlines()[1:])) if cell.startswith(" [markdown]")
            else nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
        setup = f"import os, sys; os.chdir({str(EXAMPLES)!r}); sys.path[:0] = [{str(ROOT / 'tools' / 'python')!r}]; sys.argv[1:] = [{str(self.folder)!r}]"
        made.cells.insert(0, nbformat.v4.new_code_cell(setup))
        nbclient.NotebookClient(made, timeout=120, kernel_name="python3").execute()
        shown = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
        self.assertTrue([output for output in shown if "text/html" in output.get("data", {}) and "<small>%</small>" in output["data"]["text/html"]])
        self.assertTrue((self.folder / "plans.svg").exists())


class Trainers(unittest.TestCase):
    """Hooks of our callbacks take what the frameworks' own base classes take, by their sources."""

    def hooks(self, package, path, cls):
        folder = Path(importlib.util.find_spec(package).origin).parent
        tree = ast.parse((folder / path).read_text(encoding="utf-8"))
        body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls).body
        return {node.name: ([one.arg for one in node.args.args], node.args.kwarg is not None) for node in body if isinstance(node, ast.FunctionDef)}

    def check(self, ours, theirs, wanted):
        import inspect

        for name in wanted:
            arguments, has_more = theirs[name]
            parameters = list(inspect.signature(getattr(ours, name)).parameters.values())
            self.assertEqual([one.name for one in parameters[:len(arguments)]], arguments, name)
            self.assertTrue(all(one.default is not one.empty or one.kind is one.VAR_KEYWORD for one in parameters[len(arguments):]), name)
            self.assertEqual(parameters[-1].kind is inspect.Parameter.VAR_KEYWORD, has_more, name)

    @needs("transformers")
    def test_hugging_face(self):
        theirs = self.hooks("transformers", "trainer_callback.py", "TrainerCallback")
        ours = rubato.callbacks._HuggingFace
        self.check(ours, theirs, [name for name in vars(ours) if name.startswith("on_")])
        callback = rubato.callbacks.HuggingFace()
        for name in theirs:
            if name.startswith("on_") and name not in vars(ours):
                getattr(callback, name)(None, None, None, more=1)  # Trainer calls every one

    @needs("lightning")
    def test_lightning(self):
        theirs = self.hooks("lightning", "pytorch/callbacks/callback.py", "Callback")
        ours = rubato.callbacks._Lightning
        self.check(ours, theirs, [name for name in vars(ours) if name.startswith("on_")])


if __name__ == "__main__":
    if not there:
        print("skipped: no neighbour is installed (tools/setup --python)")
        sys.exit(77)
    print("beside", ", ".join(sorted(there)))
    run_tests()
