"""What the program answers, in Python: tables whose columns have units, and that become pandas, polars or Arrow; shown in notebooks."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union, overload

from rubato.errors import IoError

#: last part of a name, and the unit it stands for; docs/python.md
UNITS = {"s": "s", "ms": "ms", "us": "us", "h": "h", "j": "J", "kwh": "kWh", "w": "W", "mhz": "MHz", "v": "V", "c": "degrees C", "pct": "%", "frac": "1", "mb": "MB",
         "bytes": "B", "kg": "kg", "flop": "FLOP"}
SHOWN_ROWS = 20  #: of a table in a notebook


def unit_of(name: str) -> Optional[str]:
    """'MHz' of 'core_mhz'; None of a name without a unit."""
    _, _, last = name.rpartition("_")
    return UNITS.get(last) if last != name else None


class Table(list[dict[str, Any]]):
    """Rows as dicts. `table["time_s"]` is a column, `table[["pass", "time_s"]]` a table of two, `table[0]` a row."""

    @property
    def columns(self) -> list[str]:
        """Names in order."""
        return list(dict.fromkeys(name for row in self for name in row))

    @property
    def units(self) -> dict[str, Optional[str]]:
        """By name; None where a column has no unit."""
        return {name: unit_of(name) for name in self.columns}

    @overload  # type: ignore[override]
    def __getitem__(self, key: str) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Union[slice, list[str], tuple[str, ...]]) -> "Table": ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            self._check([key])
            return [row.get(key) for row in self]
        if isinstance(key, slice):
            return Table(super().__getitem__(key))
        if isinstance(key, (list, tuple)):
            self._check(key)
            return Table({name: row.get(name) for name in key} for row in self)
        return super().__getitem__(key)

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if self and name not in self.columns:
                raise KeyError(f"{name}; the table has {', '.join(self.columns)}")

    def where(self, **values: Any) -> "Table":
        """Rows that have these values: plans.where(granularity="pass", slack_pct=5)."""
        return Table(row for row in self if all(row.get(name) == value for name, value in values.items()))

    def _by_column(self) -> dict[str, list[Any]]:
        return {name: self[name] for name in self.columns}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, its units in `attrs["units"]`. Raises IoError without pandas."""
        frame = _module("pandas").DataFrame(self._by_column())
        frame.attrs["units"] = self.units
        return frame

    def to_polars(self) -> Any:
        """A polars.DataFrame. Raises IoError without polars."""
        return _module("polars").DataFrame(self._by_column(), strict=False)

    def to_arrow(self) -> Any:
        """A pyarrow.Table; units are the fields' metadata. Raises IoError without pyarrow."""
        pyarrow = _module("pyarrow")
        table = pyarrow.table(self._by_column())
        fields = [field.with_metadata({"unit": unit}) if (unit := unit_of(field.name)) else field for field in table.schema]
        return table.cast(pyarrow.schema(fields))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For whatever takes Arrow (DuckDB, polars.from_arrow, datasets): without a copy through text."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        names = self.columns
        heads = "".join(f"<th>{html.escape(name)}{f'<br><small>{unit}</small>' if (unit := unit_of(name)) else ''}</th>" for name in names)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(row.get(name)))}</td>" for name in names) + "</tr>" for row in self[:SHOWN_ROWS])
        more = f"<p>{len(self) - SHOWN_ROWS} more rows</p>" if len(self) > SHOWN_ROWS else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Answer(Mapping[str, Table]):
    """Tables of one command by name, also as attributes: answer.plans is answer["plans"]. `command` is what was run."""

    def __init__(self, command: str, tables: Mapping[str, Sequence[Mapping[str, Any]]]):
        self.command = command
        self._tables = {name: Table(dict(row) for row in rows) for name, rows in tables.items() if isinstance(rows, list)}

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_") or name not in self._tables:
            raise AttributeError(f"the answer has no table '{name}'; it has {', '.join(self.__dict__.get('_tables', ()))}")
        return self._tables[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tables]

    def __repr__(self) -> str:
        return f"<{self.command}: " + ", ".join(f"{name} ({len(table)} rows)" for name, table in self.items()) + ">"

    def _repr_html_(self) -> str:
        """The first table open, the rest folded."""
        parts = [f"<details{'' if place else ' open'}><summary>{name}, {len(table)} rows</summary>{table._repr_html_()}</details>"
                 for place, (name, table) in enumerate(self.items())]
        return f"<p><code>{html.escape(self.command)}</code></p>" + "".join(parts)

    def plot(self, axes: Any = None) -> Any:
        """Plans by time and energy against the default clocks, with intervals, on matplotlib's `axes` or new ones, which are returned.

        Raises IoError without matplotlib.
        """
        if axes is None:
            axes = _module("matplotlib.pyplot").subplots()[1]
        for name in dict.fromkeys(self["plans"]["granularity"]):
            rows = self["plans"].where(granularity=name)
            middle = rows["energy_change_pct"]
            ends = [[max(sign * (row[end] - at), 0.0) if row.get(end) is not None else 0.0 for row, at in zip(rows, middle)]
                    for sign, end in ((-1, "energy_change_low_pct"), (1, "energy_change_high_pct"))]
            axes.errorbar(rows["time_change_pct"], middle, yerr=ends, fmt="o-", label=name)
        axes.set_xlabel("time against default clocks, %")
        axes.set_ylabel("energy against default clocks, %")
        axes.legend()
        return axes


class Calibration:
    """A fitted GPU spec (`spec`, as JSON has it) and what the program said of the fit (`report`)."""

    def __init__(self, spec: dict[str, Any], report: str):
        self.spec, self.report = spec, report

    def save(self, path: Union[str, Path]) -> None:
        """Writes the spec, which `gpu=path` then names. Raises IoError."""
        try:
            Path(path).write_text(json.dumps(self.spec, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise IoError(f"{path}: {error.strerror}") from None

    def __repr__(self) -> str:
        return f"<spec of {self.spec.get('title') or self.spec.get('name')}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.report)}</pre>"


def _module(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        top = name.split(".")[0]
        raise IoError(f"python module {top} is not installed", f"pip install {top}") from None
