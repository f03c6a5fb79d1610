"""Several ranks: rank 0 reads the plan, all apply it; one that comes late lets the others slow down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from rubato.errors import RubatoError
from rubato.plan_file import PlanFile, load_plan

WATCH_STEPS = 20  #: steps between looks at who is late
LATE_FRAC = 0.02  #: of this rank's own time, by which the slowest rank is slower: less is noise


def _distributed() -> Optional[Any]:
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def shared_plan(plan: Union[str, Path, Mapping[str, Any], PlanFile]) -> PlanFile:
    """Rank 0's plan on every rank, so that the file has to lie on one machine only; without torch.distributed, load_plan.

    Raises on every rank what reading it raised on rank 0.
    """
    distributed = _distributed()
    if distributed is None:
        return load_plan(plan)
    box: list[Any] = [None, None]
    if distributed.get_rank() == 0:
        try:
            found = load_plan(plan)
            box = [found.path, dict(found.document)]
        except RubatoError as error:
            box = [None, error]
    distributed.broadcast_object_list(box, src=0)
    if isinstance(box[1], RubatoError):
        raise box[1]
    return load_plan(box[1])


class StragglerWatch:
    """Tells each rank's Applier when another rank computes longer, by all-gathering compute times every few steps.

    Call compute(seconds) once a step with the time this rank computed, without waiting for others; every rank must call it
    in every step. The late rank plays its plan; the others play the one with most slack that the late rank leaves them.
    """

    def __init__(self, applier: Any, every_steps: int = WATCH_STEPS, late_frac: float = LATE_FRAC):
        self.applier, self.every_steps, self.late_frac = applier, every_steps, late_frac
        self.slowdown_frac = 0.0  #: as told to the applier last
        self._times: list[float] = []

    def compute(self, seconds: float) -> None:
        self._times.append(seconds)
        if len(self._times) < self.every_steps:
            return
        mine = sorted(self._times)[len(self._times) // 2]
        self._times.clear()
        distributed = _distributed()
        if distributed is None:
            return
        all_times: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(all_times, mine)
        slowdown = max(all_times) / mine - 1.0
        self.tell(slowdown if slowdown > self.late_frac else 0.0)

    def tell(self, slowdown_frac: float) -> None:
        """Tells the Applier by hand, e.g. from a scheduler that knows of a throttled node."""
        if abs(slowdown_frac - self.slowdown_frac) > self.late_frac / 2 or (slowdown_frac == 0) != (self.slowdown_frac == 0):
            self.slowdown_frac = slowdown_frac
            self.applier.straggler(slowdown_frac)
