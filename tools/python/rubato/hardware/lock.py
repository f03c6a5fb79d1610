"""One process at a time sets the clocks of a GPU: a lock (flock) on a file of the GPU's UUID, which says who holds it.

The kernel lifts the lock when the last process that has the file open is gone: the holder and its guards. What stands in a file
that nobody has locked was left by a holder that died together with its guards: clocks may still be set, and whoever locks the
GPU next gives them back first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import sys
import time
import weakref
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

from rubato.errors import IoError

SHARED_FOLDERS = ("/run/lock", "/tmp")  #: the first in which every user may make files, so that all users find the same
HANDOVER_S = 1.0  #: most to wait for it: guards of a holder that was just killed need AGAIN_S of rubato.hardware.guard
LOOK_S = 0.02
_MOST_BYTES = 4096  # of what is read of a file that others could have written

_held: "weakref.WeakSet[GpuLock]" = weakref.WeakSet()


def _folder() -> Path:
    for name in SHARED_FOLDERS:
        with contextlib.suppress(OSError):
            if os.stat(name).st_mode & 0o1777 == 0o1777:
                return Path(name)
    raise IoError(f"none of {', '.join(SHARED_FOLDERS)} is a folder in which every user may make files; locks of GPUs are kept there",
                  "chmod 1777 /tmp")


def lock_path(uuid: str) -> Path:
    """The file whose lock is that of the GPU. Raises IoError where the machine has no folder for it."""
    return _folder() / f"rubato-{re.sub(r'[^A-Za-z0-9.-]', '_', uuid)}.lock"


def record_of(uuid: str) -> dict[str, Any]:
    """What the GPU's lock says: who sets its clocks, or was killed and left them set; {} where nobody does. Takes no lock."""
    try:
        descriptor = os.open(lock_path(uuid), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, IoError):
        return {}
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def holder_of(uuid: str) -> str:
    """The same in words; "" where nobody does."""
    return _told(record_of(uuid))


class GpuLock:
    """Holds the lock of one GPU until close(). Raises IoError where another process has it; `gpu` is its name in messages."""

    def __init__(self, uuid: str, gpu: str):
        self.path = lock_path(uuid)
        self.descriptor = _open(self.path)
        self.left = ""  #: who died with clocks set, "" if nobody
        self.left_limit_w: Optional[float] = None  #: power limit that the GPU had before; None: it was not set
        try:
            self._lock(gpu)
            record = _read(self.descriptor)
            self.left = _told(record)
            with contextlib.suppress(TypeError, ValueError):
                self.left_limit_w = float(record.get("power_limit_w"))  # type: ignore[arg-type]
        except BaseException:
            os.close(self.descriptor)
            raise
        _held.add(self)

    def _lock(self, gpu: str) -> None:
        end_s = time.monotonic() + HANDOVER_S
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pass
            except OSError as error:
                raise IoError(f"{self.path}: cannot be locked: {error.strerror}") from None
            if time.monotonic() > end_s:
                holder = _read(self.descriptor)
                who = _told(holder) or f"a process that has {self.path} open"
                gone = holder and not os.path.exists(f"/proc/{holder.get('pid')}")
                raise IoError(f"{gpu}: its clocks are set by {who}" + (", which is gone, but not its guard or what it started" if gone else ""),
                              "end it, or wait: of two at a time each would undo the other's clocks")
            time.sleep(LOOK_S)

    def claim(self, limit_w: Optional[float] = None, plan: Optional[dict[str, Any]] = None) -> None:
        """Says that this process sets clocks from now on, the power limit that is given back after, and the plan. Raises IoError."""
        record: dict[str, Any] = {"pid": os.getpid(), "command": _command(), "since": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")}
        if limit_w is not None:
            record["power_limit_w"] = limit_w
        if plan is not None:
            record["plan"] = plan
        try:
            clear(self.descriptor)
            os.pwrite(self.descriptor, json.dumps(record).encode(), 0)
        except OSError as error:
            raise IoError(f"{self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Lets go; guards that have the file open too keep the lock."""
        _held.discard(self)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def clear(descriptor: int) -> None:
    """Says in a lock's file that no clocks are set."""
    os.ftruncate(descriptor, 0)


def _let_go_in_child() -> None:
    for lock in list(_held):  # a fork, such as a data loader's worker, may outlive the holder
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_child)


def _open(path: Path) -> int:
    """Opens the file, or makes it for all users. A link, or a file that also has another name, is not followed into."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            descriptor = os.open(path, flags)  # without O_CREAT: fs.protected_regular refuses it for files of others
        except FileNotFoundError:
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(descriptor, 0o666)  # whatever the umask
            except FileExistsError:
                descriptor = os.open(path, flags)
    except OSError as error:
        raise IoError(f"{path}: the lock of this GPU cannot be opened: {error.strerror}", "remove that file") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise IoError(f"{path}: expected a plain file with one name, for the lock of this GPU", "remove it")
    return descriptor


def _read(descriptor: int) -> dict[str, Any]:
    """What the file says; {} where it says nothing that can be read."""
    try:
        found = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _told(record: dict[str, Any]) -> str:
    """"process 4711 ('python3 train.py'), since ..."; "" of an empty record."""
    def plain(key: str) -> str:
        return "".join(c if c.isprintable() else "?" for c in str(record.get(key, "?")))[:200]

    return f"process {plain('pid')} ('{plain('command')}'), since {plain('since')}" if record else ""


def _command() -> str:
    try:
        words: Optional[list[str]] = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        words = None
    return " ".join(words or sys.argv).strip()[:200]
