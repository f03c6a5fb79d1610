"""Ways to set the clocks of GPUs: NVML, Zeus's daemon `zeusd` (no root needed), or none at all (dry).

Indices are NVML's. MHz are whole; None gives a clock back to the driver. Every failure is an IoError, and Unreachable where
zeusd does not answer, which may pass.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
from typing import Any, Callable, Optional, Protocol, Sequence, Union
from urllib.parse import urlencode

from rubato.errors import IoError, RubatoError, Unreachable, UsageError
from rubato.hardware.gpu import Gpu, is_kind, load_nvml
from rubato.hardware.nvml import NVMLError

ZEUSD_SOCKET = "/run/zeusd/zeusd.sock"
ZEUSD_VARIABLE = "ZEUSD_SOCK_PATH"
TOKEN_VARIABLE = "ZEUSD_TOKEN"
ANSWER_S = 2.0  #: most that zeusd may take; a driver's call takes some tens of ms

Mhz = Optional[int]


class Backend(Protocol):
    """Blocking calls; an Applier makes them from a thread of its own."""

    name: str
    found_limits_w: dict[int, float]  #: power limits by GPU before any was set here, which release() sets again

    def gpu_name(self, index: int) -> Optional[str]: ...
    def lock_name(self, index: int) -> Optional[str]: ...
    def find_way(self, index: int) -> None: ...
    def set_core(self, index: int, mhz: Mhz) -> None: ...
    def set_mem(self, index: int, mhz: Mhz) -> None: ...
    def power_limit_w(self, index: int) -> Optional[float]: ...
    def set_power_limit(self, index: int, watts: float) -> None: ...
    def read(self, index: int) -> tuple[Optional[int], Optional[int]]: ...
    def is_held_down(self, index: int) -> bool: ...


class NvmlBackend:
    """Locked clocks through NVML, or application clocks: find_way() says which. Raises IoError where there is no driver.

    `applications`: application clocks are given back too.
    """

    name = "nvml"

    def __init__(self, applications: bool = False) -> None:
        self.nvml = load_nvml()
        self.applications = applications
        self.found_limits_w: dict[int, float] = {}
        self._gpus: dict[int, Gpu] = {}
        self._applied: dict[int, list[Mhz]] = {}  # application clocks (memory, core) as asked for, of GPUs that are set by them

    def find_way(self, index: int) -> None:
        """Tries whether clocks of this GPU can be locked here, by lifting a lock; else they are set as application clocks.

        That is before Volta, and without rights where `nvidia-smi -acp 0` lets everyone set application clocks.
        """
        gpu = self.gpu(index)
        try:
            self.nvml.nvmlDeviceResetGpuLockedClocks(gpu.handle)
        except NVMLError as error:
            refused = is_kind(self.nvml, error, "NO_PERMISSION") and not gpu.applications_restricted()
            if gpu.applications_mhz() and (refused or is_kind(self.nvml, error, "NOT_SUPPORTED")):
                self.applications = True  # the guards are told
                self._applied[index] = [None, None]

    def _apply(self, index: int, place: int, mhz: Mhz) -> None:
        wanted = self._applied[index]
        wanted[place] = mhz
        if wanted == [None, None]:
            self._call(index, "nvmlDeviceResetApplicationsClocks")
            return
        mem_mhz = wanted[0] or self.gpu(index).supported_mem_mhz()[0]
        self._call(index, "nvmlDeviceSetApplicationsClocks", mem_mhz, wanted[1] or self.gpu(index).supported_core_mhz(mem_mhz)[0])

    def gpu(self, index: int) -> Gpu:
        if index not in self._gpus:
            self._gpus[index] = Gpu(self.nvml, index)
        return self._gpus[index]

    def gpu_name(self, index: int) -> Optional[str]:
        return self.gpu(index).name

    def lock_name(self, index: int) -> Optional[str]:
        """What the lock of a GPU is called: its UUID. None: clocks are not really set, and need none."""
        return self.gpu(index).uuid

    def _call(self, index: int, function: str, *arguments: Any) -> None:
        gpu = self.gpu(index)
        try:
            getattr(self.nvml, function)(gpu.handle, *arguments)
        except NVMLError as error:
            power = "Power" in function
            hints = {self.nvml.NVML_ERROR_NO_PERMISSION: f"setting {'power limits' if power else 'clocks'} needs root, or zeusd (backend='zeusd'); see rubato doctor",
                     self.nvml.NVML_ERROR_INVALID_ARGUMENT: f"nvidia-smi -q -d {'POWER' if power else 'SUPPORTED_CLOCKS'} lists what it takes",
                     self.nvml.NVML_ERROR_NOT_SUPPORTED: f"this GPU's {'power limit cannot be set' if power else 'clocks cannot be locked'}",
                     self.nvml.NVML_ERROR_GPU_IS_LOST: "the GPU has fallen off the bus; see the kernel's log"}
            raise IoError(f"{gpu.name}: {function}{arguments or ''}: {error}", hints.get(error.value, "")) from None

    def set_core(self, index: int, mhz: Mhz) -> None:
        if index in self._applied:
            self._apply(index, 1, mhz)
        elif mhz is None:
            if self.applications:
                with contextlib.suppress(NVMLError):  # few GPUs have both
                    self.nvml.nvmlDeviceResetApplicationsClocks(self.gpu(index).handle)
            self._call(index, "nvmlDeviceResetGpuLockedClocks")
        else:
            self._call(index, "nvmlDeviceSetGpuLockedClocks", mhz, mhz)

    def set_mem(self, index: int, mhz: Mhz) -> None:
        if index in self._applied:
            self._apply(index, 0, mhz)
        elif mhz is None:
            self._call(index, "nvmlDeviceResetMemoryLockedClocks")
        else:
            self._call(index, "nvmlDeviceSetMemoryLockedClocks", mhz, mhz)

    def power_limit_w(self, index: int) -> Optional[float]:
        return self.gpu(index).power_limit_w()

    def set_power_limit(self, index: int, watts: float) -> None:
        self._call(index, "nvmlDeviceSetPowerManagementLimit", round(1e3 * watts))

    def read(self, index: int) -> tuple[Optional[int], Optional[int]]:
        return self.gpu(index).core_mhz(), self.gpu(index).mem_mhz()

    def is_held_down(self, index: int) -> bool:
        return self.gpu(index).is_held_down()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("zeusd", timeout=ANSWER_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class ZeusdBackend:
    """Clocks through zeusd's Unix socket. Clocks are read through NVML where it is there."""

    name = "zeusd"

    def __init__(self, path: Optional[str] = None, token: Optional[str] = None):
        self._connection: Optional[_UnixConnection] = None
        self.found_limits_w: dict[int, float] = {}
        self.path = path or os.environ.get(ZEUSD_VARIABLE) or ZEUSD_SOCKET
        self.token = token or os.environ.get(TOKEN_VARIABLE)
        #: of a process that is to reach the same daemon
        self.environment = {ZEUSD_VARIABLE: self.path, **({TOKEN_VARIABLE: self.token} if self.token else {})}
        discovered = self._request("GET", "/discover")
        self._names = {int(gpu["id"]): gpu.get("name") for gpu in discovered.get("gpus", [])}
        self._places = {int(gpu["id"]): gpu.get("pci_address") for gpu in discovered.get("gpus", [])}
        try:
            self.reader: Optional[NvmlBackend] = NvmlBackend()
        except IoError:
            self.reader = None

    def __del__(self) -> None:
        self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, **query: Any) -> Any:
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        for attempt in (1, 2):  # a kept connection may have been closed meanwhile
            try:
                if self._connection is None:
                    self._connection = _UnixConnection(self.path)
                self._connection.request(method, target, headers=headers)
                answer = self._connection.getresponse()
                body = answer.read()
                break
            except PermissionError as error:
                self._drop()
                raise IoError(f"zeusd at {self.path}: {error}", "its socket is for members of its group") from None
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if attempt == 2 or isinstance(error, (FileNotFoundError, ConnectionRefusedError, socket.timeout)):
                    raise Unreachable(f"zeusd at {self.path}: {error}", f"is zeusd running? {ZEUSD_VARIABLE} names its socket") from None
        if answer.status != 200:
            hints = {401: f"{TOKEN_VARIABLE} holds the token", 403: "the token may not set clocks",
                     404: "start zeusd with its group of calls for clocks"}
            raise IoError(f"zeusd: {path}: {answer.status} {body.decode('utf-8', 'replace').strip()}", hints.get(answer.status, ""))
        try:
            document = json.loads(body) if body.strip() else {}
        except ValueError:
            document = {}
        errors = document.get("errors") if isinstance(document, dict) else None
        if errors:
            raise IoError(f"zeusd: {path}: " + "; ".join(f"GPU {gpu}: {text}" for gpu, text in errors.items()))
        return document

    def gpu_name(self, index: int) -> Optional[str]:
        return self._names.get(index)

    def lock_name(self, index: int) -> Optional[str]:
        return self.reader.lock_name(index) if self.reader else self._places.get(index) or str(index)

    def find_way(self, index: int) -> None:
        """zeusd locks clocks."""

    def _set(self, kind: str, index: int, mhz: Mhz) -> None:
        if mhz is None:
            self._request("POST", f"/gpu/reset_{kind}_locked_clocks", gpu_ids=index, block="true")
        else:
            self._request("POST", f"/gpu/set_{kind}_locked_clocks", gpu_ids=index, block="true",
                          min_clock_mhz=mhz, max_clock_mhz=mhz)

    def set_core(self, index: int, mhz: Mhz) -> None:
        self._set("gpu", index, mhz)

    def set_mem(self, index: int, mhz: Mhz) -> None:
        self._set("mem", index, mhz)

    def power_limit_w(self, index: int) -> Optional[float]:
        if self.reader:
            return self.reader.power_limit_w(index)
        limits_mw = self._request("GET", "/gpu/get_power_limit", gpu_ids=index)
        try:
            found = limits_mw[str(index)]
            return 1e-3 * float(found["power_limit_mw"] if isinstance(found, dict) else found)
        except (KeyError, TypeError, ValueError):
            raise IoError(f"zeusd: /gpu/get_power_limit: {limits_mw}; expected mW by GPU") from None

    def set_power_limit(self, index: int, watts: float) -> None:
        self._request("POST", "/gpu/set_power_limit", gpu_ids=index, block="true", power_limit_mw=round(1e3 * watts))

    def read(self, index: int) -> tuple[Optional[int], Optional[int]]:
        return self.reader.read(index) if self.reader else (None, None)

    def is_held_down(self, index: int) -> bool:
        return self.reader is not None and self.reader.is_held_down(index)


class DryBackend:
    """Sets nothing and keeps what it was asked: (index, 'core' or 'mem', MHz or None), (index, 'power', W)."""

    name = "dry"

    def __init__(self) -> None:
        self.found_limits_w: dict[int, float] = {}
        self.requests: list[tuple[int, str, Union[Mhz, float]]] = []

    def gpu_name(self, index: int) -> Optional[str]:
        return None

    def lock_name(self, index: int) -> Optional[str]:
        return None

    def find_way(self, index: int) -> None:
        pass

    def set_core(self, index: int, mhz: Mhz) -> None:
        self.requests.append((index, "core", mhz))

    def set_mem(self, index: int, mhz: Mhz) -> None:
        self.requests.append((index, "mem", mhz))

    def power_limit_w(self, index: int) -> Optional[float]:
        return None

    def set_power_limit(self, index: int, watts: float) -> None:
        self.requests.append((index, "power", watts))

    def read(self, index: int) -> tuple[Optional[int], Optional[int]]:
        return None, None

    def is_held_down(self, index: int) -> bool:
        return False


BACKENDS = {"nvml": NvmlBackend, "zeusd": ZeusdBackend, "dry": DryBackend}


def open_backend(name: str) -> Backend:
    """By name; 'auto' is zeusd where its socket is and we are not root, else NVML."""
    if name == "auto":
        socket_there = os.path.exists(os.environ.get(ZEUSD_VARIABLE, ZEUSD_SOCKET))
        name = "zeusd" if socket_there and os.geteuid() != 0 else "nvml"
    if name not in BACKENDS:
        raise UsageError(f"backend is '{name}'; expected auto, {', '.join(BACKENDS)}")
    return BACKENDS[name]()


def release(backend: Backend, indices: Sequence[int]) -> list[RubatoError]:
    """Gives the clocks of GPUs back, and power limits to what they were; what failed. A GPU without memory lock, or rights, kept nothing.

    One GPU that fails does not keep the others; zeusd that does not answer is not asked again.
    """
    failed: list[RubatoError] = []
    for index in indices:
        for give_back in _ways_back(backend, index):
            try:
                give_back()
            except Unreachable as error:
                return [*failed, error]
            except RubatoError as error:
                if "Not Supported" not in str(error) and "Insufficient Permissions" not in str(error):
                    failed.append(error)
    return failed


def _ways_back(backend: Backend, index: int) -> list[Callable[[], None]]:
    ways: list[Callable[[], None]] = [lambda: backend.set_core(index, None), lambda: backend.set_mem(index, None)]
    if index in backend.found_limits_w:
        ways.append(lambda: backend.set_power_limit(index, backend.found_limits_w[index]))
    return ways
