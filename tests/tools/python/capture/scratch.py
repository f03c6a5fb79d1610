"""What the tests of tools/capture share: where its modules are, a file to sweep into, the rubato program."""

import csv
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOLS = Path(__file__).resolve().parents[4] / "tools"
sys.path[:0] = [str(TOOLS / "python")]

from rubato.capture.cli import main  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
HAS_TORCH = torch is not None and hasattr(torch.nn.functional, "scaled_dot_product_attention")  # 2.0

SMALL = ["--core", "600,1200", "--mem", "5001,9501", "--kernels", "02_*,11_gelu", "--repeats", "2"]


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.csv = Path(folder.name) / "sweep.csv"

    def sweep(self, world, *more, options=SMALL):
        return main(["sweep", "-o", str(self.csv), *options, *more], world)

    def rows(self):
        with open(self.csv, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def rubato(test):
    """The program given as argument; skips the test where there is none."""
    if not _program:
        test.skipTest("no rubato program given")
    return _program[0]


def run_tests():
    """Usage: *_test.py [RUBATO]"""
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        _program.append(sys.argv.pop(1))
    unittest.main()


_program = []
