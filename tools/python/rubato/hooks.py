"""Marks from PyTorch: hooks on one model and optimizer, or on everything a script trains.

forward begins when the model is called, backward when the gradient of its output is there, optimizer at optimizer.step(),
whose end ends the step. Works with PyTorch 1.13 and later.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable, Iterator

Detach = Callable[[], None]


def with_events(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """`options` of an Applier with GPU events where the model lies on CUDA: the host runs ahead of the GPU there."""
    torch = sys.modules.get("torch")
    if "event" in options or torch is None or not isinstance(model, torch.nn.Module):
        return options
    first = next(model.parameters(), None)
    return {**options, "event": cuda_event} if first is not None and first.is_cuda else options


def cuda_event() -> Any:
    """An event recorded now on the current CUDA stream."""
    import torch

    event = torch.cuda.Event()
    event.record()
    return event


class NoEvent:
    """Stands for an event that could not be recorded: asking it raises in the applier's thread, not in training."""

    def __init__(self, error: Exception):
        self._error = error

    def query(self) -> bool:
        raise self._error


def grad_enabled() -> bool:
    """Whether this is training: validation runs without gradients. True where there is no torch."""
    torch = sys.modules.get("torch")
    return torch is None or torch.is_grad_enabled()


def tensors_in(output: Any) -> Iterator[Any]:
    """Tensors in what a model returns: tuples, lists, dictionaries, objects with fields."""
    if hasattr(output, "requires_grad") and hasattr(output, "register_hook"):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from tensors_in(value)
    elif isinstance(output, (tuple, list)):
        for value in output:
            yield from tensors_in(value)
    elif hasattr(output, "__dataclass_fields__"):
        for name in output.__dataclass_fields__:
            yield from tensors_in(getattr(output, name))


def attach(applier: Any, model: Any = None, optimizer: Any = None) -> Detach:
    """Hooks for one model and one optimizer; what is None gets none. Returns what takes them away again.

    A call without gradients (validation) is no pass.
    """
    undo: list[Detach] = []
    if model is not None:
        def before(*_: Any) -> None:
            if grad_enabled():
                applier.mark("forward")

        def after(_module: Any, _inputs: Any, output: Any) -> None:
            marked: list[bool] = []

            def begins(_gradient: Any) -> None:
                if not marked:  # of several outputs the first gradient counts
                    marked.append(True)
                    applier.mark("backward")

            for tensor in tensors_in(output):
                if tensor.requires_grad:
                    tensor.register_hook(begins)

        undo += [model.register_forward_pre_hook(before).remove, model.register_forward_hook(after).remove]
    if optimizer is not None:
        undo.append(wrap_step(applier, optimizer))

    def detach() -> None:
        while undo:
            undo.pop()()

    return detach


def wrap_step(applier: Any, optimizer: Any) -> Detach:
    """optimizer.step() marks 'optimizer' and ends the step. It stays a bound method, as learning-rate schedulers expect."""
    original = optimizer.step

    @functools.wraps(getattr(original, "__func__", original))
    def step(_self: Any, *arguments: Any, **named: Any) -> Any:
        applier.mark("optimizer")
        try:
            return original(*arguments, **named)
        finally:
            applier.step()

    optimizer.step = types.MethodType(step, optimizer)

    def undo() -> None:
        if getattr(optimizer.step, "__func__", None) is step:  # else somebody wrapped it again
            del optimizer.step

    return undo


def attach_everywhere(applier: Any) -> Detach:
    """Hooks for a script that knows nothing of Rubato: any module's call, autograd, and every optimizer made from now on.

    Modules called within backward (activation checkpointing) begin no forward pass. Optimizers inside others are one.
    """
    import torch

    modules = torch.nn.modules.module
    state = {"backward": 0, "forward": False, "optimizer": 0}

    def before(*_: Any) -> None:
        if not state["forward"] and not state["backward"] and not state["optimizer"] and torch.is_grad_enabled():
            state["forward"] = True
            applier.mark("forward")

    handle = modules.register_module_forward_pre_hook(before)
    autograd_backward, make_optimizer = torch.autograd.backward, torch.optim.Optimizer.__init__

    @functools.wraps(autograd_backward)
    def backward(*arguments: Any, **named: Any) -> Any:
        state["backward"] += 1
        state["forward"] = False
        if state["backward"] == 1:  # checkpointing runs backward within backward
            applier.mark("backward")
        try:
            return autograd_backward(*arguments, **named)
        finally:
            state["backward"] -= 1

    class Marks:
        """One step, though optimizers may call others."""

        @staticmethod
        def mark(name: str) -> None:
            state["optimizer"] += 1
            if state["optimizer"] == 1:
                applier.mark(name)

        @staticmethod
        def step() -> None:
            state["optimizer"] -= 1
            state["forward"] = False
            if state["optimizer"] == 0:
                applier.step()

    @functools.wraps(make_optimizer)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        make_optimizer(self, *arguments, **named)
        if "step" not in vars(self):
            wrap_step(Marks, self)

    optimizer: Any = torch.optim.Optimizer
    torch.autograd.backward, optimizer.__init__ = backward, init

    def detach() -> None:
        handle.remove()
        torch.autograd.backward, optimizer.__init__ = autograd_backward, make_optimizer

    return detach
