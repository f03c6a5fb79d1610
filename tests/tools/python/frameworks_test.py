#!/usr/bin/env python3
"""The recipes of docs/apply.md, run as they stand there: DDP in two processes over gloo; Megatron-LM and DeepSpeed as
stand-ins that call what the real ones call (megatron/, and Engine below)."""

import contextlib
import json
import re
import sys
import textwrap
import types
import unittest
from unittest import mock

from parts import ROOT, OnMachine, TWO_PASSES, document, plan, ranks, run_tests

import rubato
from rubato import hooks
from rubato.errors import UsageError

try:
    import torch
except ImportError:
    torch = None

# Shorter than those of any machine that runs the recipes: much longer ones are of another run.
THREE_PASSES = [(name, core, 1e-6) for name, core, _ in (*TWO_PASSES, ("optimizer", 1110, 0))]


def recipe(heading):
    """The code below a heading of docs/apply.md."""
    text = (ROOT / "docs" / "apply.md").read_text(encoding="utf-8")
    return re.search(rf"^## {heading}$.*?```python\n(.*?)```", text, re.MULTILINE | re.DOTALL)[1]


class Played:
    """The package in a recipe: rubato.apply itself with all of its arguments, but with the dry backend and a plan of three passes;
    what the applier is told is remembered. An event is a thing that has happened."""

    def __init__(self):
        self.seen, self.options, self.report = [], {}, None

    @contextlib.contextmanager
    def apply(self, path, *arguments, **options):
        assert path == "plan.json"
        self.options = dict(options)
        if "event" in options:
            options["event"] = lambda: types.SimpleNamespace(query=lambda: True)  # there is no CUDA here
        play = rubato.apply(document([dict(segments=THREE_PASSES)]), *arguments, backend="dry", per="pass", guard=False, strict=True, **options)
        mark, step = rubato.Applier.mark, rubato.Applier.step

        def seen_mark(applier, name):
            self.seen.append(name)
            mark(applier, name)

        def seen_step(applier):
            self.seen.append("step")
            step(applier)

        with mock.patch.object(rubato.Applier, "mark", seen_mark), mock.patch.object(rubato.Applier, "step", seen_step):
            with play as applier:
                yield applier
                self.report = applier.report()
        assert self.report.errors == [] and self.report.unmatched_marks == {}, self.report


class Engine:
    """What DeepSpeedEngine does with module and optimizer (deepspeed/runtime/engine.py, read 2026-11-23): backward scales the loss
    by the steps of accumulation, step() calls the optimizer at their border and counts micro-batches after that."""

    def __init__(self, module, optimizer, accumulation):
        self.module, self.optimizer, self.accumulation, self.micro_steps = module, optimizer, accumulation, 0

    def __call__(self, *inputs):
        return self.module(*inputs)

    def is_gradient_accumulation_boundary(self):
        return (self.micro_steps + 1) % self.accumulation == 0

    def backward(self, loss):
        (loss / self.accumulation).backward()

    def step(self):
        if self.is_gradient_accumulation_boundary():
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.micro_steps += 1


class ZeroOptimizer:
    """DeepSpeed's own optimizers are no torch.optim.Optimizer."""

    def __init__(self, inner):
        self.inner, self.steps = inner, 0

    def step(self, closure=None):
        self.inner.step()
        self.steps += 1

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)


@unittest.skipIf(torch is None, "python3-torch is not installed")
class Recipes(OnMachine):
    def model(self):
        class Loss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 1)

            def forward(self, batch):
                return self.linear(batch).sum()

        return Loss()

    def test_deepspeed(self):
        model = self.model()
        optimizer = ZeroOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        played, data = Played(), [torch.randn(2, 4) for _ in range(4)]
        exec(recipe("DeepSpeed"), {"rubato": played, "engine": Engine(model, optimizer, accumulation=2), "data": data})
        self.assertEqual(played.seen, (["forward", "backward"] * 2 + ["optimizer", "step"]) * 2)
        self.assertEqual(played.report.granularity, "pass")
        self.assertEqual(optimizer.steps, 2)
        self.assertNotIn("step", vars(optimizer))

    def test_fsdp(self):
        played = Played()
        exec(recipe("DDP and FSDP"), {"rubato": played, "torch": torch, "model": self.model(), "data": [torch.randn(2, 4)] * 2,
                                      "FullyShardedDataParallel": lambda model: torch.nn.Sequential(model)})
        self.assertEqual(played.seen, ["forward", "backward", "optimizer", "step"] * 2)

    def megatron(self):
        """Its modules, as far as a step goes through them; torn out again at the end of the test."""
        sys.path.insert(0, str(ROOT / "tests" / "tools" / "python"))
        self.addCleanup(sys.path.remove, str(ROOT / "tests" / "tools" / "python"))
        import megatron.training.training as training
        from megatron.core.pipeline_parallel import schedules

        return training, schedules

    def test_megatron(self):
        training, schedules = self.megatron()
        before = training.train_step, schedules.forward_step, schedules.backward_step
        model = self.model()
        played = Played()
        optimizer = ZeroOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

        def forward_step(data_iterator, model):
            return model(next(data_iterator)), lambda loss: loss

        def pretrain(datasets, model_provider, model_type, forward_step_func):
            training.train(forward_step_func, [model_provider], optimizer, iter([torch.randn(2, 4)] * 20), iterations=2, micro_batches=3)

        module = types.ModuleType("rubato")
        module.apply, module.hooks, module.megatron = played.apply, hooks, __import__("rubato.megatron").megatron
        code = re.sub(r"^import rubato.*\n", "", recipe("Megatron-LM"), flags=re.MULTILINE)
        exec(code, {"rubato": module, "pretrain": pretrain, "train_valid_test_datasets_provider": None, "model_provider": model,
                    "ModelType": types.SimpleNamespace(encoder_or_decoder=1), "forward_step": forward_step})
        self.assertEqual(played.seen, (["forward", "backward"] * 3 + ["optimizer", "step"]) * 2)  # and nothing of the evaluation
        self.assertEqual(played.options, {"event": hooks.cuda_event})
        self.assertEqual((training.train_step, schedules.forward_step, schedules.backward_step), before)
        self.assertNotIn("step", vars(optimizer))

    def test_another_megatron_is_told_and_left_as_it_was(self):
        from rubato import megatron

        training, schedules = self.megatron()
        train_step, forward_step = training.train_step, schedules.forward_step
        del training.train_step
        try:
            with self.assertRaisesRegex(UsageError, "megatron.training.training has no train_step"):
                with megatron.marks(None):
                    pass
            self.assertEqual(schedules.forward_step, forward_step)
        finally:
            training.train_step = train_step

    def test_validation_is_no_pass(self):
        played, model = Played(), self.model()
        with played.apply("plan.json", model), torch.no_grad():
            model(torch.randn(2, 4))
        self.assertEqual(played.seen, [])


class MegatronStage(unittest.TestCase):
    """The pipeline rank of Megatron-LM or Megatron-Bridge is the stage; it is known only when pretrain() has set its groups up."""

    def seen(self, state, name="megatron.training.training"):
        """What an applier is told in two steps of a forward pass each."""
        from rubato import megatron

        applier = mock.Mock(spec=["mark", "step", "set_stage"])
        schedules = types.SimpleNamespace(__name__="schedules", forward_step=lambda: None, backward_step=lambda: None)
        training = types.SimpleNamespace(__name__="training", train_step=lambda *_: schedules.forward_step())
        with mock.patch.dict(sys.modules, {megatron.SCHEDULES: schedules, name: training, megatron.STATE: state}):
            with megatron.marks(applier):
                training.train_step()
                training.train_step()
        return applier.mock_calls

    def test_it_is_told_before_the_first_step(self):
        state = types.SimpleNamespace(get_pipeline_model_parallel_rank=lambda: 3)
        for name in ("megatron.training.training", "megatron.bridge.training.train"):
            self.assertEqual(self.seen(state, name), [mock.call.set_stage(3), mock.call.mark("forward"), mock.call.mark("forward")])

    def test_without_groups_the_default_order_holds(self):
        def no_groups():
            assert False, "pipeline_model parallel group is not initialized"

        for state in (types.SimpleNamespace(get_pipeline_model_parallel_rank=no_groups), types.SimpleNamespace(), None):
            self.assertEqual(self.seen(state), [mock.call.mark("forward"), mock.call.mark("forward")])


RANK = textwrap.dedent("""
    import json, os, sys, time
    import torch
    sys.path[:0] = [sys.argv[1]]
    import rubato
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = []
    with rubato.apply(sys.argv[2] if rank == 0 else "none.json", model, optimizer, guard=False, strict=True, per="pass") as applier:
        for step in range(6):
            torch.manual_seed(10 * step + rank)
            loss = model(torch.randn(8, 64)).sum()
            for _ in range(10):  # the next pass is asked for ahead of its time
                time.sleep(0.002)
                seen.append(applier._held._asked[applier.gpus[0]][0])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    report = applier.report()
    print(json.dumps([rank, report.steps, report.unmatched_marks, report.errors, 900 in seen, float(next(model.parameters()).sum())]))
""")


@unittest.skipIf(torch is None or not torch.distributed.is_available(), "no torch.distributed")
class TwoProcesses(OnMachine):
    def test_ddp(self):
        machine = self.machine(gpus=2)
        path = self.folder / "plan.json"
        path.write_text(json.dumps(document([dict(segments=THREE_PASSES)])))
        found = ranks(RANK, path)
        for rank in range(2):
            self.assertEqual(found[rank][:5], [rank, 6, {}, [], True])  # each its own GPU, in the clock of the forward pass
        self.assertEqual(found[0][5], found[1][5])  # the hooks leave DDP's gradients alone
        self.assertEqual([machine.read(i)["core_asked"] for i in (0, 1)], [0, 0])
        self.assertGreater(min(machine.read(i)["sets"] for i in (0, 1)), 6)


if __name__ == "__main__":
    run_tests()
