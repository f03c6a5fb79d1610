#!/usr/bin/env python3
"""Marks from real PyTorch on the CPU: models, autograd, optimizers, schedulers, scripts that know nothing, ranks."""

import json
import os
import subprocess
import sys
import textwrap
import unittest

from parts import ROOT, OnMachine, TWO_PASSES, document, ranks, run_tests, until

import rubato
from rubato import hooks

try:
    import torch
except ImportError:
    torch = None


class Marks:
    """An applier that only remembers."""

    def __init__(self):
        self.seen = []

    def mark(self, name):
        self.seen.append(name)

    def step(self):
        self.seen.append("step")

    def straggler(self, frac):
        self.seen.append(("straggler", round(frac, 2)))


STEP = ["forward", "backward", "optimizer", "step"]
SCRIPT = textwrap.dedent("""
    import sys, torch
    from torch.utils.checkpoint import checkpoint
    inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    outer = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW([*inner.parameters(), *outer.parameters()])
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    for _ in range(int(sys.argv[1])):
        x = torch.randn(2, 4, requires_grad=True)
        loss = outer(checkpoint(inner, x)).sum()
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        with torch.no_grad():
            outer(inner(x))  # validation is no pass
""")


@unittest.skipIf(torch is None, "python3-torch is not installed")
class Hooks(OnMachine):
    def model(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    def train(self, model, optimizer, steps=1, micro_batches=1):
        for _ in range(steps):
            for _ in range(micro_batches):
                model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    def test_passes_of_a_step_in_order(self):
        marks, (model, optimizer) = Marks(), self.model()
        hooks.attach(marks, model, optimizer)
        self.train(model, optimizer, steps=2)
        self.assertEqual(marks.seen, STEP * 2)

    def test_micro_batches_repeat_forward_and_backward(self):
        marks, (model, optimizer) = Marks(), self.model()
        hooks.attach(marks, model, optimizer)
        self.train(model, optimizer, micro_batches=3)
        self.assertEqual(marks.seen, ["forward", "backward"] * 3 + ["optimizer", "step"])

    def test_detached_hooks_are_gone_and_training_is_unchanged(self):
        torch.manual_seed(1)
        marks, (model, optimizer) = Marks(), self.model()
        start = [p.detach().clone() for p in model.parameters()]
        detach = hooks.attach(marks, model, optimizer)
        torch.manual_seed(2)
        self.train(model, optimizer, steps=3)
        hooked = [p.detach().clone() for p in model.parameters()]
        detach()
        marks.seen.clear()
        with torch.no_grad():
            for p, value in zip(model.parameters(), start):
                p.copy_(value)
        torch.manual_seed(2)
        self.train(model, optimizer, steps=3)
        self.assertEqual(marks.seen, [])
        for p, value in zip(model.parameters(), hooked):
            self.assertTrue(torch.equal(p, value))
        self.assertNotIn("step", vars(optimizer))

    def test_schedulers_made_after_the_hooks(self):
        marks, (model, optimizer) = Marks(), self.model()
        hooks.attach(marks, model, optimizer)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        self.train(model, optimizer)
        scheduler.step()
        self.assertEqual(marks.seen, STEP)

    def test_outputs_in_dictionaries_and_tuples(self):
        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 1)

            def forward(self, x):
                return {"loss": self.linear(x).sum(), "more": (self.linear(x), "text")}

        marks, model = Marks(), Two()
        hooks.attach(marks, model, None)
        out = model(torch.randn(2, 4))
        (out["loss"] + out["more"][0].sum()).backward()
        self.assertEqual(marks.seen, ["forward", "backward"])

    def test_with_apply_the_gpu_gets_the_clocks(self):
        machine, (model, optimizer) = self.machine(), self.model()
        brief = [(name, core, 1e-6) for name, core, _ in TWO_PASSES]  # else it is a plan of another run
        with rubato.apply(document([dict(segments=brief)]), model, optimizer, guard=False, per="pass", strict=True) as applier:
            self.train(model, optimizer, steps=5)
            self.assertTrue(until(lambda: applier.report().steps == 5))
            self.assertIn(machine.read()["core_asked"], (900, 1305))
        self.assertEqual(machine.read()["core_asked"], 0)
        self.assertEqual(applier.report().unmatched_marks, {"optimizer": 5})
        self.assertEqual(applier.report().errors, [])

    def test_a_script_that_knows_nothing(self):
        marks = Marks()
        detach = hooks.attach_everywhere(marks)
        before = sys.argv
        try:
            sys.argv = ["script", "2"]
            exec(compile(SCRIPT, "script", "exec"), {})
        finally:
            detach()
            sys.argv = before
        self.assertEqual(marks.seen, STEP * 2)

    def test_the_command(self):
        machine = self.machine()
        (self.folder / "train.py").write_text(SCRIPT)
        (self.folder / "plan.json").write_text(json.dumps(document([dict(segments=[("forward", 900, 1), ("backward", 900, 1)], granularity="run")])))
        done = subprocess.run([sys.executable, "-B", "-m", "rubato", "apply", "plan.json", "--strict", "--", "python3", "train.py", "3"],
                              cwd=self.folder, env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python")}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("plan applied per run, 3 steps, 1 requests", done.stderr)
        self.assertEqual((machine.read()["sets"], machine.read()["core_asked"]), (1, 0))


RANK = textwrap.dedent("""
    import os, sys, json, torch.distributed as distributed
    sys.path[:0] = [sys.argv[1]]
    import rubato
    from rubato.ranks import StragglerWatch
    rank = int(os.environ["RANK"])
    distributed.init_process_group("gloo")
    try:
        with rubato.apply(sys.argv[2] if rank == 0 else "not-on-this-machine.json", guard=False, strict=True) as applier:
            watch = StragglerWatch(applier, every_steps=2)
            applier.mark("forward")
            for _ in range(2):
                watch.compute(0.2 if rank == 1 else 0.1)
            applier.mark("forward")
            import time; time.sleep(0.2)
            gpu = applier._held.backend.gpu(applier.gpus[0])
            print(json.dumps([rank, applier.gpus, gpu.core_mhz(), watch.slowdown_frac]))
    except rubato.RubatoError as error:
        print(json.dumps([rank, str(error)]))
""")


@unittest.skipIf(torch is None or not torch.distributed.is_available(), "no torch.distributed")
class Ranks(OnMachine):
    def test_rank_0_reads_all_apply_and_the_others_wait_for_a_straggler(self):
        machine = self.machine(gpus=2)
        path = self.folder / "plan.json"
        slow = [("forward", 510, 0.06), ("backward", 705, 0.06)]
        path.write_text(json.dumps(document([dict(segments=TWO_PASSES)], slower=[dict(segments=slow, slack=0.5)])))
        self.assertEqual(ranks(RANK, path), [[0, [0], 510, 1.0], [1, [1], 900, 0.0]])
        self.assertEqual([machine.read(i)["core_asked"] for i in (0, 1)], [0, 0])

    def test_a_bad_plan_is_an_error_on_every_rank(self):
        self.machine(gpus=2)
        path = self.folder / "none.json"
        self.assertEqual(ranks(RANK, path), [[rank, f"{path}: No such file or directory"] for rank in (0, 1)])


if __name__ == "__main__":
    run_tests()
