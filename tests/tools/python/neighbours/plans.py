"""Answers in what people read tables with; other solvers on the same problems; tables that another tuner wrote."""

import contextlib
import importlib.util
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from neighbours.needs import EXAMPLES, needs
from parts import ROOT, WithProgram

import rubato


class Answers(WithProgram):
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
        with contextlib.closing(sqlite3.connect(self.db)) as plain:
            stored = pandas.read_sql("SELECT * FROM v_plans", plain)
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

    @needs("duckdb", "duckdb-extension-sqlite-scanner")
    def test_duckdb_answers_the_questions_of_the_documents(self):
        """It attaches the database, reads its tables, and has SQLite answer what asks views, whose SQL it cannot read: the same rows."""
        import duckdb

        rubato.explore("gpt3-xl", clocks="mem=5001,auto core=1470,1680,auto", db=self.db)
        scanner = next(Path(importlib.util.find_spec("duckdb_extension_sqlite_scanner").origin).parent.rglob("*.duckdb_extension"))
        attached = duckdb.connect()
        attached.execute(f"LOAD '{scanner}'; ATTACH '{self.db}' AS r (TYPE sqlite, READ_ONLY)")
        questions = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/schema.md").read_text(encoding="utf-8"), re.DOTALL)
        self.assertGreater(len(questions), 5)
        with contextlib.closing(sqlite3.connect(self.db)) as plain:
            for question in questions:
                self.assertEqual(len(attached.execute("FROM sqlite_query('r', ?)", [question]).fetchall()), len(plain.execute(question).fetchall()), question)
            energies = "SELECT energy_j FROM {}plans ORDER BY plan_id"
            self.assertEqual(attached.execute(energies.format("r.")).fetchall(), plain.execute(energies.format("")).fetchall())

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
        answer = rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", per="kernel", slack=slack, odds=0, db=self.db)
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
        self.assertLess(plan["energy_j"], 0.97 * rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", per="run", odds=0).plans[0]["energy_j"])

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


class Tables(WithProgram):
    @needs("kernel_tuner")
    def test_kernel_tuner_finds_the_clock_that_we_plan(self):
        """In simulation mode, on a cache that its own functions wrote, a failed configuration in it: the same clock in the same time."""
        from kernel_tuner import tune_kernel, util

        cache, clocks, device = self.folder / "cache.json", [705, 900, 1110, 1305, 1410], "NVIDIA A100-SXM4-80GB"
        tuned = {"block_size_x": [128, 256, 512], "nvml_gr_clock": clocks}
        options = SimpleNamespace(tune_params=tuned, simulation_mode=False, objective="nvml_energy")
        runner = SimpleNamespace(get_device_info=lambda: SimpleNamespace(name=device), simulation_mode=False)
        known = util.process_cache(str(cache), SimpleNamespace(kernel_name="gemm", problem_size=1024), options, runner)
        for block, slower in ((128, 1.2), (256, 1.0), (512, None)):
            for mhz in clocks:
                time_ms = slower and slower * (0.4 + 0.6 * 1410 / mhz)
                util.store_cache(f"{block},{mhz}", {
                    "block_size_x": block, "nvml_gr_clock": mhz, "time": time_ms or util.RuntimeFailedConfig(),
                    **({"nvml_energy": 1e-3 * time_ms * (150 + 230 * (mhz / 1410) ** 3)} if slower else {})}, str(cache), known)
        found, _ = tune_kernel("gemm", "__global__ void gemm() {}", 1024, [], tuned, lang="CUDA", simulation_mode=True, cache=str(cache),
                               objective="nvml_energy", objective_higher_is_better=False, quiet=True)
        at_default = next(one for one in found if (one["block_size_x"], one["nvml_gr_clock"]) == (256, 1410))
        table = self.folder / "table.toml"
        table.write_text('file = "cache.json"\nwhere = {block_size_x = "256"}\n')
        for slack, mhz in ((0, 1410), (10, 1305), (100, 900)):
            in_time = [one for one in found if isinstance(one["time"], float) and one["time"] <= (1 + 0.01 * slack) * at_default["time"] * (1 + 1e-9)]
            best = min(in_time, key=lambda one: one["nvml_energy"])
            ours = rubato.explore(table=table, gpu="a100-sxm4-80gb", slack=slack, per="run", odds=0).plans[-1]
            self.assertEqual((best["block_size_x"], best["nvml_gr_clock"]), (256, mhz))
            self.assertEqual(ours["clocks"], f"1593/{mhz}")
            self.assertAlmostEqual(ours["energy_j"], best["nvml_energy"], places=9)
