"""Marks from Megatron-LM and Megatron-Bridge without a change to their files: the functions that all schedules call are wrapped.

Names and arguments as in NVIDIA/Megatron-LM 00611e6 (read 2026-11-23) and in versions since core 0.5, and in Megatron-Bridge 0.3.1. Schedules that run a
forward and a backward pass at once (overlap_moe_expert_parallel_comm) call neither function, and give no marks.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import Any, Callable, Iterator, Optional

from rubato.errors import UsageError
from rubato.hooks import Detach, grad_enabled, wrap_step

SCHEDULES = "megatron.core.pipeline_parallel.schedules"  #: has forward_step and backward_step
STATE = "megatron.core.parallel_state"  #: knows the pipeline rank once pretrain() has set it up
#: have train_step, whose fourth argument is the optimizer; the last one where none is loaded yet
TRAINING = ("megatron.bridge.training.train", "megatron.training.training")
OPTIMIZER_PLACE = 3


@contextlib.contextmanager
def marks(applier: Any) -> Iterator[None]:
    """`with rubato.megatron.marks(applier): pretrain(...)`: forward, backward and optimizer of each step. Evaluation gives none.

    Before the first step the applier is told the rank's pipeline stage.

    Raises UsageError where Megatron-LM is not there or has other names.
    """
    schedules = _module(SCHEDULES)
    training = next((sys.modules[name] for name in TRAINING if name in sys.modules), None) or _module(TRAINING[-1])
    optimizers: dict[int, Detach] = {}
    told: list[Optional[int]] = []  # the stage, once

    def before_train_step(*arguments: Any, **named: Any) -> None:
        if not told:
            told.append(_pipeline_rank())
            if told[0] is not None:
                applier.set_stage(told[0])
        optimizer = named.get("optimizer", arguments[OPTIMIZER_PLACE] if len(arguments) > OPTIMIZER_PLACE else None)
        if optimizer is not None and id(optimizer) not in optimizers:
            optimizers[id(optimizer)] = wrap_step(applier, optimizer)

    def marker(name: str) -> Callable[..., None]:
        def mark(*_: Any, **__: Any) -> None:
            if grad_enabled():
                applier.mark(name)

        return mark

    with contextlib.ExitStack() as undo:
        undo.callback(lambda: [detach() for detach in optimizers.values()])
        undo.callback(_wrap(schedules, "forward_step", marker("forward")))
        undo.callback(_wrap(schedules, "backward_step", marker("backward")))
        undo.callback(_wrap(training, "train_step", before_train_step))
        yield


def _pipeline_rank() -> Optional[int]:
    """This rank's pipeline stage; None where Megatron-LM does not say."""
    try:
        return int(importlib.import_module(STATE).get_pipeline_model_parallel_rank())
    except (ImportError, AttributeError, AssertionError, TypeError):  # it asserts that its groups are made
        return None


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name}: {error}", "run it where pretrain_gpt.py runs, with Megatron-LM on PYTHONPATH") from None


def _wrap(module: Any, name: str, before: Callable[..., None]) -> Detach:
    original: Any = getattr(module, name, None)
    if original is None:
        raise UsageError(f"{module.__name__} has no {name}", "this version of Megatron-LM needs marks by hand")

    @functools.wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        before(*arguments, **named)
        return original(*arguments, **named)

    setattr(module, name, wrapped)
    return lambda: setattr(module, name, original)
