"""Rubato in Python: plans set on GPUs, savings measured, results as tables.

    with rubato.apply("plan.json", model, optimizer):
        train()

docs/apply.md and docs/python.md of the project tell more. Importing this does nothing but name what there is.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Applier": "rubato.applier", "ApplierReport": "rubato.applier", "apply": "rubato.applier",
    "Energy": "rubato.measuring.energy", "energy": "rubato.measuring.energy",
    "LatencyResult": "rubato.hardware.latency", "measure_latency": "rubato.hardware.latency",
    "Measurement": "rubato.measuring.measurement", "measure": "rubato.measuring.measurement",
    "PlanFile": "rubato.plan_file", "load_plan": "rubato.plan_file", "match_launches": "rubato.plan_file",
    "Answer": "rubato.tables", "Calibration": "rubato.tables", "Table": "rubato.tables", "Results": "rubato.results",
    "budget": "rubato.program", "calibrate": "rubato.program", "explore": "rubato.program", "replay": "rubato.program", "run": "rubato.program",
    "DataError": "rubato.errors", "IoError": "rubato.errors", "RubatoError": "rubato.errors", "UsageError": "rubato.errors",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "callbacks":
        return importlib.import_module("rubato.callbacks")
    if name == "__version__":
        return importlib.import_module("rubato.program").run("--version").split()[1]
    if name not in _HOMES:
        raise AttributeError(f"module 'rubato' has no attribute '{name}'; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
