"""Which packages of the index are here, and what tests beside them share."""

import importlib.metadata
import unittest

from parts import ROOT

EXAMPLES = ROOT / "docs" / "examples"
CAPTURE = EXAMPLES / "run.pt.trace.json.gz"
there = set()  # packages that a test here uses


def needs(*packages):
    """Skips a test without these packages of the index."""
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    there.update([] if missing else found)
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed (tools/setup --python)")
