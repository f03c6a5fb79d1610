"""Plan files: what `rubato export --plan` writes, read and checked. docs/plan.schema.json has the names."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, UsageError

SCHEMA = 1
Shape = tuple[tuple[int, ...], tuple[int, ...]]  #: grid and block of a launch


@dataclass(frozen=True)
class Clock:
    """A clock pair, None leaves a clock to the driver; and a power limit, None where none is chosen."""

    label: str
    core_mhz: Optional[float]
    mem_mhz: Optional[float]
    power_limit_w: Optional[float] = None


@dataclass(frozen=True)
class Segment:
    """Launches in a row, or a pass of a stage, with one clock; time until the next one and energy as the simulator expects them."""

    pass_name: str
    clock: Optional[Clock]  #: None: its kernels have clocks of their own, and the plan cannot be set
    launches: int
    time_s: float
    energy_j: float
    begins_pass: bool  #: else it goes on in the pass of the segment before


@dataclass(frozen=True)
class GpuPlan:
    """One GPU's segments in order, or those of each GPU of a stage; they are one step. None: of any rank, no stage."""

    label: str
    rank: Optional[int]
    device: Optional[int]
    stage: Optional[int]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Promise:
    """As applied, switches counted, against the default clocks; a saving is negative. None: not worked out."""

    time_s: float
    energy_j: float
    time_change_pct: float
    time_change_low_pct: Optional[float]
    time_change_high_pct: Optional[float]
    energy_change_pct: float
    energy_change_low_pct: Optional[float]
    energy_change_high_pct: Optional[float]


@dataclass(frozen=True)
class Plan:
    """Clocks at one granularity. `applicable`: whether GPUs can be set to them, as the planner judged; `because`: why not."""

    role: str  #: answer, coarser or slower
    plan_id: Optional[int]  #: in the result database; None: it was not stored
    granularity: str
    slack_pct: Optional[float]
    promise: Promise
    applicable: bool
    because: Optional[str]
    gpus: tuple[GpuPlan, ...]

    @property
    def stages(self) -> int:
        """Number of pipeline stages; 0: the plan is by GPU or rank."""
        return len(self.gpus) if self.gpus[0].stage is not None else 0

    def gpu(self, rank: int = 0, stage: Optional[int] = None, world: Optional[int] = None) -> GpuPlan:
        """What a rank is told: its own entry, or that of its stage. A plan of one GPU is every rank's.

        The stage of a rank is `stage`, else that of Megatron's default order, rank // (world / stages) of `world` ranks.
        Raises UsageError where the plan does not have the rank or stage.
        """
        if not self.stages:
            if len(self.gpus) == 1:
                return self.gpus[0]
            known, name, number = [one.rank for one in self.gpus], "rank", rank
        else:
            known, name, number = [one.stage for one in self.gpus], "stage", self._stage_of(rank, world) if stage is None else stage
        found = [one for one, of in zip(self.gpus, known) if of == number]
        if not found:
            raise UsageError(f"the plan has no {name} {number}; it has {', '.join(map(str, sorted({one for one in known if one is not None})))}", "plan the run with all its ranks")
        if len({tuple(segment.clock for segment in one.segments) for one in found}) > 1:
            raise UsageError(f"in the plan {name} {number} has {len(found)} GPUs with clocks of their own; a process plays the part of one GPU",
                             "a plan per iteration has one clock for all")
        return found[0]

    def _stage_of(self, rank: int, world: Optional[int]) -> int:
        ranks = world or self.stages
        if ranks % self.stages:
            raise UsageError(f"{ranks} ranks are no whole number for each of {self.stages} stages", "stage= says the stage of a rank")
        return rank // (ranks // self.stages)


@dataclass(frozen=True)
class PlanKernel:
    """How launches of the plan are recognised: by the name they were launched under, and by grid and block where known."""

    pass_name: str
    name: str
    launches: Optional[int]
    time_s: Optional[float]
    shape: Optional[Shape] = None


@dataclass(frozen=True)
class PlanFile:
    """Plans of one question: the answer first, then coarser ones, then those of its granularity with more slack.

    Only the answer may be one that cannot be applied.
    """

    path: str
    gpu_title: Optional[str]
    names_gpu: bool  #: False: a measured profile that does not say its GPU
    core_latency_s: float  #: request to effect, as the plans were judged by it
    mem_latency_s: Optional[float]
    plans: tuple[Plan, ...]
    kernels: tuple[PlanKernel, ...]
    document: Mapping[str, Any]  #: the file, whole

    @property
    def chosen(self) -> Plan:
        return self.plans[0]

    @property
    def slower(self) -> tuple[Plan, ...]:
        """Plans with more slack, for when another rank is late."""
        return tuple(plan for plan in self.plans if plan.role == "slower")

    @property
    def sets_power(self) -> bool:
        """Whether a plan chooses power limits."""
        return any(clock["power_limit_w"] is not None for clock in self.document["clocks"])

    def asked(self, granularity: str = "auto") -> Plan:
        """The answer, or the plan of a granularity. Raises UsageError where there is none, or it cannot be applied."""
        offered = [plan for plan in self.plans if plan.role != "slower"]
        found = next((plan for plan in offered if granularity in ("auto", plan.granularity)), None)
        if found is None:
            raise UsageError(f"{self.path}: has no plan per {granularity}; it has {', '.join(plan.granularity for plan in offered)}",
                             f"rubato export --plan RUN --per {granularity} writes one")
        if not found.applicable:
            raise UsageError(f"{self.path}: the plan per {found.granularity} cannot be set: {found.because}",
                             "export another one: rubato export --plan RUN --per segment, pass or run")
        return found

    def fits_gpu(self, name: str) -> Optional[bool]:
        """Whether the plan is for a GPU with this driver's name; None where the file does not say its GPU.

        As match_device() of models/gpu/device.cpp: the driver says more than a title ("Tesla V100-SXM2-16GB"), or less ("NVIDIA H200").
        """
        if not self.gpu_title:
            return None
        title, words = _words(self.gpu_title), _words(name)
        words = _FORMS.get(words, words)
        return title <= words and all(word in title or re.fullmatch(r"[0-9].*gb", word) for word in words)


#: drivers do not always say the form of the card; these names are of one form only
_FORMS = {frozenset(("h100", "80gb", "hbm3")): frozenset(("h100", "sxm5", "80gb")), frozenset(("h200",)): frozenset(("h200", "sxm5", "141gb"))}
_MAKERS = {"nvidia", "geforce", "tesla", "quadro", "amd", "instinct", "graphics", "gpu", "device"}


def _words(gpu: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z0-9]+", re.split("[,(]", gpu.lower())[0])) - _MAKERS


def load_plan(plan: Union[str, Path, Mapping[str, Any], PlanFile]) -> PlanFile:
    """Reads a plan file, or takes its document. Raises IoError and DataError with file, what was found and what was expected."""
    if isinstance(plan, PlanFile):
        return plan
    if isinstance(plan, Mapping):
        return _parsed(plan, "plan")
    try:
        text = Path(plan).read_text(encoding="utf-8")
    except OSError as error:
        raise IoError(f"{plan}: {error.strerror}", "rubato export --plan latest --db results.db -o plan.json writes one") from None
    except UnicodeDecodeError:
        raise DataError(f"{plan}: is not text; expected JSON of rubato export --plan") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DataError(f"{plan}: is not JSON: {error}", "rubato export --plan latest --db results.db -o plan.json writes one") from None
    return _parsed(document, str(plan))


def _parsed(document: Any, path: str) -> PlanFile:
    if not isinstance(document, Mapping) or document.get("format") != "rubato-plan":
        raise DataError(f"{path}: is no plan file; expected \"format\": \"rubato-plan\"",
                        "rubato export --plan latest --db results.db -o plan.json writes one")
    if document.get("schema") != SCHEMA:
        raise DataError(f"{path}: has schema {document.get('schema')}; this package reads schema {SCHEMA}",
                        "use the package and the program of one version")
    try:
        clocks = [Clock(str(one["label"]), _positive(one["core_mhz"], "a clock", "MHz"), _positive(one["mem_mhz"], "a clock", "MHz"),
                        _positive(one["power_limit_w"], "a power limit", "W")) for one in document["clocks"]]
        gpu, mem = document["gpu"] or {}, document["switching"]["mem"]
        found = PlanFile(
            path, gpu.get("title"), document["gpu"] is not None, float(document["switching"]["core"]["latency_s"]),
            None if mem is None else float(mem["latency_s"]), tuple(_plan(one, clocks) for one in document["plans"]),
            tuple(_kernel(one) for one in document["kernels"]), document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: the plan is damaged: {type(error).__name__}: {error}", "export it again") from None
    if not found.plans:
        raise DataError(f"{path}: holds no plan")
    return found


def _positive(value: Any, what: str, unit: str) -> Optional[float]:
    if value is None:
        return None
    if not 0 < float(value) < 1e5:
        raise ValueError(f"{what} is {value}; expected {unit} > 0 or null")
    return float(value)


def _kernel(one: Mapping[str, Any]) -> PlanKernel:
    launch = one.get("launched_as") or {"name": one["name"]}
    shape = (tuple(launch["grid"]), tuple(launch["block"])) if launch.get("grid") else None
    return PlanKernel(one["pass"], launch["name"], one["launches"], one["time_s"], shape)


def _plan(one: Mapping[str, Any], clocks: Sequence[Clock]) -> Plan:
    def segment(given: Mapping[str, Any]) -> Segment:
        clock = given["clock"]
        if clock is not None and not 0 <= clock < len(clocks):
            raise ValueError(f"a segment has clock {clock}; there are {len(clocks)}")
        return Segment(given["pass"], None if clock is None else clocks[clock], int(given["launches"]), float(given["time_s"]),
                       float(given["energy_j"]), bool(given["begins_pass"]))

    def gpu(given: Mapping[str, Any]) -> GpuPlan:
        if not given["segments"]:
            raise ValueError(f"{given['label']} has no segment")
        return GpuPlan(given["label"], given["rank"], given["device"], given["stage"], tuple(map(segment, given["segments"])))

    gpus = tuple(map(gpu, one["gpus"]))
    if not gpus:
        raise ValueError("a plan has no GPU")
    applicable = bool(one["applicable"])
    if applicable and any(segment.clock is None for gpu in gpus for segment in gpu.segments):
        raise ValueError("a segment of a plan that can be applied has no clock")
    return Plan(one["role"], one["plan_id"], one["granularity"], one["slack_pct"],
                Promise(**{name: one["promise"][name] for name in Promise.__dataclass_fields__}), applicable, one["because"], gpus)


@dataclass(frozen=True)
class LaunchMatch:
    """How much of a run the plan knows."""

    launches: int
    unmatched_launches: int
    time_s: float
    unmatched_time_s: float
    unmatched_names: tuple[str, ...]  #: most time first

    @property
    def applied_time_frac(self) -> float:
        """Share of the launches' time that the plan was made for."""
        return 1.0 - self.unmatched_time_s / self.time_s if self.time_s > 0 else 0.0


def match_launches(plan: Union[str, Path, PlanFile], launches: Union[str, Path, Iterable[tuple[Any, ...]]]) -> LaunchMatch:
    """Compares a plan's kernels with those of a run: (name, seconds) or (name, seconds, (grid, block)) each, or a Kineto file
    (.json, .json.gz).

    A plan older than the model's kernels shows here: launches it does not know, by name or by shape, are counted.
    """
    found = load_plan(plan)
    if isinstance(launches, (str, Path)):
        launches = kineto_launches(launches)
    known: dict[str, set[Optional[Shape]]] = {}
    for kernel in found.kernels:
        known.setdefault(kernel.name, set()).add(kernel.shape)
    count = unmatched = 0
    time_s = 0.0
    strangers: dict[str, float] = {}
    for name, seconds, *shape in launches:
        count += 1
        time_s += seconds
        shapes = known.get(name, set())
        if not shapes or (shape and shape[0] and None not in shapes and shape[0] not in shapes):
            unmatched += 1
            strangers[name] = strangers.get(name, 0.0) + seconds
    return LaunchMatch(count, unmatched, time_s, sum(strangers.values()), tuple(sorted(strangers, key=lambda name: strangers[name], reverse=True)))


def kineto_launches(path: Union[str, Path]) -> list[tuple[str, float, Optional[Shape]]]:
    """(name, seconds, (grid, block)) of the kernels in a file of the PyTorch profiler."""
    try:
        opened: Any = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: is no trace of the PyTorch profiler: {error}") from None
    def shape(args: Mapping[str, Any]) -> Optional[Shape]:
        return (tuple(args["grid"]), tuple(args["block"])) if "grid" in args and "block" in args else None

    return [(event["name"], event.get("dur", 0) * 1e-6, shape(event.get("args", {}))) for event in events
            if event.get("cat") == "kernel" and event.get("ph") == "X"]
