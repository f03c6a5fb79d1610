"""What came of applying a plan."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Deque, Optional

LATEST_CALLS = 10_000  #: whose times are kept


@dataclass
class ApplierReport:
    """What came of applying a plan on one process's GPUs."""

    granularity: Optional[str] = None  #: that was applied; None: nothing was
    plan_id: Optional[int] = None  #: of it in the result database
    latency_s: float = 0.0  #: from request to effect, as requests count on it
    steps: int = 0
    requests: int = 0  #: calls that changed a clock
    ahead: int = 0  #: of these, calls before their pass began
    late: int = 0  #: changes asked for when their pass had begun already
    unmatched_marks: dict[str, int] = field(default_factory=dict)  #: passes that the plan does not know
    planned_time_s: float = 0.0  #: in passes that the plan knows
    total_time_s: float = 0.0
    foreign_clocks: int = 0  #: times a clock was found that nobody here set
    interruptions: int = 0  #: times zeusd could not be reached; the plan went on when it was back
    errors: list[str] = field(default_factory=list)
    call_s: Deque[float] = field(default_factory=lambda: deque(maxlen=LATEST_CALLS), repr=False)  #: of the latest calls that set a clock

    @property
    def applied_time_frac(self) -> float:
        """Share of the time between marks that ran under planned clocks."""
        return self.planned_time_s / self.total_time_s if self.total_time_s > 0 else 0.0

    def __str__(self) -> str:
        text = (f"plan applied per {self.granularity}, {self.steps} steps, {self.requests} requests ({self.ahead} ahead, {self.late} late), "
                f"{100 * self.applied_time_frac:.1f} % of the time under planned clocks") if self.granularity else "plan not applied"
        for name, count in self.unmatched_marks.items():
            text += f"; {count} marks '{name}' are not in the plan"
        if self.foreign_clocks:
            text += f"; {self.foreign_clocks} times somebody else had changed the clocks"
        if self.interruptions:
            text += f"; {self.interruptions} times zeusd could not be reached"
        return text + "".join(f"\n  error: {error}" for error in self.errors)
