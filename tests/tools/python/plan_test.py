#!/usr/bin/env python3
"""Plan files from stored runs: the segments are the plan, the choice is the one asked for, errors say what to try."""

import dataclasses
import json

from parts import ROOT, WithProgram, run_tests
from schema import plan_problems

import rubato
from rubato.errors import IoError, UsageError
from rubato.schedule import passes_of


class Export(WithProgram):
    def explore(self, trace="gpt3-xl", **options):
        return rubato.explore(trace, db=self.db, odds=0, **options)

    def export(self, run="latest", *more):
        file = json.loads(rubato.run("export", "--plan", run, "--db", self.db, *more))
        self.assertEqual(plan_problems(file, ROOT), [])
        return file

    def test_segments_are_the_plan(self):
        self.explore(gpu="a100-sxm4-80gb", slack=2)
        trace = json.loads(rubato.run("trace", "show", "gpt3-xl", "--json"))
        launches = sum(kernel["launches"] for kernel in trace)
        # 400 changes of clock a second, 22 ms each, are late: not chosen, nor written when asked for.
        self.assertNotIn("kernel", [plan["granularity"] for plan in self.export()["plans"]])
        self.assertEqual(rubato.run("export", "--plan", "latest", "--per", "kernel", "--db", self.db), "")
        rows = self.explore(gpu="a100-sxm4-80gb", slack=2, switching="latency=1us")["plans"]
        file = rubato.load_plan(self.export("latest", "--per", "kernel"))
        self.assertEqual([plan.granularity for plan in file.plans], ["kernel", "pass", "run"])  # and coarser ones
        for plan in file.plans:
            row = next(row for row in rows if row["granularity"] == plan.granularity and row["slack_pct"] is not None)  # not the default clocks
            segments = plan.gpu().segments
            self.assertEqual(sum(segment.launches for segment in segments), launches)
            # Changes of clock are free here, so that launches add up to the step.
            self.assertAlmostEqual(sum(segment.time_s for segment in segments), row["time_s"], places=9)
            self.assertAlmostEqual(sum(segment.energy_j for segment in segments), row["energy_j"], places=6)
            self.assertAlmostEqual(plan.promise.energy_change_pct, row["energy_change_pct"], places=9)
            if plan.granularity == "run":
                self.assertEqual(len({segment.clock for segment in segments}), 1)
            if plan.granularity == "pass":
                self.assertTrue(all(len(one.changes) == 1 for one in passes_of(plan.gpu())))
        self.assertEqual(sum(kernel.launches for kernel in file.kernels), launches)
        self.assertEqual(file.gpu_title, "NVIDIA A100-SXM4-80GB")
        self.assertEqual(file.core_latency_s, 1e-6)  # as asked for: the plans were judged by it

    def test_blocks_cut_by_changes_that_cost_keep_their_launches(self):
        self.explore(gpu="a100-sxm4-80gb", slack=2, per="segment", switching="spec")
        plan = rubato.load_plan(self.export()).chosen
        self.assertEqual(plan.granularity, "segment")
        trace = json.loads(rubato.run("trace", "show", "gpt3-xl", "--json"))
        self.assertEqual(sum(segment.launches for segment in plan.gpu().segments), sum(kernel["launches"] for kernel in trace))

    def test_auto_memory_and_core_are_null(self):
        self.explore(gpu="rtx-3080-ti", goal="edp", per="run", clocks="mem=auto core=auto")
        self.assertEqual(rubato.run("export", "--plan", "latest", "--db", self.db), "")  # nothing saves: the answer is to keep the default clocks
        clocks = self.export("latest", "--per", "run")["clocks"]
        self.assertEqual(clocks, [{"label": "auto/auto", "core_mhz": None, "mem_mhz": None, "power_limit_w": None}])

    def test_the_choice(self):
        self.explore(gpu="a100-sxm4-80gb", slack=2)
        self.assertEqual([plan["granularity"] for plan in self.export("1", "--per", "pass")["plans"]], ["pass", "run"])
        rows = json.loads(rubato.run("export", "plans", "--db", self.db, "--json"))
        iteration = next(row for row in rows if row["granularity"] == "run")
        self.assertEqual(self.export("1", "--plan-id", iteration["plan_id"])["plans"][0]["plan_id"], iteration["plan_id"])

    def test_captured_runs(self):
        self.explore(ROOT / "docs" / "examples" / "run.pt.trace.json.gz", captured_clock="1593/1410", slack=5, per=["pass", "run"])
        file = rubato.load_plan(self.export("1"))
        self.assertEqual(file.document["run"]["kind"], "capture")
        self.assertTrue(file.chosen.applicable)
        rows = json.loads(rubato.run("query", "SELECT pass, clock, launches FROM v_kernel_clocks "
                                     f"WHERE plan_id = {file.chosen.plan_id}", "--db", self.db, "--json"))
        self.assertEqual({(s.pass_name, s.clock.label) for s in file.chosen.gpu().segments}, {(r["pass"], r["clock"]) for r in rows})
        self.assertEqual(6 * sum(s.launches for s in file.chosen.gpu().segments), sum(r["launches"] for r in rows))  # six steps
        self.explore(ROOT / "docs" / "examples" / "run.pt.trace.json.gz", captured_clock="1593/1410", per="pass")
        self.assertEqual(self.export("latest", "--per", "pass")["run"]["run_id"], 2)

    def test_captured_plans_are_set_launch_by_launch(self):
        run = ROOT / "docs" / "examples" / "run.pt.trace.json.gz"
        self.explore(run, captured_clock="1593/1410", slack=5, per=["segment", "run"], switching="latency=10us")
        exported = self.export("1", "--per", "segment")
        file = rubato.load_plan(exported)
        self.assertTrue(file.chosen.applicable)
        segments = file.chosen.gpu().segments
        self.assertGreater(len(segments), 10)
        self.assertEqual({s.pass_name for s in segments}, {"forward", "backward"})
        # One step of six; all of its launches, of which the copy of the loss is no kernel.
        match = rubato.match_launches(file, run)
        self.assertEqual(match.unmatched_launches, 0)
        self.assertEqual(6 * (sum(s.launches for s in segments) - 1), match.launches)
        self.assertAlmostEqual(6 * sum(s.time_s for s in segments) / file.chosen.promise.time_s, 1.0, delta=0.05)
        known = {kernel["name"] for kernel in exported["kernels"]}
        self.assertLessEqual({s["first"]["kernel"] for s in exported["plans"][0]["gpus"][0]["segments"]}, known)

    def test_a_captured_plan_promises_what_is_left_after_its_changes_of_clock(self):
        run = ROOT / "docs" / "examples" / "run.pt.trace.json.gz"
        self.explore(run, captured_clock="1593/1410", slack=1, per=["pass", "kernel", "segment", "run"])
        rows = {row["granularity"]: row for row in json.loads(rubato.run("query", "SELECT * FROM v_plans", "--db", self.db, "--json"))}
        file = rubato.load_plan(self.export())
        in_time = [row for row in rows.values() if row["in_time"] != 0]
        self.assertLess(len(in_time), len(rows))  # kernel by kernel it is late
        best = min(in_time, key=lambda row: row["energy_change_pct"])
        self.assertEqual(file.chosen.granularity, best["granularity"])
        self.assertAlmostEqual(file.chosen.promise.energy_change_pct, best["energy_change_pct"], places=9)
        self.assertNotIn("kernel", [plan.granularity for plan in file.plans])

    def test_more_slack_is_beside_the_plan_for_stragglers(self):
        self.explore(ROOT / "docs" / "examples" / "run.pt.trace.json.gz", captured_clock="1593/1410", per="pass")
        file = rubato.load_plan(self.export("latest", "--per", "pass"))
        self.assertEqual([plan.slack_pct for plan in file.slower], [1, 2, 5])
        self.assertEqual(file.chosen.slack_pct, 0.0)

    def written(self, *arguments):
        """What a command writes with --plan-file; nothing where it says that the default clocks are the answer."""
        path = self.folder / "plan.json"
        path.unlink(missing_ok=True)
        rubato.run(*arguments, "--odds", 0, "--plan-file", path)
        file = json.loads(path.read_text())
        self.assertEqual(plan_problems(file, ROOT), [])
        rubato.load_plan(file)
        return file

    def test_every_kind_of_run_writes_one_format(self):
        examples = ROOT / "docs" / "examples"
        runs = {"trace": ("explore", "gpt3-xl", "--gpu", "a100-sxm4-80gb", "--slack", 5),
                "capture": ("explore", examples / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--slack", 5),
                "ranks": ("explore", examples / "pipeline" / "rank*.pt.trace.json.gz", "--captured-clock", "1593/1410", "--slack", 5,
                          "--per", "run,gpu"),
                "stages": ("explore", "gpt3-xl", "--stages", 4, "--gpu", "a100-sxm4-80gb", "--slack", 5),
                "kernels of stages": ("explore", "gpt3-xl", "--stages", 2, "--microbatches", 2, "--per", "kernel", "--switching", "free"),
                "profile": ("explore", examples / "gpt3-175b-a100.csv", "--blocked-power", 83.64, "--slack", "5,10")}
        files = {name: self.written(*command) for name, command in runs.items()}
        self.assertEqual([file["run"]["kind"] for file in files.values()], ["trace", "capture", "capture", "pipeline", "pipeline", "pipeline"])
        self.assertEqual([file["run"]["gpus"] for file in files.values()], [1, 1, 4, 4, 2, 8])
        self.assertEqual([len(file["plans"][0]["gpus"]) for file in files.values()], [1, 1, 4, 4, 2, 8])
        self.assertEqual([plan["role"] for plan in files["profile"]["plans"]], ["answer", "coarser", "coarser", "slower"])
        self.assertEqual([file["plans"][0]["applicable"] for file in files.values()], [True] * 4 + [False, True])
        self.assertIsNone(files["profile"]["gpu"])
        by_hand = files["ranks"]["plans"][0]["by_hand"]
        self.assertRegex(by_hand, r"^GPU 0, 2: \d+ MHz; GPU 1: \d+ MHz; GPU 3: \d+ MHz\nTo set: sudo nvidia-smi -i 0,2 -lgc ")
        self.assertIsNone(files["stages"]["plans"][0]["by_hand"])

    def test_energies_are_the_gpus_alone(self):
        """Whatever the rest of the node draws: of stages, whose segments add up to the promise."""
        profile = ROOT / "docs" / "examples" / "gpt3-175b-a100.csv"
        files = [self.written("explore", profile, "--blocked-power", 83.64, "--microbatches", 6, "--slack", 5, "--host-power", watts)
                 for watts in (0, 200)]
        self.assertAlmostEqual(files[0]["run"]["default_energy_j"], files[1]["run"]["default_energy_j"], places=6)
        for file in files:
            plan = file["plans"][0]
            self.assertAlmostEqual(sum(one["energy_j"] for gpu in plan["gpus"] for one in gpu["segments"]), plan["promise"]["energy_j"], places=6)
            for gpu in plan["gpus"]:
                self.assertAlmostEqual(sum(one["time_s"] for one in gpu["segments"]), plan["promise"]["time_s"], places=9)
        self.assertIsNone(files[1]["plans"][0]["promise"]["lower_bound_j"])

    def test_explore_writes_what_export_does(self):
        for work in (("gpt3-xl", "--gpu", "a100-sxm4-80gb"), (ROOT / "docs" / "examples" / "run.pt.trace.json.gz", "--captured-clock", "1593/1410")):
            file = self.written("explore", *work, "--slack", "5", "--db", self.db)
            exported = self.export()
            self.assertEqual({**file, "created_utc": ""}, {**exported, "created_utc": ""})
            alone = self.written("explore", *work, "--slack", "5")
            self.assertIsNone(alone["run"]["run_id"])
            self.assertEqual([plan["plan_id"] for plan in alone["plans"]], [None] * len(alone["plans"]))
            self.assertEqual([plan["promise"] for plan in alone["plans"]], [plan["promise"] for plan in file["plans"]])

    def test_what_changes_take_is_what_was_asked_for(self):
        """Of traces, captures and pipelines, of a run and of a unit of an experiment; memory and energy too."""
        given = "latency=3ms,stall=1ms,energy=0.02"
        memory = "mem.latency=9ms,mem.stall=4ms,mem.energy=0.05"
        core = {"latency_s": 0.003, "stall_s": 0.001, "energy_j": 0.02}
        capture = ROOT / "docs" / "examples" / "run.pt.trace.json.gz"
        for work in (("explore", "gpt3-xl", "--gpu", "a100-sxm4-80gb"), ("explore", capture, "--captured-clock", "1593/1410"),
                     ("explore", "gpt3-xl", "--stages", 2, "--gpu", "a100-sxm4-80gb")):
            file = self.written(*work, "--slack", 5, "--switching", f"{given},{memory}")
            self.assertEqual(file["switching"]["source"], "given")
            self.assertEqual(file["switching"]["core"], core)
            self.assertEqual(file["switching"]["mem"], {"latency_s": 0.009, "stall_s": 0.004, "energy_j": 0.05})
            self.assertEqual(rubato.load_plan(file).core_latency_s, 0.003)
        experiment = self.folder / "experiment.toml"
        experiment.write_text("\n".join(["schema = 1", 'name = "switching"', "[axes]", f"capture = ['{capture}']", 'gpu = ["a100-sxm4-80gb"]',
                                         'captured_clock = ["1593/1410"]', 'granularity = ["run"]', "slack_pct = [20]", "switch_latency_us = [3000]",
                                         "switch_stall_us = [1000]", "switch_energy_j = [0.02]"]))
        rubato.run("experiment", "run", experiment, "--db", self.db)
        self.assertEqual(self.export("1", "--per", "run")["switching"]["core"], core)

    def test_the_drivers_names_fit_the_specs(self):
        # As NVML has them; of H200 read on 2026-11-27 (driver 580.159.04). The plan has the spec's title.
        titles = {row["name"]: row["title"] for row in json.loads(rubato.run("gpus", "--json"))}
        plan = rubato.load_plan(ROOT / "docs/examples/plan.json")
        for name, spec in {"NVIDIA H200": "h200-sxm5", "NVIDIA H100 80GB HBM3": "h100-sxm5", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H100 NVL": "h100-nvl",
                           "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb", "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb", "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
                           "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb", "Tesla V100-SXM2-16GB": "v100-sxm2", "Tesla V100-SXM2-32GB": "v100-sxm2",
                           "Tesla V100-PCIE-16GB": "v100-pcie", "NVIDIA L4": "l4", "NVIDIA L40S": "l40s", "NVIDIA A10": "a10", "NVIDIA A40": "a40",
                           "NVIDIA B200": "b200-sxm6", "NVIDIA GeForce RTX 3080 Ti": "rtx-3080-ti-2", "Quadro RTX 8000": "rtx-8000",
                           "NVIDIA TITAN V": "titan-v", "NVIDIA GeForce GTX TITAN X": "gtx-titan-x", "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada"}.items():
            fitting = {one for one, title in titles.items() if dataclasses.replace(plan, gpu_title=title).fits_gpu(name)}
            # Those of one card that were fitted to other data are for it too.
            self.assertEqual({one for one in fitting if not one.startswith("rtx-3080-ti")} or {"rtx-3080-ti-2"}, {spec}, name)
            self.assertIn(spec, fitting)

    def test_errors(self):
        with self.assertRaises(IoError):
            self.export()
        self.explore(gpu="a100-sxm4-80gb", per="pass")
        for run, expected in (("7", "there is no run 7"), ("x", "expected 'latest' or a number"), ("graph:1", "the run is 'graph:1'")):
            with self.assertRaisesRegex(UsageError, expected):
                self.export(run)
        with self.assertRaisesRegex(UsageError, "the run has no such plan"):
            self.export("1", "--per", "kernel")
        with self.assertRaisesRegex(UsageError, "give --plan too"):
            rubato.run("export", "--db", self.db, "--per", "pass")


if __name__ == "__main__":
    run_tests()
