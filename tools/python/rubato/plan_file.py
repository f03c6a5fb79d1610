"""Plan files: what `rubato export --plan` writes, read and checked. docs/apply.md has the schema."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, UsageError

SCHEMA = 1
SEGMENT = "segment"  #: granularity of runs of launches
Shape = tuple[tuple[int, ...], tuple[int, ...]]  #: grid and block of a launch


@dataclass(frozen=True)
class Clock:
    """A clock pair; None leaves a clock to the driver."""

    label: str
    core_mhz: Optional[float]
    mem_mhz: Optional[float]


@dataclass(frozen=True)
class Segment:
    """Launches in a row with one clock; time and energy as the simulator expects them, over the whole run."""

    pass_name: str
    clock: Clock
    launches: int
    time_s: float
    energy_j: float


@dataclass(frozen=True)
class DevicePlan:
    """One GPU's segments in order; None where the plan does not know the order of launches."""

    rank: int
    device: int
    segments: Optional[tuple[Segment, ...]]


@dataclass(frozen=True)
class Expected:
    """What a plan promises against the default clocks; fractions, a saving is negative. None: not worked out."""

    time_s: float
    energy_j: float
    time_change_frac: float
    time_change_low_frac: Optional[float]
    time_change_high_frac: Optional[float]
    energy_change_frac: float
    energy_change_low_frac: Optional[float]
    energy_change_high_frac: Optional[float]


@dataclass(frozen=True)
class Plan:
    """Clocks at one granularity. `applicable`: whether GPUs can be set to them, as the planner judged; `because`: why not."""

    plan_id: int
    granularity: str
    slack_frac: float
    expected: Expected
    applicable: bool
    because: Optional[str]
    devices: tuple[DevicePlan, ...]

    def device(self, rank: int = 0) -> DevicePlan:
        """The device of a rank; without one the first: a plan of one GPU is every rank's."""
        return next((one for one in self.devices if one.rank == rank), self.devices[0])


@dataclass(frozen=True)
class PlanKernel:
    """How launches of the plan are recognised: by the name they were launched under, and by grid and block where known."""

    pass_name: str
    name: str
    launches: int
    time_s: float
    shape: Optional[Shape] = None


@dataclass(frozen=True)
class PlanFile:
    """Plans of one question, the chosen one first, then coarser ones; `slower`: of the same granularity with more slack.

    Only the chosen one may be one that cannot be applied.
    """

    path: str
    gpu_title: Optional[str]
    core_latency_s: float  #: request to effect, as the plans were judged by it
    mem_latency_s: Optional[float]
    plans: tuple[Plan, ...]
    slower: tuple[Plan, ...]
    kernels: tuple[PlanKernel, ...]
    document: Mapping[str, Any]  #: the file, whole

    @property
    def chosen(self) -> Plan:
        return self.plans[0]

    def asked(self, granularity: str = "auto") -> Plan:
        """The chosen plan, or that of a granularity. Raises UsageError where there is none, or it cannot be applied."""
        found = next((plan for plan in self.plans if granularity in ("auto", plan.granularity)), None)
        if found is None:
            raise UsageError(f"{self.path}: has no plan per {granularity}; it has {', '.join(plan.granularity for plan in self.plans)}",
                             f"rubato export --plan RUN --granularity {granularity} writes one")
        if not found.applicable:
            raise UsageError(f"{self.path}: the plan per {found.granularity} cannot be set: {found.because}",
                             "export another one: rubato export --plan RUN --granularity segment, pass or iteration")
        return found

    def fits_gpu(self, name: str) -> Optional[bool]:
        """Whether the plan is for a GPU with this driver's name; None where the file does not say its GPU."""
        return None if not self.gpu_title else _words(self.gpu_title) == _words(name)


def _words(gpu: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", gpu.lower())) - {"nvidia", "amd", "geforce", "tesla", "gpu"}


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
        clocks = [Clock(str(one["label"]), _mhz(one["core_mhz"]), _mhz(one["mem_mhz"])) for one in document["clocks"]]
        found = PlanFile(
            path, document["gpu"].get("title"), float(document["switching"]["core_s"]), document["switching"].get("mem_s"),
            tuple(_plan(one, clocks) for one in document["plans"]),
            tuple(_plan(one, clocks) for one in document.get("slower", [])),
            tuple(_kernel(one) for one in document["kernels"]),
            document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: the plan is damaged: {type(error).__name__}: {error}", "export it again") from None
    if not found.plans:
        raise DataError(f"{path}: holds no plan")
    return found


def _mhz(value: Any) -> Optional[float]:
    if value is None:
        return None
    if not 0 < float(value) < 1e5:
        raise ValueError(f"a clock is {value}; expected MHz > 0 or null")
    return float(value)


def _kernel(one: Mapping[str, Any]) -> PlanKernel:
    launch = one.get("launched_as") or {"name": one["name"]}
    shape = (tuple(launch["grid"]), tuple(launch["block"])) if launch.get("grid") else None
    return PlanKernel(one["pass"], launch["name"], int(one["launches"]), float(one["time_s"]), shape)


def _plan(one: Mapping[str, Any], clocks: Sequence[Clock]) -> Plan:
    def device(given: Mapping[str, Any]) -> DevicePlan:
        segments = given["segments"]
        return DevicePlan(int(given["rank"]), int(given["device"]), None if segments is None else tuple(
            Segment(s["pass"], clocks[s["clock"]], int(s["launches"]), float(s["time_s"]), float(s["energy_j"])) for s in segments))

    names = Expected.__dataclass_fields__
    devices = tuple(device(given) for given in one["devices"])
    if not devices:
        raise ValueError("a plan has no device")
    return Plan(int(one["plan_id"]), one["granularity"], float(one["slack_frac"]),
                Expected(**{name: one["expected"][name] for name in names}), bool(one["applicable"]), one["because"], devices)


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
