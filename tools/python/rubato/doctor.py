"""rubato doctor: what this machine lets Rubato do, and what to do about the rest. Sets nothing.

Each finding says whether it keeps plans from being set ('no'), only makes something worse ('note'), or is as it should be ('ok').
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Iterator, Optional

from rubato.errors import RubatoError
from rubato.hardware.backends import ZEUSD_SOCKET, ZEUSD_VARIABLE, NvmlBackend, ZeusdBackend
from rubato.hardware.gpu import Gpu
from rubato.hardware.lock import holder_of
from rubato.measuring.rapl import zones

OK, NOTE, NO = "ok", "note", "no"
ADMIN_BIT = 21  #: CAP_SYS_ADMIN, which the driver asks for
COUNTER_S = 0.5  #: the energy counter of a board moves every 20 to 100 ms
#: processes that set clocks or power limits, by the name the kernel has for them (15 characters), and what they are
SETTERS = {"nv-hostengine": "DCGM, whose policies set clocks: dcgmi config --get", "nvidia-powerd": "Dynamic Boost, which moves power between CPU and GPU",
           "zeusd": "Zeus's daemon, for whoever asks it"}


@dataclass(frozen=True)
class Finding:
    """`what` was looked at, `found` there; `do`: what to do about it, "" where nothing needs to be done."""

    state: str
    what: str
    found: str
    do: str = ""
    gpu: Optional[int] = None


def examine() -> list[Finding]:
    """All findings: the machine's, then GPU by GPU. Never raises for what is missing."""
    findings = [*_software()]
    zeusd = _zeusd(findings)
    try:
        backend = NvmlBackend()
        gpus = [backend.gpu(index) for index in range(backend.nvml.nvmlDeviceGetCount())]
    except RubatoError as error:
        return [*findings, Finding(NO, "GPU", str(error), f"{error.hint}. Plans can be made here, and set on another machine"), *_host_energy()]
    findings.append(Finding(OK, "driver", f"{backend.nvml.nvmlSystemGetDriverVersion()}, {len(gpus)} GPU{'s' * (len(gpus) != 1)}"))
    findings += [*_setters(), *_host_energy()]
    for index, gpu in enumerate(gpus):
        try:
            findings += _of_gpu(gpu, index, zeusd)
        except RubatoError as error:
            findings.append(Finding(NO, gpu.name, str(error), error.hint or "see the kernel's log", index))
    return findings


def is_admin() -> bool:
    """Whether this process may do what the driver asks root for, as far as the kernel goes."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        mask = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
        return bool(mask >> ADMIN_BIT & 1)
    except (OSError, StopIteration, ValueError):
        return os.geteuid() == 0


def _software() -> Iterator[Finding]:
    from rubato.program import program, run

    try:
        yield Finding(OK, "program", f"{run('--version').split(' (')[0]}, {program()}")
    except RubatoError as error:
        yield Finding(NOTE, "program", str(error), error.hint)
    if importlib.util.find_spec("torch") is None:
        yield Finding(NOTE, "PyTorch", "not installed for this Python", "rubato apply -- SCRIPT needs it; other programs mark passes by hand (rubato.Applier)")
    else:
        yield Finding(OK, "PyTorch", _version("torch"))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "version not known"


def _zeusd(findings: list[Finding]) -> bool:
    """Whether zeusd can be asked for clocks; tells only where its socket is."""
    path = os.environ.get(ZEUSD_VARIABLE, ZEUSD_SOCKET)
    if not os.path.exists(path):
        return False
    try:
        ZeusdBackend()
    except RubatoError as error:
        findings.append(Finding(NOTE, "zeusd", str(error), error.hint))
        return False
    findings.append(Finding(OK, "zeusd", f"answers at {path}"))
    return True


def _setters() -> Iterator[Finding]:
    for process in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = process.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if name in SETTERS and name != "zeusd":
            yield Finding(NOTE, "sets clocks too", f"process {process.parent.name}, {name}: {SETTERS[name]}",
                          "a clock that it changes is counted, and set again once a second")


def _host_energy() -> Iterator[Finding]:
    found = zones()
    if not found:
        yield Finding(NOTE, "CPU energy", "the kernel has no counter (RAPL) here", "rubato energy counts GPUs alone")
        return
    closed = [zone for zone in found if not os.access(zone.counter, os.R_OK)]
    names = ", ".join(dict.fromkeys(zone.kind for zone in found))
    if closed:
        yield Finding(NOTE, "CPU energy", f"counters of {names} are not for this user", f"sudo chmod a+r {' '.join(str(zone.counter) for zone in closed)}")
    else:
        yield Finding(OK, "CPU energy", f"counters of {names}")


def _of_gpu(gpu: Gpu, index: int, zeusd: bool) -> Iterator[Finding]:
    def finding(state: str, what: str, found: str, do: str = "") -> Finding:
        return Finding(state, what, found, do, index)

    capability, admin = gpu.capability(), is_admin()
    yield finding(OK, gpu.name, f"compute capability {capability or 'not known'}")
    if gpu.mig_enabled():
        yield finding(NO, "MIG", "on: clocks are those of all instances", f"sudo nvidia-smi -i {index} -mig 0")
    yield _core(finding, gpu, index, admin, zeusd)
    yield _memory(finding, gpu)
    yield from _limit(finding, gpu, index, admin or zeusd)
    yield from _others(finding, gpu, index)
    yield _counter(finding, gpu)


def _core(finding: Any, gpu: Gpu, index: int, admin: bool, zeusd: bool) -> Finding:
    """Which way core clocks can be set by, the best first."""
    applications, restricted = gpu.applications_mhz(), gpu.applications_restricted()
    memories = gpu.supported_mem_mhz()
    cores = gpu.supported_core_mhz(memories[0]) if memories else []
    span = f"{cores[-1]} to {cores[0]} MHz" if cores else "of a range that the driver does not list"
    if (gpu.capability() or 7.0) < 7.0:
        if applications and (admin or not restricted):
            return finding(OK, "core clocks", f"application clocks, {span}: before Volta they cannot be locked")
        if applications:
            return finding(NO, "core clocks", "application clocks, for root only", f"sudo nvidia-smi -i {index} -acp 0 lets everyone set them")
        return finding(NO, "core clocks", "cannot be set on this card", "a power limit may be: sudo nvidia-smi -pl")
    if admin:
        return finding(OK, "core clocks", f"can be locked, {span} (rights of root; a container may still refuse)")
    if zeusd:
        return finding(OK, "core clocks", f"can be locked through zeusd, {span}")
    if applications and not restricted:
        return finding(OK, "core clocks", f"application clocks, {span}: everyone may set them here")
    ways = ["run with sudo -E", "zeusd (Zeus) on this node"] + [f"sudo nvidia-smi -i {index} -acp 0 for application clocks"] * bool(applications)
    return finding(NO, "core clocks", "locking them needs root", "; or ".join(ways))


def _memory(finding: Any, gpu: Gpu) -> Finding:
    memories = gpu.supported_mem_mhz()
    listed = ", ".join(map(str, memories))
    if len(memories) < 2:
        return finding(OK, "memory clocks", f"one, {listed or 'not listed'}" + (" MHz" if listed else ""))
    if not gpu.locks_memory():
        return finding(NOTE, "memory clocks", f"{listed} MHz, which cannot be locked before Ampere", "plan with one memory clock: --clocks mem=" + str(memories[0]))
    return finding(OK, "memory clocks", f"{listed} MHz; many data-centre cards refuse to lock them all the same")


def _limit(finding: Any, gpu: Gpu, index: int, rights: bool) -> Iterator[Finding]:
    now_w, limits_w, default_w = gpu.power_limit_w(), gpu.limits_w(), gpu.default_limit_w()
    if now_w is None:
        yield finding(NOTE, "power limit", "cannot be read")
        return
    span = f" (can be set from {limits_w[0]:g} to {limits_w[1]:g} W{'' if rights else ', with rights'})" if limits_w else ""
    if default_w is not None and now_w < default_w - 1:
        yield finding(NOTE, "power limit", f"{now_w:g} W, not the default {default_w:g} W{span}",
                      f"plan with --power-limit {now_w:g}, or sudo nvidia-smi -i {index} -pl {default_w:g}")
    else:
        yield finding(OK, "power limit", f"{now_w:g} W{span}")


def _others(finding: Any, gpu: Gpu, index: int) -> Iterator[Finding]:
    holder = holder_of(gpu.uuid)
    if holder:
        yield finding(NOTE, "sets clocks too", holder, "end it; or, if it is gone, sudo rubato restore --gpu " + str(index))
    applications = gpu.applications_mhz()
    if applications and applications[0] != applications[1]:
        now, default = (f"memory {mem}, core {core}" for mem, core in applications)
        yield finding(NOTE, "sets clocks too", f"application clocks are {now}; by default {default}", f"sudo nvidia-smi -i {index} -rac")
    others = [pid for pid in gpu.processes() if pid != os.getpid()]
    if others:
        yield finding(NOTE, "in use", f"process {', '.join(map(str, others))} computes on it", "rubato apply refuses it then, unless --shared-gpu is given")
    reasons = gpu.throttle_reasons()
    if reasons:
        yield finding(NOTE, "held down", f"by {', '.join(sorted(reasons))} right now")


def _counter(finding: Any, gpu: Gpu) -> Finding:
    begin_j = gpu.energy_j()
    if begin_j is None:
        return finding(NOTE, "energy counter", "none (before Volta)", "energy is summed from sampled power, which is less certain")
    end_s = time.monotonic() + COUNTER_S
    while time.monotonic() < end_s:
        if gpu.energy_j() != begin_j:
            return finding(OK, "energy counter", "counts")
        time.sleep(0.005)
    return finding(NOTE, "energy counter", f"did not move in {COUNTER_S:g} s", "measured energies will be wrong: tell the driver's vendor")


def text(findings: list[Finding]) -> str:
    """As the command prints it: a section for the machine and one a GPU."""
    lines = []
    for at, one in enumerate(findings):
        if one.gpu is not None and one.gpu != findings[at - 1].gpu:
            lines.append(f"\nGPU {one.gpu}: {one.what}, {one.found}" if one.state == OK else f"\nGPU {one.gpu}")
            if one.state == OK:
                continue
        lines.append(f"  {one.state:4}  {one.what:15}  {one.found}")
        if one.do:
            lines.append(f"{'':8}{'':17}do: {one.do}")
    verdict = "Plans can be set here." if sets_plans(findings) else "Plans cannot be set here yet: see the lines with 'no'."
    return "\n".join(["This machine", *lines, "", verdict])


def sets_plans(findings: list[Finding]) -> bool:
    return not any(one.state == NO for one in findings)


def as_rows(findings: list[Finding]) -> list[dict[str, Any]]:
    return [asdict(one) for one in findings]
