"""When to ask for which clock: pure arithmetic on plans and learned durations, without threads or devices.

A step is a row of passes that marks begin. A pass of the plan is a row of changes at shares of its time. Requests are due a
latency before their change; the begin of the next pass is expected where it was in the steps before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from rubato.plan_file import Clock, DevicePlan, Plan

TOO_SHORT_FRAC = 0.05  #: share of the time that may lie in segments shorter than a change takes
SHORTEST_LATENCIES = 2.0  #: a segment shorter than this many latencies is too short
LEARNING_RATE = 0.25  #: of the moving average of durations
UNPLANNED = "unknown"  #: pass of launches that no range names


@dataclass(frozen=True)
class Change:
    """A clock from a share of its pass on."""

    at_frac: float
    clock: Clock


@dataclass(frozen=True)
class PassPlan:
    """Changes of one pass; the first is at 0."""

    name: str
    time_s: float  #: expected by the simulator
    changes: tuple[Change, ...]


def passes_of(device: DevicePlan) -> tuple[PassPlan, ...]:
    """A device's segments as passes in order. Expects segments."""
    groups: list[list[Any]] = []
    for segment in device.segments or ():
        if not groups or groups[-1][0].pass_name != segment.pass_name:
            groups.append([])
        groups[-1].append(segment)
    passes = []
    for group in groups:
        total_s = sum(segment.time_s for segment in group) or 1.0
        changes: list[Change] = []
        before_s = 0.0
        for segment in group:
            if not changes or changes[-1].clock != segment.clock:
                changes.append(Change(before_s / total_s, segment.clock))
            before_s += segment.time_s
        passes.append(PassPlan(group[0].pass_name, total_s, tuple(changes)))
    return tuple(passes)


def too_short_frac(passes: Sequence[PassPlan], latency_s: float, learned_s: Optional[dict[str, float]] = None) -> float:
    """Share of a step's time in stretches of one clock that are shorter than SHORTEST_LATENCIES changes of clock.

    `learned_s`: measured seconds of a pass by name, instead of what the plan expects.
    """
    stretches: list[list[Any]] = []  # clock, seconds
    for one in passes:
        pass_s = (learned_s or {}).get(one.name, one.time_s)
        ends = [change.at_frac for change in one.changes[1:]] + [1.0]
        for change, end in zip(one.changes, ends):
            length_s = (end - change.at_frac) * pass_s
            if stretches and stretches[-1][0] == change.clock:
                stretches[-1][1] += length_s
            else:
                stretches.append([change.clock, length_s])
    if len(stretches) > 1 and stretches[0][0] == stretches[-1][0]:  # steps follow each other
        stretches[0][1] += stretches.pop()[1]
    if len(stretches) <= 1:
        return 0.0
    total_s = sum(length_s for _, length_s in stretches)
    return sum(length_s for _, length_s in stretches if length_s < SHORTEST_LATENCIES * latency_s) / total_s if total_s else 0.0


def choose_plan(plans: Sequence[Plan], rank: int, latency_s: float, granularity: str = "auto",
                learned_s: Optional[dict[str, float]] = None) -> tuple[Optional[Plan], list[str]]:
    """The first plan that a device with this latency can follow, and why finer ones were passed over.

    None where none can: of the granularity asked for, with a known order and segments that are long enough.
    """
    reasons = []
    for plan in plans:
        if granularity not in ("auto", plan.granularity):
            continue
        if not plan.playable():
            reasons.append(f"{plan.granularity}: the plan file does not know the order of its launches")
            continue
        short = too_short_frac(passes_of(plan.device(rank)), latency_s, learned_s)
        if granularity == "auto" and short > TOO_SHORT_FRAC:
            reasons.append(f"{plan.granularity}: {100 * short:.0f} % of its time is in stretches shorter than "
                           f"{SHORTEST_LATENCIES:.0f} changes of clock ({1e3 * latency_s:.3g} ms each)")
            continue
        return plan, reasons
    return None, reasons


@dataclass
class Timing:
    """Learned durations of the passes of a step, by position."""

    durations_s: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    position: int = -1
    begun_s: float = 0.0

    def mark(self, name: str, at_s: float) -> None:
        """A pass begins: the one before it has lasted until now."""
        self._close(at_s)
        self.position += 1
        self.begun_s = at_s
        if self.position < len(self.names) and self.names[self.position] != name:  # another kind of step: learn it anew
            del self.names[self.position:], self.durations_s[self.position:]
        if self.position == len(self.names):
            self.names.append(name)

    def step(self, at_s: float) -> None:
        """The step ends."""
        self._close(at_s)
        if 0 <= self.position < len(self.names) - 1:  # shorter than before
            del self.names[self.position + 1:], self.durations_s[self.position + 1:]
        self.position = -1

    def _close(self, at_s: float) -> None:
        if self.position < 0:
            return
        lasted_s = max(at_s - self.begun_s, 0.0)
        if self.position < len(self.durations_s):
            known_s = self.durations_s[self.position]
            self.durations_s[self.position] = known_s + LEARNING_RATE * (lasted_s - known_s)
        else:
            self.durations_s.append(lasted_s)

    def duration_s(self) -> Optional[float]:
        """Expected duration of the pass that runs, s; None in the first step."""
        return self.durations_s[self.position] if 0 <= self.position < len(self.durations_s) else None

    def next_name(self) -> Optional[str]:
        """The pass expected after the one that runs; after the last one the first of the next step."""
        if not self.names or self.duration_s() is None:
            return None
        return self.names[(self.position + 1) % len(self.names)]

    def by_name(self) -> dict[str, float]:
        """Mean learned seconds of a pass by name."""
        found: dict[str, list[float]] = {}
        for name, duration_s in zip(self.names, self.durations_s):
            found.setdefault(name, []).append(duration_s)
        return {name: sum(values) / len(values) for name, values in found.items()}


class Score:
    """Passes of a plan by name and occurrence in the step."""

    def __init__(self, passes: Sequence[PassPlan]):
        self._by_name: dict[str, list[PassPlan]] = {}
        for one in passes:
            self._by_name.setdefault(one.name, []).append(one)
        self._uniform = passes[0].changes[0].clock if passes and len(
            {change.clock for one in passes for change in one.changes}) == 1 else None

    def find(self, name: str, occurrence: int) -> Optional[PassPlan]:
        """The k-th pass of that name; a step with more of them than the plan repeats the plan's last."""
        known = self._by_name.get(name)
        if known:
            return known[min(occurrence, len(known) - 1)]
        if self._uniform is not None:  # one clock for all holds whatever a pass is called
            return PassPlan(name, 0.0, (Change(0.0, self._uniform),))
        return None
