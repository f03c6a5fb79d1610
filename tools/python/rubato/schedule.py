"""When to ask for which clock: pure arithmetic on plans and learned durations, without threads or devices.

A step is a row of passes that marks begin. A pass of the plan is a row of changes at shares of its time. Requests are due a
latency before their change; the begin of the next pass is expected where it was in the steps before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from rubato.plan_file import Clock, GpuPlan

ANOTHER_RUN_FRAC = 0.5  #: passes that take less of what the plan expects are those of another run
GAPS = 5  #: between steps, of which the least counts
LEARNING_RATE = 0.25  #: of the moving average of durations
ALIKE = (ANOTHER_RUN_FRAC, 4.0)  #: within these times the plan's, a first duration says nothing against the plan's
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


def passes_of(gpu: GpuPlan) -> tuple[PassPlan, ...]:
    """A GPU's segments as passes in order. Expects that each has a clock."""
    groups: list[list[Any]] = []
    for segment in gpu.segments:
        if not groups or segment.begins_pass:
            groups.append([])
        groups[-1].append(segment)
    passes = []
    for group in groups:
        total_s = sum(segment.time_s for segment in group) or 1.0
        changes: list[Change] = []
        before_s = 0.0
        for segment in group:
            assert segment.clock is not None  # such a plan is refused before
            if not changes or changes[-1].clock != segment.clock:
                changes.append(Change(before_s / total_s, segment.clock))
            before_s += segment.time_s
        passes.append(PassPlan(group[0].pass_name, total_s, tuple(changes)))
    return tuple(passes)


@dataclass
class Timing:
    """Learned durations of the passes of a step, by position.

    The first step is applied without the changes inside its passes: its durations are not those under the plan's clocks. So learning
    begins with the plan's, unless the first are far off. From elsewhere it may settle on others: clocks that change too late make
    a pass longer, and in a longer pass they change later.
    """

    durations_s: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    position: int = -1
    begun_s: float = 0.0
    planned_s: Optional[float] = None  #: of the pass that runs
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=GAPS))  #: between the last steps: a stage waits for others there
    ended_s: Optional[float] = None  #: the step before

    def mark(self, name: str, at_s: float, planned_s: Optional[float] = None) -> None:
        """A pass begins: the one before it has lasted until now. `planned_s`: how long the new one takes in the plan."""
        self._close(at_s)
        if self.position < 0 and self.ended_s is not None:
            self.gaps_s.append(max(at_s - self.ended_s, 0.0))
        self.planned_s = planned_s
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
        self.position, self.ended_s = -1, at_s

    def _close(self, at_s: float) -> None:
        if self.position < 0:
            return
        lasted_s = max(at_s - self.begun_s, 0.0)
        if self.position < len(self.durations_s):
            known_s = self.durations_s[self.position]
            self.durations_s[self.position] = known_s + LEARNING_RATE * (lasted_s - known_s)
        else:
            planned_s = lasted_s if self.planned_s is None else self.planned_s
            self.durations_s.append(planned_s if ALIKE[0] * planned_s <= lasted_s <= ALIKE[1] * planned_s else lasted_s)

    def duration_s(self) -> Optional[float]:
        """Expected duration of the pass that runs, s; None in the first step."""
        return self.durations_s[self.position] if 0 <= self.position < len(self.durations_s) else None


    def gap_s(self) -> float:
        """Expected time from a step to the next one, s: the least of the last ones. Whoever asks a little early loses less than who is late."""
        return min(self.gaps_s, default=0.0)

    def gap_after_s(self, position: int) -> float:
        return self.gap_s() if position == len(self.names) - 1 else 0.0


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

    def requests(self, timing: Timing, at_s: float, latency_s: float) -> list[tuple[float, Clock, bool]]:
        """When to ask for which clock, a latency ahead of its effect, and whether that is for a later pass than the one that begins now.

        Of this pass and of those after it whose requests come before the next one begins, in order. In the first step only the clock of its begin.
        """
        found: list[tuple[float, Clock, bool]] = []
        begin_s, position = at_s, timing.position
        last_s = at_s + (timing.duration_s() or 0.0) + timing.gap_after_s(position)
        for later in range(len(timing.names)):
            name = timing.names[position]
            planned = self.find(name, timing.names[:position].count(name))
            duration_s = timing.durations_s[position] if position < len(timing.durations_s) else None
            for change in planned.changes[:1 if duration_s is None else None] if planned else ():
                found.append((begin_s + change.at_frac * (duration_s or 0.0) - latency_s, change.clock, later > 0))
            if duration_s is None or begin_s + duration_s + timing.gap_after_s(position) - latency_s > last_s:
                break
            begin_s += duration_s + timing.gap_after_s(position)
            position = (position + 1) % len(timing.names)
        return [one for one in found if one[0] <= last_s]

    def another_run(self, timing: Timing) -> Optional[str]:
        """Why the passes that were measured are not those of the plan; None where they may be, or one clock holds for all.

        The plan was judged by how long its stretches last (plans[].applicable): in much shorter passes they are too short.
        """
        if self._uniform is not None:
            return None
        seen: dict[str, int] = {}
        planned_s = measured_s = 0.0
        for name, duration_s in zip(timing.names, timing.durations_s):
            planned = self.find(name, seen.get(name, 0))
            seen[name] = seen.get(name, 0) + 1
            if planned is not None:
                planned_s += planned.time_s
                measured_s += duration_s
        if measured_s >= ANOTHER_RUN_FRAC * planned_s:
            return None
        return f"the passes of a step take {1e3 * measured_s:,.1f} ms, {1e3 * planned_s:,.1f} ms in the plan: it is of another run"
