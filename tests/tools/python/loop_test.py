#!/usr/bin/env python3
"""In the loop: energy of any window, callbacks of trainers, the live view and its metrics, `rubato measure` of a script."""

import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import types
import unittest
import urllib.error
import urllib.request
from unittest import mock

from parts import OnMachine, ROOT, TWO_PASSES, WithProgram, document, run_tests, until

import rubato
from rubato.measuring import rapl, watch
from rubato.hardware.backends import NvmlBackend
from rubato.measuring.recorder import value_at

try:
    import torch
except ImportError:
    torch = None

WATTS = 360.0  # of 'gemm' at 1410 MHz, idle power with it


class Counters:
    """Files as the kernel has them: a package, its cores within, and DRAM."""

    def __init__(self, folder, range_uj=1e9):
        self.paths = {}
        for name, kind in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram"), ("intel-rapl-mmio:0", "package-0")):
            path = folder / name
            path.mkdir()
            (path / "name").write_text(kind + "\n")
            (path / "max_energy_range_uj").write_text(f"{range_uj:.0f}\n")
            self.paths[name] = path / "energy_uj"
            self.set(name, 0)

    def set(self, name, value_uj):
        new = self.paths[name].with_suffix(".new")
        new.write_text(f"{value_uj:.0f}\n")
        new.replace(self.paths[name])


class EnergyOfAWindow(OnMachine):
    def setUp(self):
        super().setUp()
        self.rapl = self.folder / "powercap"
        self.rapl.mkdir()
        patch = mock.patch.object(rapl, "FOLDER", self.rapl)
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_is_the_gpus_true_energy(self):
        machine = self.machine(counter_step_s=0.05)
        for _ in range(200):
            machine.launch("gemm")
        with rubato.energy() as used:
            time.sleep(0.6)
            self.assertGreater(used.energy_j, 0)  # so far
        self.assertAlmostEqual(used.gpu_j[0], WATTS * used.time_s, delta=0.5 * 0.05 * WATTS)  # half a step of the counter
        self.assertEqual((used.cpu_j, used.dram_j), (None, None))
        self.assertIn("RAPL", used.unknown["cpu"])
        self.assertRegex(str(used), r"GPU 0 [\d.]+ J \(3[56]\d\.\d W\), CPU not known, DRAM not known")

    def test_a_window_that_ends_in_idleness_does_not_count_it(self):
        machine = self.machine(counter_step_s=0.1)
        for _ in range(31):
            machine.launch("gemm")  # 0.31 s
        with rubato.energy() as used:
            machine.synchronize()
        time.sleep(0.2)
        self.assertAlmostEqual(used.energy_j, WATTS * used.time_s, delta=0.5 * 0.1 * WATTS)

    def test_without_a_counter_power_is_summed(self):
        machine = self.machine()
        machine.fail("no_counter", 1)
        for _ in range(100):
            machine.launch("gemm")
        with rubato.energy() as used:
            time.sleep(0.3)
        self.assertAlmostEqual(used.energy_j / used.time_s, WATTS, delta=0.03 * WATTS)

    def test_several_gpus_and_which(self):
        self.machine(gpus=3)
        for variables, gpus in (({}, [0, 1, 2]), ({"CUDA_VISIBLE_DEVICES": "2,0"}, [2, 0]), ({"CUDA_VISIBLE_DEVICES": "2,0", "LOCAL_RANK": "1"}, [0])):
            with mock.patch.dict("os.environ", variables):
                self.assertEqual(rubato.energy().gpus, gpus)
        with rubato.energy(gpus=[1]) as used:
            time.sleep(0.15)
        self.assertEqual(list(used.gpu_j), [1])

    def test_cpu_and_dram_count_over_the_end_of_their_range(self):
        counters = Counters(self.rapl, range_uj=100e6)
        counters.set("intel-rapl:0", 90e6)
        with mock.patch("rubato.measuring.energy.NvmlBackend", side_effect=rubato.IoError("no driver")), rubato.energy() as used:
            for value_uj in (95e6, 2e6, 7e6):  # 17 J, over 100 J
                time.sleep(0.05)
                counters.set("intel-rapl:0", value_uj)
                counters.set("intel-rapl:0:0", 1e3 * value_uj)  # within the package
                counters.set("intel-rapl:0:1", (value_uj + 10e6) % 100e6)
            time.sleep(0.02)
        self.assertEqual(used.gpu_j, None)
        self.assertAlmostEqual(used.cpu_j, 17.0, delta=6)  # steps of 5 J and more, interpolated
        self.assertLess(used.cpu_j, 25)
        zone = next(zone for zone in rapl.zones() if zone.kind == "cpu")
        sums = []
        for value_uj in (90e6, 95e6, 2e6, 7e6):
            counters.set("intel-rapl:0", value_uj)
            sums.append(zone.look())
        self.assertEqual([round(one, 6) for one in sums], [0, 5, 12, 17])
        self.assertEqual([zone.kind for zone in rapl.zones()], ["cpu", "dram"])

    def test_nothing_to_measure_is_an_error(self):
        with mock.patch("rubato.measuring.energy.NvmlBackend", side_effect=rubato.IoError("no driver")):
            with self.assertRaisesRegex(rubato.IoError, "no energy can be measured here.*no driver"):
                rubato.energy()

    def test_long_windows_keep_few_steps(self):
        self.machine(counter_step_s=0.002)
        with rubato.energy() as used:
            time.sleep(1)
        self.assertLessEqual(max(map(len, used._recorder.steps)), 8)
        self.assertAlmostEqual(used.energy_j / used.time_s, 60.0, delta=1.5)  # idle

    def test_between_two_steps_a_counter_is_interpolated(self):
        steps = [(0.7, 50.0), (1.0, 100.0), (2.0, 200.0), (3.0, 500.0)]  # read first at 0.7, when it had stood for a while
        self.assertEqual([value_at(steps, at_s) for at_s in (1.0, 1.5, 2.5, 3.0, 0.5)], [100.0, 150.0, 350.0, 500.0, 50.0])

    def test_the_command(self):
        machine = self.machine()
        out = self.folder / "energy.json"
        done = subprocess.run([sys.executable, "-B", "-m", "rubato", "energy", "-o", str(out), "--", sys.executable, "-c", "import sys, time; time.sleep(1); sys.exit(7)"],
                              capture_output=True, text=True, env={**machine.environment(), "PYTHONPATH": str(ROOT / "tools" / "python")})
        self.assertEqual(done.returncode, 7, done.stderr)
        found = json.loads(out.read_text())
        self.assertAlmostEqual(found["gpu_j"]["0"] / found["time_s"], 60.0, delta=3.0)


class Watched(OnMachine):
    def test_saved_and_lost_are_the_promise_on_what_was_measured(self):
        machine = self.machine()
        gpu = NvmlBackend().gpu(0)
        self.assertIn("no plan", watch.line(watch.read(gpu, 0)))
        with rubato.Applier(document([dict(segments=TWO_PASSES)]), guard=False, strict=True):
            time.sleep(0.2)
            one = watch.read(gpu, 0)
            self.assertEqual((one.granularity, one.core_mhz), ("pass", machine.read()["core_mhz"]))
            self.assertAlmostEqual(one.saved_j[0], one.played_j / 0.9 - one.played_j, places=6)
            self.assertAlmostEqual(one.saved_j[1], one.played_j / 0.92 - one.played_j, places=6)
            self.assertAlmostEqual(one.saved_j[2], one.played_j / 0.88 - one.played_j, places=6)
            self.assertAlmostEqual(one.lost_s[2], one.played_s - one.played_s / 1.01, places=6)
            self.assertAlmostEqual(one.played_j, 60.0 * one.played_s, delta=3.0)
            self.assertIn("by its promise", watch.line(one))
        self.assertIn("no plan", watch.line(watch.read(gpu, 0)))

    def test_a_lock_that_anybody_wrote(self):
        machine = self.machine()
        gpu = NvmlBackend().gpu(0)
        from rubato.hardware.lock import lock_path
        for text in ('{"pid": 1, "plan": {"file": 3}}', '{"plan": [1]}', '{"plan": {"file": "x", "granularity": "y", "begun_s": "z"}}', "no json", "[]"):
            lock_path(machine.uuids[0]).write_text(text)
            self.assertIsNone(watch.read(gpu, 0).saved_j)
            watch.line(watch.read(gpu, 0))

    def test_metrics_over_http(self):
        machine = self.machine(gpus=2)
        with watch.Watch().server(0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            with rubato.Applier(document([dict(segments=TWO_PASSES)]), guard=False, strict=True):
                before_j = machine.read(1)["energy_j"]
                with urllib.request.urlopen(f"{address}/metrics") as answer:
                    kind, text = answer.headers["Content-Type"], answer.read().decode()
                after_j = machine.read(1)["energy_j"]
            with self.assertRaises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{address}/other")
            server.shutdown()
        self.assertTrue(kind.startswith("application/openmetrics-text"))
        self.assertTrue(text.endswith("# EOF\n"))
        families = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
        self.assertEqual(len(families), len(set(families)))
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        for line in samples:
            name, labels, value = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)', line).groups()
            self.assertIn(name, families)
            float(value)
        self.assertEqual(len([line for line in samples if line.startswith("DCGM_FI_DEV_POWER_USAGE{")]), 2)
        counter_mj = float(re.search(r'^DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1".*} (\S+)$', text, re.MULTILINE)[1])
        self.assertTrue(before_j - 0.02 * 60.0 - 0.01 <= 1e-3 * counter_mj <= after_j, counter_mj)  # a step of the counter behind, at most
        self.assertIn(f'DCGM_FI_DEV_SM_CLOCK{{gpu="1",UUID="{machine.uuids[1]}"', text)
        self.assertEqual(len([line for line in samples if line.startswith("rubato_energy_saved_joules{")]), 1)


class Callbacks(OnMachine):
    """Stand-ins that call what the trainers call, in their order; against the real ones: neighbours_test.py."""

    def optimizer(self):
        return types.SimpleNamespace(step=lambda: None)

    def played(self, applier_of):
        self.seen = []
        mark, step = rubato.Applier.mark, rubato.Applier.step
        return (mock.patch.object(rubato.Applier, "mark", lambda one, name: (self.seen.append(name), mark(one, name))[1]),
                mock.patch.object(rubato.Applier, "step", lambda one: (self.seen.append("step"), step(one))[1]))

    def test_lightning_with_accumulated_gradients(self):
        machine = self.machine()
        callback = rubato.callbacks.Lightning(document([dict(segments=TWO_PASSES)]), guard=False, strict=True)
        logged = []
        module, patches = types.SimpleNamespace(log=lambda name, value: logged.append((name, value))), self.played(None)
        with patches[0], patches[1]:
            callback.on_train_start(None, module)
            self.assertEqual(machine.read()["core_asked"], 900)
            for batch in range(4):
                callback.on_train_batch_start(None, module, None, batch)
                callback.on_before_backward(None, module, None)
                if batch % 2:
                    callback.on_before_optimizer_step(None, module, self.optimizer())
                    callback.on_before_optimizer_step(None, module, self.optimizer())  # two optimizers are one step
                time.sleep(0.03)
                callback.on_train_batch_end(None, module, None, None, batch)
            callback.on_train_end(None, module)
        self.assertEqual(self.seen, ["forward", "backward", "forward", "backward", "optimizer", "step"] * 2)
        self.assertEqual((machine.read()["core_asked"], callback.session.report.steps), (0, 2))
        self.assertEqual(logged[-1][0], "rubato_energy_j")
        self.assertGreater(callback.session.used.energy_j, 60.0 * 0.1)

    def test_lightning_gives_clocks_back_after_an_exception(self):
        machine = self.machine()
        callback = rubato.callbacks.Lightning(document([dict(segments=TWO_PASSES)]), guard=False, strict=True)
        callback.on_train_start(None, None)
        callback.on_exception(None, None, RuntimeError())
        self.assertEqual(machine.read()["core_asked"], 0)

    @unittest.skipIf(torch is None, "python3-torch is not installed")
    def test_hugging_face(self):
        machine, model = self.machine(), torch.nn.Linear(4, 1)
        optimizer, patches = torch.optim.SGD(model.parameters(), lr=0.1), self.played(None)
        callback = rubato.callbacks.HuggingFace(document([dict(segments=TWO_PASSES)]), guard=False, strict=True)
        logs = {"loss": 1.0}
        with patches[0], patches[1]:
            callback.on_init_end(None, None, None)
            callback.on_train_begin(None, None, None, model=model, optimizer=optimizer, train_dataloader=None)
            for _ in range(2):
                callback.on_step_begin(None, None, None)
                model(torch.randn(2, 4)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                time.sleep(0.06)
            with torch.no_grad():
                model(torch.randn(2, 4))  # evaluation
            callback.on_log(None, None, None, logs=logs)
            callback.on_train_end(None, None, None)
        self.assertEqual(self.seen, ["forward", "backward", "optimizer", "step"] * 2)
        self.assertGreater(logs["rubato_energy_j"], 60 * 0.1)
        self.assertEqual((machine.read()["core_asked"], callback.session.report.steps), (0, 2))
        self.assertNotIn("step", vars(optimizer))

    def test_without_a_plan_and_without_a_gpu_training_goes_on(self):
        with mock.patch("rubato.measuring.energy.NvmlBackend", side_effect=rubato.IoError("no driver")), mock.patch.object(rapl, "FOLDER", self.folder):
            with self.assertLogs("rubato", "WARNING"):
                callback = rubato.callbacks.Lightning()
                callback.on_train_start(None, None)
            callback.on_train_batch_start(None, None, None, 0)
            callback.on_train_batch_end(None, None, None, None, 0)
            callback.on_train_end(None, None)

    def test_they_are_of_the_frameworks_class_where_it_is_loaded(self):
        class TrainerCallback:
            pass

        with mock.patch.dict(sys.modules, {"transformers": types.SimpleNamespace(TrainerCallback=TrainerCallback)}):
            self.assertTrue(issubclass(rubato.callbacks.HuggingFace, TrainerCallback))
        self.assertIs(rubato.callbacks.Lightning, rubato.callbacks.Lightning)


SCRIPT = textwrap.dedent("""
    import sys, torch
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    import time
    for _ in range(int(sys.argv[1])):
        model(torch.randn(2, 4)).sum().backward()
        time.sleep(0.02)
        optimizer.step()
        optimizer.zero_grad()
""")


@unittest.skipIf(torch is None, "python3-torch is not installed")
class MeasureAScript(WithProgram):
    def measure(self, steps, *more):
        self.now = self.machine()
        script, plan_path, self.csv = self.folder / "train.py", self.folder / "plan.json", self.folder / "ab.csv"
        script.write_text(SCRIPT)
        plan_path.write_text(json.dumps(document([dict(segments=[("forward", 510, 0.002), ("backward", 510, 0.02), ("optimizer", 510, 0.001)])])))
        return subprocess.run([os.environ["RUBATO"], "measure", str(plan_path), "-o", str(self.csv), "--pairs", "2", "--steps", "8",
                               "--settle-steps", "2", *more, "--", "python3", str(script), str(steps)], capture_output=True, text=True,
                              env={**os.environ, **self.now.environment(), "RUBATO_PYTHON": sys.executable,
                                                                    "PYTHONPATH": f"{ROOT / 'tools' / 'python'}:{os.environ.get('PYTHONPATH', '')}"})

    def test_windows_in_turns_in_a_script_that_knows_nothing(self):
        done = self.measure(50)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.csv.read_text().splitlines()
        self.assertEqual([row.split(",")[1] for row in rows[1:]], ["default", "plan", "plan", "default"])
        self.assertEqual([row.split(",")[2] for row in rows[1:]], ["8"] * 4)
        core = [int(row.split(",")[5]) for row in rows[1:]]
        self.assertEqual(core, [1410, 510, 510, 1410])
        self.assertIn("rubato verify --plan", done.stderr)
        self.assertEqual(self.now.read()["core_asked"], 0)

    def test_training_that_is_too_short_is_an_error(self):
        done = self.measure(15)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the training ended after 1 of 4 windows", done.stderr)
        self.assertEqual(self.now.read()["core_asked"], 0)


if __name__ == "__main__":
    run_tests()
