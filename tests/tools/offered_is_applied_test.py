#!/usr/bin/env python3
"""What `explore` offers is what `rubato apply` sets: every plan that can be applied is exported and played on a GPU of the model.

Usage: offered_is_applied_test.py RUBATO SOURCES [--all]
  --all  every shipped GPU and slacks of 0, 1, 2 and 5 % (of stages 2 and 5), else a few

The GPU runs on a clock of its own. Launches take the time and energy that the result database has for the clock in force; a request
acts a latency later. The applier plays as it does beside training: it is told the passes, and asks for clocks when it would.
"""

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
RUBATO, SOURCES = (os.path.abspath(path) for path in sys.argv[1:3])
ALL = "--all" in sys.argv
sys.path[:0] = [str(Path(SOURCES, "tools", "python"))]
from checks import check, exit_status, failures  # noqa: E402
from rubato.applier import Applier  # noqa: E402
from rubato.errors import UsageError  # noqa: E402
from rubato.hardware.backends import DryBackend  # noqa: E402
from rubato.plan_file import load_plan  # noqa: E402

STEPS = 30  # until durations are learned
PROMISE = 0.005  # of time and energy; most are within 0.2 %
AS_PLANNED = 0.97  # least share of a captured step at the planned clock: a plan may have 5 % in short stretches, few do
SLACKS = (0, 1, 2, 5) if ALL else (0, 5)
CAPTURE = Path(SOURCES, "docs", "examples", "run.pt.trace.json.gz")
PROFILE = Path(SOURCES, "docs", "examples", "gpt3-175b-a100.csv")
RANKS = Path(SOURCES, "docs", "examples", "pipeline", "rank*.pt.trace.json.gz")


def rubato(*arguments, statuses=(0,)):
    done = subprocess.run([RUBATO, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in statuses:
        sys.exit(f"rubato {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


class ModelGpu(DryBackend):
    """A GPU in virtual time: a request acts `latency_s` later."""

    def __init__(self, latency_s):
        super().__init__()
        self.latency_s, self.now_s = latency_s, 0.0
        self.coming = []  # at, 0 for core and 1 for memory, MHz
        self.in_force = [None, None]

    def set_core(self, index, mhz):
        self.coming.append((self.now_s + self.latency_s, 0, mhz))

    def set_mem(self, index, mhz):
        self.coming.append((self.now_s + self.latency_s, 1, mhz))

    def act(self):
        """Changes that have come into effect by now."""
        while self.coming and self.coming[0][0] <= self.now_s + 1e-12:
            _, which, mhz = self.coming.pop(0)
            self.in_force[which] = mhz


def play(file, plan, step, rank=0):
    """Plays passes of launches: `step` is a list of (pass, [launch]), a launch a function of (core, mem) that gives time and energy.

    Returns time and energy of the last step, and its share at the clock of the plan; launches know that clock as their `planned`.
    """
    gpu = ModelGpu(file.core_latency_s)
    with mock.patch("rubato.applier.time.perf_counter", lambda: gpu.now_s), mock.patch("rubato.held_clocks.time.perf_counter", lambda: gpu.now_s), \
            mock.patch("rubato.applier.threading.Thread"):
        applier = Applier(file, backend=gpu, per=plan.granularity, rank=rank, gpus=[0], guard=False, strict=True)
        for _ in range(STEPS):
            begin_s, energy_j, planned_s = gpu.now_s, 0.0, 0.0
            for name, launches in step:
                applier._border(name, gpu.now_s)
                for launch, planned in launches:
                    left = 1.0
                    while left > 1e-12:
                        gpu.act()
                        time_s, launch_j = launch(*gpu.in_force)
                        until_s = min([gpu.now_s + left * time_s] + [at for at, _, _ in gpu.coming] + [one[0] for one in applier._due])
                        part = min(max((until_s - gpu.now_s) / time_s, 0.0), left)
                        energy_j += part * launch_j
                        planned_s += part * time_s if planned in (None, tuple(gpu.in_force)) else 0.0
                        left = 0.0 if until_s >= gpu.now_s + left * time_s - 1e-15 else left - part
                        gpu.now_s = max(until_s, gpu.now_s)
                        while applier._due and applier._due[0][0] <= gpu.now_s:
                            applier._ask(applier._due.pop(0)[1])
            applier._border("", gpu.now_s)
        errors = applier.report().errors
        applier._thread = None
        applier.close()
    check(f"{file.path}: nothing goes wrong", not errors, errors)
    step_s = gpu.now_s - begin_s
    return step_s, energy_j, planned_s / step_s


class Run:
    """One exploration, stored, with its plans."""

    def __init__(self, folder, name, *explore):
        self.name, self.db, self.file = name, folder / "results.db", folder / "plan.json"
        self.db.unlink(missing_ok=True)
        rubato("explore", *explore, "--slack", ",".join(map(str, SLACKS)), "--db", self.db)
        self.rows = sqlite3.connect(self.db)
        self.rows.row_factory = sqlite3.Row
        self.captured = self.rows.execute("SELECT count(*) FROM v_runs WHERE kind = 'capture'").fetchone()[0] > 0

    def plans(self):
        return [(row["plan_id"], row["granularity"], row["slack_pct"], row["caveats"] or "") for row in self.rows.execute(
            "SELECT * FROM v_plans WHERE time_s IS NOT NULL ORDER BY plan_id")]

    def export(self, plan_id):
        rubato("export", "--plan", "latest", "--plan-id", plan_id, "--db", self.db, "-o", self.file)
        return load_plan(self.file)

    def cells(self):
        """Time and energy by kernel and by (core, memory) as they are set; in MHz, None for the driver's choice."""
        found = {}
        for row in self.rows.execute("SELECT name, clock, x.core_mhz, x.mem_mhz, is_default, x.time_s, x.energy_j FROM v_cells x "
                                     "JOIN v_clocks USING (run_id, clock, clock_id)"):
            core = None if row["core_mhz"] is None else round(row["core_mhz"])
            mem = None if row["clock"].startswith("auto/") else round(row["mem_mhz"])
            found[row["name"], core, mem] = (row["time_s"], row["energy_j"])
            if row["is_default"]:
                default_mem = mem
        return {**found, **{(name, core, None): cost for (name, core, mem), cost in found.items() if mem == default_mem}}

    def launches(self):
        """Names of kernels by pass, in the order of the step."""
        trace = json.loads(self.rows.execute("SELECT text FROM v_inputs WHERE kind = 'trace'").fetchone()[0])
        passes = {kernel["name"]: kernel["pass"] for kernel in trace["kernels"]}
        step = []
        for name in (name for segment in trace["segments"] for _ in range(segment["repeat"]) for name in segment["launches"]):
            if not step or step[-1][0] != passes[name]:
                step.append((passes[name], []))
            step[-1][1].append(name)
        return step

    def check(self):
        played = 0
        segments = set()
        cells = None if self.captured else self.cells()
        for plan_id, granularity, slack_pct, notes in self.plans():
            what = f"{self.name}, {granularity}, slack {slack_pct:g} %"
            late, refused = "slack missed" in notes, "not applicable" in notes
            if granularity == "segment":
                check(f"{what}: can be applied in time", not late and not refused, notes)
                segments.add(slack_pct)
            if late:
                continue
            file = self.export(plan_id)
            plan = file.chosen
            check(f"{what}: file and database agree", plan.applicable != refused, plan.because)
            if refused:
                self.check_refused(what, file)
                continue
            played += 1
            if self.captured:
                self.check_captured(what, file)
            else:
                self.check_trace(what, file, cells)
        check(f"{self.name}: a plan of segments for every slack", len(segments) == len(SLACKS), segments)
        print(f"{self.name}: {played} plans applied")

    def check_refused(self, what, file):
        try:
            Applier(file, backend="dry", guard=False, strict=True).close()
            check(f"{what}: is refused", False)
        except UsageError as error:
            check(f"{what}: is refused for what the planner says", file.chosen.because in str(error), error)

    def check_trace(self, what, file, cells):
        step = [(name, [(lambda core, mem, kernel=kernel: cells[kernel, core, mem], None) for kernel in kernels])
                for name, kernels in self.launches()]
        time_s, energy_j, _ = play(file, file.chosen, step)
        promise = file.chosen.promise
        for quantity, found, promised in (("time", time_s, promise.time_s), ("energy", energy_j, promise.energy_j)):
            check(f"{what}: {quantity} is what was promised", abs(found / promised - 1) <= PROMISE, f"{found:.6g} instead of {promised:.6g}")

    def check_captured(self, what, file):
        for device in file.chosen.gpus:
            step = []
            for segment in device.segments:
                if not step or step[-1][0] != segment.pass_name:
                    step.append((segment.pass_name, []))
                clock = tuple(None if mhz is None else round(mhz) for mhz in (segment.clock.core_mhz, segment.clock.mem_mhz))
                step[-1][1].append((lambda core, mem, s=segment: (s.time_s, s.energy_j), clock))
            memory = {segment.clock.mem_mhz for segment in device.segments}
            if len(memory) == 1:  # that is left alone
                step = [(name, [(launch, (clock[0], None)) for launch, clock in launches]) for name, launches in step]
            _, _, share = play(file, file.chosen, step, device.rank)
            check(f"{what}, rank {device.rank}: runs at the planned clocks", share >= AS_PLANNED, f"{100 * share:.2f} % of the time")


class Stage:
    """A stage of a simulated pipeline: its GPU, its applier, and where it is in its passes."""

    def __init__(self, file, number, cells, clock, effective):
        self.number, self.cells, self.gpu, self.clock, self.effective = number, cells, ModelGpu(file.core_latency_s), clock, effective
        self.row = [(segment["pass"], segment["microbatch"]) for segment in file.document["plans"][0]["gpus"][number]["segments"]]
        self.applier = Applier(file, backend=self.gpu, rank=0, stage=number, gpus=[0], guard=False, strict=True)
        self.begin()

    def begin(self):
        self.done, self.left, self.energy_j = 0, None, 0.0

    def is_ready(self, over):
        """Whether what the next pass waits for is over; each stage runs its passes in order."""
        if self.left is not None or self.done == len(self.row):
            return False
        name, microbatch = self.row[self.done]
        return all(needed not in over or over[needed] for needed in (
            [(self.number - 1, "forward", microbatch)] if name == "forward" else
            [(self.number + 1, "backward", microbatch), (self.number, "forward", microbatch)]))

    def cost(self):
        """Time and energy of the pass that runs at the clock in force."""
        default, states = self.cells[self.number, self.row[self.done][0]]
        core, mem = self.gpu.in_force
        if core is None and mem is None:
            return default[2:]
        # A state has its clocks in a row. That of the default clocks, which the driver may choose, has one less, where it does not stand
        # twice: then it is the one whose highest clock takes their time.
        fit = [state for state in states if len(state) == min(map(len, states))] if mem is None else [state for state in states if abs(state[0][1] - mem) < 1]
        if mem is None and len(fit) > 1:
            fit = [min(states, key=lambda state: abs(state[-1][2] - default[2]))]
        state = max(fit, key=len)
        return state[-1][2:] if core is None else min(state, key=lambda one: abs(one[0] - self.effective(core)))[2:]

    def next_event_s(self):
        times = [at for at, _, _ in self.gpu.coming] + [one[0] for one in self.applier._due]
        return min([*times, *([] if self.left is None else [self.clock.now_s + self.left * self.cost()[0]])], default=float("inf"))

    def run_until(self, until_s, blocked_w):
        span_s = until_s - self.clock.now_s
        if self.left is None:
            self.energy_j += blocked_w * span_s
        else:
            time_s, energy_j = self.cost()
            self.left -= span_s / time_s
            self.energy_j += energy_j * span_s / time_s

    def act(self, over):
        self.gpu.now_s = self.clock.now_s
        self.gpu.act()
        while self.applier._due and self.applier._due[0][0] <= self.clock.now_s:
            self.applier._ask(self.applier._due.pop(0)[1])
        if self.left is not None and self.left < 1e-9:
            over[(self.number, *self.row[self.done])] = True
            self.left = None
            self.done += 1
            if self.done == len(self.row):
                self.applier._border("", self.clock.now_s)


class Now:
    now_s = 0.0


def play_stages(file, cells, blocked_w, effective):
    """Time and energy of the last of many iterations, which begin together. Passes wait for those of the stages beside them."""
    clock = Now()
    with mock.patch("rubato.applier.time.perf_counter", lambda: clock.now_s), mock.patch("rubato.held_clocks.time.perf_counter", lambda: clock.now_s), \
            mock.patch("rubato.applier.threading.Thread"):
        stages = [Stage(file, number, cells, clock, effective) for number in range(len(file.chosen.gpus))]
        for _ in range(STEPS):
            begin_s = clock.now_s
            over = {(stage.number, *one): False for stage in stages for one in stage.row}
            for stage in stages:
                stage.begin()
            while any(stage.done < len(stage.row) for stage in stages):
                for stage in stages:
                    if stage.is_ready(over):
                        stage.gpu.now_s = clock.now_s
                        stage.applier._border(stage.row[stage.done][0], clock.now_s)
                        stage.left = 1.0
                until_s = max(min(stage.next_event_s() for stage in stages), clock.now_s)
                for stage in stages:
                    stage.run_until(until_s, blocked_w)
                clock.now_s = until_s
                for stage in stages:
                    stage.act(over)
        errors = [error for stage in stages for error in stage.applier.report().errors]
        for stage in stages:
            stage.applier._thread = None
            stage.applier.close()
    check(f"{file.path}: nothing goes wrong", not errors, errors)
    return clock.now_s - begin_s, sum(stage.energy_j for stage in stages)


def effective_clock(gpu):
    """The core clock that runs where one is asked for: some GPUs run low ones faster."""
    core = json.loads(rubato("gpus", gpu))["core_clocks"]
    asked, runs = core.get("requested_mhz", []), core.get("effective_mhz", [])

    def effective(mhz):
        for (low, at_low), (high, at_high) in zip(zip(asked, runs), zip(asked[1:], runs[1:])):
            if low <= mhz <= high:
                return at_low + (mhz - low) / (high - low) * (at_high - at_low)
        return mhz
    return effective


def check_stages(folder, name, *plan):
    """Each slack's plan of a pipeline, played by all of its stages."""
    played = 0
    for slack in (2, 5):
        what = f"{name}, slack {slack} %"
        db, path = folder / "stages.db", folder / "stages.json"
        for old in (db, path):
            old.unlink(missing_ok=True)
        rubato("explore", *plan, "--slack", slack, "--db", db, "--plan-file", path, statuses=(0, 1))
        if not path.exists():  # the default clocks are the answer
            continue
        file = load_plan(path)
        check(f"{what}: what is named can be set", file.chosen.applicable and file.chosen.promise.time_change_pct <= slack + 1e-6, file.chosen.because)
        rows = sqlite3.connect(db)
        cells = {}
        for stage, kind, *option in rows.execute("SELECT g.stage, u.pass, c.core_mhz, ifnull(c.mem_mhz, 0), x.time_s, x.energy_j "
                                                 "FROM units u JOIN gpus g USING (run_id, gpu_id) JOIN clocks c USING (run_id) "
                                                 "JOIN cells x ON x.cell_id = u.first_cell + c.clock_id ORDER BY u.unit_id, c.is_default DESC, c.clock_id"):
            default, states = cells.setdefault((stage, kind), (option, [[]]))
            if default is option:  # the first one
                continue
            before = states[-1][-1] if states[-1] else option
            if option[1] != before[1] or (option[1] > 0 and option[0] < before[0]):  # the next state; a profile has one, clocks falling
                states.append([])
            states[-1].append(option)
        for _, states in cells.values():  # the driver's own choice of the core clock at a memory clock stands alone, and is no setting here
            states[:] = [state for state in states if len(state) > 1]
        blocked_w, = rows.execute("SELECT blocked_power_w FROM runs").fetchone()
        time_s, energy_j = play_stages(file, cells, blocked_w, effective_clock(plan[plan.index("--gpu") + 1]))
        for quantity, found, promised in (("time", time_s, file.chosen.promise.time_s), ("energy", energy_j, file.chosen.promise.energy_j)):
            least = -2 * PROMISE if quantity == "time" else -PROMISE  # stages may be asked for clocks a little early, and end so
            check(f"{what}: {quantity} is what was promised", least <= found / promised - 1 <= PROMISE, f"{found:.6g} instead of {promised:.6g}")
        played += 1
    print(f"{name}: {played} plans of stages applied")
    return played


def gpus():
    if not ALL:
        return ["rtx-3080-ti", "a100-sxm4-80gb", "a40", "rtx-8000"]
    return [row["name"] for row in json.loads(rubato("gpus", "--json"))]


def played(job):
    """A job of its own process: what failed, and how many plans of stages were played."""
    what, name, *explore = job
    with tempfile.TemporaryDirectory() as made:
        count = what(Path(made), name, *explore)
    return failures, count


def check_run(folder, name, *explore):
    Run(folder, name, *explore).check()
    return 0


jobs = [(check_stages, "a measured profile", PROFILE, "--blocked-power", 83.64, "--gpu", "a100-sxm4-80gb"),
        (check_run, "four ranks", RANKS, "--captured-clock", "1593/1410", "--per", "run,gpu,pass,segment"), (check_run, "a capture", CAPTURE, "--captured-clock", "1593/1410"),
        *((check_stages, f"gpt3-xl in four stages on {gpu}", "gpt3-xl", "--stages", 4, "--gpu", gpu) for gpu in gpus()),
        *((check_run, f"gpt3-xl on {gpu}", "gpt3-xl", "--gpu", gpu) for gpu in gpus())]
if __name__ == "__main__":
    with multiprocessing.Pool(len(os.sched_getaffinity(0)), maxtasksperchild=1) as pool:
        done = pool.map(played, jobs, chunksize=1)
    failures.extend(failed for job, _ in done for failed in job)
    stages = [count for (what, *_), (_, count) in zip(jobs, done) if what is check_stages]
    check("most have a plan to play", sum(stages) >= len(stages), stages)
    sys.exit(exit_status())
