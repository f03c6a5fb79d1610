"""Callbacks that mark passes, play a plan and measure energy: of Hugging Face's Trainer and of PyTorch Lightning.

    Trainer(..., callbacks=[rubato.callbacks.HuggingFace("plan.json")])
    lightning.Trainer(callbacks=[rubato.callbacks.Lightning("plan.json")])

Without a plan they only measure. Both are of the framework's own base class where that is loaded. Names of hooks as in
transformers 5.24 and lightning 2.6 (read 2026-11-27); they are those of versions 4 and 2.0 too.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any, Optional

from rubato import hooks, ranks
from rubato.applier import Applier
from rubato.applier_report import ApplierReport
from rubato.measuring.energy import Energy
from rubato.errors import RubatoError

_log = logging.getLogger("rubato")


class _Session:
    """A plan and a measurement from the beginning of training to its end. What cannot be measured is logged; training goes on."""

    def __init__(self, plan: Any, measure: bool, options: dict[str, Any]):
        self.plan, self.options, self._measure = plan, options, measure
        self.applier: Optional[Applier] = None
        self.used: Optional[Energy] = None
        self.report: Optional[ApplierReport] = None  #: after training
        self.detach: hooks.Detach = lambda: None

    def begin(self, model: Any) -> None:
        if self.plan is not None:
            self.applier = Applier(ranks.shared_plan(self.plan), **hooks.with_events(model, self.options))
        if self._measure:
            try:
                self.used = Energy()
                self.used.__enter__()
            except RubatoError as error:
                self.used = None
                _log.warning("rubato: energy is not measured: %s", error)

    def mark(self, name: str) -> None:
        if self.applier is not None:
            self.applier.mark(name)

    def step(self) -> None:
        if self.applier is not None:
            self.applier.step()

    def energy_j(self) -> Optional[float]:
        """So far; None where it is not known."""
        try:
            return self.used.energy_j if self.used is not None else None
        except RubatoError:  # a counter that has not moved yet
            return None

    def end(self) -> None:
        self.detach()
        self.detach = lambda: None
        if self.used is not None:
            self.used.__exit__()
            _log.info("rubato: %s", self.used)
        if self.applier is not None:
            self.report, self.applier = self.applier.close(), None
            _log.info("rubato: %s", self.report)


class _HuggingFace:
    def __init__(self, plan: Any = None, measure: bool = True, **options: Any):
        """`plan` and `options` as of rubato.Applier; `measure`: energy too, which each line of the log gets as rubato_energy_j."""
        self.session = _Session(plan, measure, options)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        """Hooks on model and optimizer mark passes."""
        self.session.begin(model)
        if self.session.applier is not None:
            self.session.detach = hooks.attach(self.session.applier, model, optimizer)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Energy since training began."""
        energy_j = self.session.energy_j()
        if logs is not None and energy_j is not None:
            logs["rubato_energy_j"] = energy_j

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Clocks are given back."""
        self.session.end()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):  # Trainer calls them all
            return lambda *_, **__: None
        raise AttributeError(name)


class _Lightning:
    def __init__(self, plan: Any = None, measure: bool = True, **options: Any):
        """`plan` and `options` as of rubato.Applier; `measure`: energy too, which is logged as rubato_energy_j."""
        super().__init__()
        self.session, self._stepped = _Session(plan, measure, options), False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The plan begins."""
        self.session.begin(pl_module)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Forward."""
        self.session.mark("forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Backward."""
        self.session.mark("backward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """The optimizer; with accumulated gradients it comes once in several batches."""
        if not self._stepped:
            self.session.mark("optimizer")
        self._stepped = True

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A step ends with the batch in which the optimizer stepped."""
        if self._stepped:
            self._stepped = False
            self.session.step()
        energy_j = self.session.energy_j()
        if energy_j is not None and hasattr(pl_module, "log"):
            pl_module.log("rubato_energy_j", energy_j)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Clocks are given back."""
        self.session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Clocks are given back."""
        self.session.end()


def __getattr__(name: str) -> Any:
    """HuggingFace and Lightning: made when they are asked for, since by then their frameworks are loaded."""
    bases: dict[str, tuple[Any, ...]] = {"HuggingFace": (_HuggingFace, "transformers.TrainerCallback"),
             "Lightning": (_Lightning, "lightning.pytorch.Callback", "pytorch_lightning.Callback")}
    if name not in bases:
        raise AttributeError(f"module 'rubato.callbacks' has no attribute '{name}'; it has {', '.join(bases)}")
    own, *theirs = bases[name]
    loaded = [getattr(sys.modules.get(module), cls, None) for module, _, cls in (one.rpartition(".") for one in theirs)]
    return _made(name, own, next((cls for cls in loaded if cls is not None), None))


@functools.lru_cache(maxsize=None)
def _made(name: str, own: Any, base: Any) -> Any:
    return type(name, (own,) if base is None else (own, base), {"__doc__": own.__init__.__doc__, "__module__": __name__})
