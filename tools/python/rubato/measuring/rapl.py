"""Energy of CPU packages and of DRAM, from the kernel's counters (RAPL, powercap), where it lets this user read them.

https://docs.kernel.org/power/powercap/powercap.html, read 2026-11-26: energy_uj counts uJ and begins again above max_energy_range_uj.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

FOLDER = Path("/sys/class/powercap")
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")  # AMD's counters have that name too; intel-rapl-mmio counts the same package again


@dataclass
class Zone:
    """One counter: `kind` is 'cpu' (a package, its cores within) or 'dram'."""

    kind: str
    counter: Path
    range_uj: float
    _last_uj: Optional[float] = field(default=None, repr=False)
    _sum_uj: float = field(default=0.0, repr=False)

    def look(self) -> float:
        """J since the first look. Look before the counter can begin again, which takes minutes. Raises OSError."""
        now_uj = float(self.counter.read_text(encoding="ascii"))
        if self._last_uj is not None:
            moved_uj = now_uj - self._last_uj
            self._sum_uj += moved_uj if moved_uj >= 0 else moved_uj + self.range_uj
        self._last_uj = now_uj
        return 1e-6 * self._sum_uj


def zones(folder: Optional[Path] = None) -> list[Zone]:
    """Counters of all packages and their DRAM, also those that this user may not read; [] where the kernel has none."""
    found = []
    for path in sorted((folder or FOLDER).glob("intel-rapl:*")):
        try:
            name = (path / "name").read_text(encoding="ascii").strip()
            range_uj = float((path / "max_energy_range_uj").read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        kind = "cpu" if name.startswith("package") else name
        if _ZONE.fullmatch(path.name) and kind in ("cpu", "dram"):
            found.append(Zone(kind, path / "energy_uj", range_uj))
    return found
