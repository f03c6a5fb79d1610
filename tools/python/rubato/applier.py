"""Plays a plan on GPUs beside training: marks come in, a thread asks for clocks ahead of time, everything is given back.

Marks cost the training thread one reading of the time and one entry in a queue. Whatever fails in the thread is logged once
and counted; clocks are given back and training goes on at the driver's.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from rubato.hardware import backends
from rubato.applier_report import ApplierReport
from rubato.devices import check_gpu, count_of, local_gpu, rank_of
from rubato.errors import IoError, Unreachable, UsageError
from rubato.hardware.hold import Hold
from rubato.held_clocks import HeldClocks
from rubato.hooks import NoEvent
from rubato.plan_file import Clock, Plan, PlanFile, load_plan
from rubato.schedule import Score, Timing, passes_of

POLL_S = 2e-4  #: between looks at events of the GPU
LEARNED_STEPS = 2  #: steps until measured durations say whether this is the plan's run
AWAY_S = 1.0  #: between tries to reach zeusd again

_log = logging.getLogger("rubato")


class Applier:
    """Applies one plan file to the GPUs of this process; use it in a `with`, or call close().

    plan         path, document or PlanFile
    gpus         NVML indices; default: LOCAL_RANK's of CUDA_VISIBLE_DEVICES, else 0
    rank         whose part of the plan; default: RANK of the environment, else 0
    stage        pipeline stage of this rank; default: rank // (WORLD_SIZE / stages of the plan), Megatron's default order
    backend      'auto', 'nvml', 'zeusd', 'dry', or an object like those of rubato.hardware.backends
    per          'auto': the plan that the file was made for, else a coarser one that it has too
    latency_s    request to effect of the core clock; default: the plan's, which is its GPU spec's
    event        makes an event that has a query(): marks count when the GPU gets there, not the host. See rubato.hooks
    guard        processes that give clocks back after kill -9
    strict       raise where the plan cannot be applied; default: log, count, and let training run at the driver's clocks
    any_gpu      also on another GPU than the plan's
    shared_gpu   also while another process computes on the GPU

    A plan file that cannot be read raises DataError or IoError in any case.
    """

    def __init__(self, plan: Union[str, Path, Mapping[str, Any], PlanFile], *, gpus: Optional[Sequence[int]] = None,
                 rank: Optional[int] = None, stage: Optional[int] = None, backend: Union[str, backends.Backend] = "auto", per: str = "auto",
                 latency_s: Optional[float] = None, event: Optional[Callable[[], Any]] = None, guard: bool = True,
                 strict: bool = False, any_gpu: bool = False, shared_gpu: bool = False):
        self.plan_file = load_plan(plan)
        self._owner = os.getpid()
        self._asked_granularity = per
        self._event = event
        self._report = ApplierReport()
        self._timing = Timing()
        self._occurrences: dict[str, int] = {}
        self._held: Optional[HeldClocks] = None
        self._away_until_s: Optional[float] = None  # zeusd cannot be reached; when to try again
        self._paused = False
        self._due: list[tuple[float, Clock, bool]] = []  # at, clock, ahead of its pass
        self._queue: "queue.SimpleQueue[Optional[tuple[str, float, Any]]]" = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._hold: Optional[Hold] = None
        self._score: Optional[Score] = None
        self.gpus: list[int] = list(gpus or ())
        self.rank, self.stage = rank or 0, stage
        try:
            self._report.latency_s = _latency(self.plan_file, latency_s)
            self.rank = rank_of("RANK") if rank is None else rank
            opened = backends.open_backend(backend) if isinstance(backend, str) else backend
            if gpus is None:
                self.gpus = [rank_of("LOCAL_RANK") if opened.name == "dry" else local_gpu()]
            self._start(opened, guard, any_gpu, shared_gpu)
        except Exception as error:  # training goes on whatever is wrong
            self._give_up(error)
            self.close()
            if strict:
                raise

    # What training calls.

    def mark(self, name: str) -> None:
        """A pass begins: 'forward', 'backward', 'optimizer' or another that the plan names. Costs microseconds, never raises."""
        self._put(name)

    def step(self) -> None:
        """The step is over."""
        self._put("")

    def pause(self) -> None:
        """Gives the clocks back until resume(), for validation or as the other arm of a measurement."""
        self._command("pause")

    def resume(self) -> None:
        """Goes on with the plan at the next mark."""
        self._command("resume")

    def straggler(self, slowdown_frac: float) -> None:
        """Another rank is late by this share of the step (0: no longer): the plan with most slack that is still in time is applied."""
        self._command(f"straggler {float(slowdown_frac)!r}")

    def set_stage(self, stage: int) -> None:
        """This rank runs that pipeline stage, as the framework says; a plan that is not by stage goes on as it is."""
        self._command(f"stage {int(stage)}")

    def report(self) -> ApplierReport:
        """Counts so far; complete after close()."""
        return self._report

    def close(self) -> ApplierReport:
        """Gives all clocks back and ends thread and guard. May be called again."""
        if os.getpid() != self._owner:  # a fork, such as a data loader's worker
            return self._report
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        given_back = self._release()
        if self._hold is not None:
            self._hold.close(given_back)
            self._hold = None
        atexit.unregister(self.close)
        return self._report

    def __enter__(self) -> "Applier":
        return self

    def __exit__(self, *_: Any) -> None:
        report = self.close()
        _log.info("%s", report)

    def _put(self, name: str) -> None:
        if self._thread is None:
            return
        event = None
        if self._event is not None and self._score is not None:  # a plan given up is counted at the host's time
            try:
                event = self._event()
            except Exception as error:  # of the GPU, such as an illegal address in a kernel before
                event = NoEvent(error)
        self._queue.put((name, time.perf_counter(), event))

    # Beginning and end.

    def _start(self, opened: backends.Backend, guard: bool, any_gpu: bool, shared_gpu: bool) -> None:
        for gpu in self.gpus:
            check_gpu(opened, gpu, self.plan_file, any_gpu, shared_gpu)
        self._held = HeldClocks(opened, self.gpus, self._report.latency_s, self._report.call_s)
        self._play(self.plan_file.asked(self._asked_granularity))
        self._hold = Hold(opened, self.gpus, guard, limits=self.plan_file.sets_power, lost=lambda error: self._command(f"unguarded {error}"),
                          plan=self._told())
        atexit.register(self.close)
        self._apply_first()
        self._thread = threading.Thread(target=self._run, name="rubato-applier", daemon=True)
        self._thread.start()

    def _told(self) -> dict[str, Any]:
        """Of the plan, for rubato watch."""
        promise = self._plan.promise
        return {"file": Path(self.plan_file.path).name[:100], "granularity": self._plan.granularity, "plan_id": self._plan.plan_id,
                "energy_change_pct": [promise.energy_change_pct, promise.energy_change_low_pct, promise.energy_change_high_pct],
                "time_change_pct": [promise.time_change_pct, promise.time_change_low_pct, promise.time_change_high_pct]}

    def _play(self, plan: Plan) -> None:
        self._plan = plan
        self._passes = passes_of(plan.gpu(self.rank, self.stage, count_of("WORLD_SIZE")))
        self._score = Score(self._passes)
        self._memory = self._sets_memory()
        self._report.granularity, self._report.plan_id = plan.granularity, plan.plan_id

    def _apply_first(self) -> None:
        """Sets the first clock before training begins, so that a refusal is known then."""
        self._ask(self._passes[0].changes[0].clock)

    def _release(self) -> bool:
        """Gives the clocks back; False where that failed, which the thread or the guard tries again."""
        failed = self._held.give_back() if self._held is not None else []
        for error in failed:
            self._note(f"clocks may still be locked: {error}")
        if any(isinstance(error, Unreachable) for error in failed):
            self._away_until_s = time.perf_counter() + AWAY_S
        return not failed

    def _note(self, text: str) -> None:
        if text not in self._report.errors:
            self._report.errors.append(text)
            _log.error("rubato: %s", text)

    def _lose(self, error: Unreachable) -> None:
        """zeusd does not answer: what it set stays until it is back or restarted, and is given back before the plan goes on."""
        self._note(str(error))
        self._stop_counting(time.perf_counter())
        self._report.interruptions += 1
        self._due.clear()
        self._away_until_s = time.perf_counter() + AWAY_S

    def _come_back(self) -> None:
        self._away_until_s = None
        failed = self._held.give_back() if self._held is not None else []
        if any(isinstance(error, Unreachable) for error in failed):
            self._away_until_s = time.perf_counter() + AWAY_S
        elif failed:
            raise failed[0]
        else:
            _log.warning("rubato: zeusd is back; the clocks were given back%s", ", and the plan goes on" if self._plays() else "")

    def _give_up(self, error: Exception) -> None:
        hint = getattr(error, "hint", "")
        self._note(f"{error} ({hint})" if hint else f"{error}")
        self._stop_counting(time.perf_counter())
        self._score = None
        self._due.clear()
        self._release()

    # The thread.

    def _run(self) -> None:
        pending: list[tuple[str, float, Any]] = []
        while True:
            try:
                if not self._turn(pending):
                    return
            except Unreachable as error:
                self._lose(error)
            except Exception as error:  # never into training
                self._give_up(error)
                pending[:] = [(name, at_s, None) for name, at_s, _ in pending]  # an event that failed will again

    def _turn(self, pending: list[tuple[str, float, Any]]) -> bool:
        timeout = None
        if self._due:
            timeout = max(self._due[0][0] - time.perf_counter(), 0.0)
        if pending:
            timeout = min(timeout, POLL_S) if timeout is not None else POLL_S
        if self._away_until_s is not None:
            left_s = max(self._away_until_s - time.perf_counter(), 0.0)
            timeout = min(timeout, left_s) if timeout is not None else left_s
        try:
            got = self._queue.get(timeout=timeout)
            if got is None:
                return False
            pending.append(got)
        except queue.Empty:
            pass
        while pending and (pending[0][2] is None or pending[0][2].query()):
            name, at_s, event = pending.pop(0)
            self._border(name, time.perf_counter() if event is not None else at_s)
        while self._due and self._due[0][0] <= time.perf_counter():
            _, clock, ahead = self._due.pop(0)
            if self._ask(clock):
                self._report.ahead += ahead
        if self._away_until_s is not None and self._away_until_s <= time.perf_counter():
            self._come_back()
        if self._held is not None and self._plays():
            for text in self._held.set_again():
                self._report.foreign_clocks += 1
                self._note(text)
        return True

    def _plays(self) -> bool:
        return not self._paused and self._score is not None and self._away_until_s is None

    def _command(self, text: str) -> None:
        self._queue.put((f"\0{text}", time.perf_counter(), None))

    def _obey(self, command: str, at_s: float) -> None:
        if command == "pause":
            self._account(at_s)
            self._counted_s = None
            self._paused = True
            self._due.clear()
            if self._away_until_s is None:
                self._release()
        elif command == "resume":
            self._paused = False
        elif command.startswith("unguarded"):
            raise IoError(command.partition(" ")[2])
        elif self._score is not None and command.startswith("stage"):
            self.stage = int(command.split()[1])
            self._play(self._plan)
        elif self._score is not None:
            slack_pct = 100 * float(command.split()[1]) + (self.plan_file.chosen.slack_pct or 0.0)
            slower = [plan for plan in self.plan_file.slower if plan.slack_pct is not None and plan.slack_pct <= slack_pct + 1e-9]
            self._play(max(slower, key=lambda plan: plan.slack_pct or 0.0) if slower else self.plan_file.asked(self._asked_granularity))

    def _border(self, name: str, at_s: float) -> None:
        if name.startswith("\0"):
            self._obey(name[1:], at_s)
            return
        self._account(at_s)
        self._planned = False
        self._counted_s = at_s if name and not self._paused else None
        if not name:
            self._timing.step(at_s)
            self._occurrences.clear()
            self._report.steps += 1
            another = self._score.another_run(self._timing) if self._report.steps == LEARNED_STEPS and self._score is not None else None
            if another:
                raise UsageError(f"{self.plan_file.path}: {another}", "plan it with 'rubato explore'")
            return
        occurrence = self._occurrences.get(name, 0)
        self._occurrences[name] = occurrence + 1
        planned = self._score.find(name, occurrence) if self._score is not None else None
        self._timing.mark(name, at_s, planned.time_s if planned else None)
        self._due.clear()
        if self._score is None or not self._plays():
            return
        if planned is None:
            self._report.unmatched_marks[name] = self._report.unmatched_marks.get(name, 0) + 1
        else:
            self._planned = True
        requests = self._score.requests(self._timing, at_s, self._report.latency_s)
        asked_by_now = [clock for when_s, clock, _ in requests if when_s <= at_s]
        if asked_by_now:
            self._report.late += self._ask(asked_by_now[-1])
        self._due = [one for one in requests if one[0] > at_s]

    _planned = False  #: the clocks of the pass that runs are the plan's
    _counted_s: Optional[float] = None  #: its time is in the report up to then; None where no pass runs, or in a pause

    def _account(self, at_s: float) -> None:
        """Counts the time up to a moment."""
        if self._counted_s is None:
            return
        lasted_s = max(at_s - self._counted_s, 0.0)
        self._counted_s += lasted_s
        self._report.total_time_s += lasted_s
        self._report.planned_time_s += lasted_s if self._planned else 0.0

    def _stop_counting(self, at_s: float) -> None:
        """From this moment on the clocks are not the plan's, until the next mark."""
        self._account(at_s)
        self._planned = False

    def _ask(self, clock: Clock) -> bool:
        """Requests what differs from the last request; True if anything did."""
        if self._held is None:
            return False
        begun_s = time.perf_counter()
        try:
            requests = self._held.ask(clock, self._memory)
        except Exception:
            self._stop_counting(begun_s)
            raise
        self._report.requests += requests
        return requests > 0

    def _sets_memory(self) -> bool:
        """A memory clock that never changes and is the default one is left alone: many cards refuse to lock it."""
        memory = {change.clock.mem_mhz for one in self._passes for change in one.changes}
        default = str(((self.plan_file.document["gpu"] or {}).get("default_clock") or "/").split("/")[0])
        return memory not in ({None}, {_number(default)})


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None


def _latency(plan: PlanFile, given_s: Optional[float]) -> float:
    latency_s = given_s if given_s is not None else plan.core_latency_s
    if not 0 <= latency_s < 60:
        raise UsageError(f"latency_s is {latency_s}; expected seconds from 0 to 60")
    return latency_s


@contextlib.contextmanager
def apply(plan: Union[str, Path, Mapping[str, Any], PlanFile], model: Any = None, optimizer: Any = None,
          **options: Any) -> Iterator[Applier]:
    """`with rubato.apply(plan, model, optimizer): train()`: the plan's clocks at the borders of passes.

    `model` (a torch Module) and `optimizer` get hooks for forward, backward and optimizer; optimizer.step() ends a step.
    Without them call mark() and step() of what this yields. `options` are those of Applier. Under torch.distributed rank 0
    reads the plan and every rank applies it to its GPU.
    """
    from rubato import hooks, ranks

    applier = Applier(ranks.shared_plan(plan), **hooks.with_events(model, options))
    detach = hooks.attach(applier, model, optimizer)
    try:
        with applier:
            yield applier
    finally:
        detach()
