"""What tests of the terminal share: the program in a folder of its own, and inputs that are soon planned.

Their usage: TEST.py RUBATO SOURCE_DIR
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import cpu_s  # noqa: E402,F401

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FEW = ("--per", "run")
PIPELINE = ("--profile", SOURCE / "docs/examples/gpt3-175b-a100.csv", "--blocked-power", "83.64", "--microbatches", "4")
STAGES = PIPELINE[1:]  # of explore


class ProgramCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *arguments, status=0, **options):
        done = subprocess.run([RUBATO, *map(str, arguments)], cwd=self.folder, capture_output=True, **{"text": True, **options})
        self.assertEqual(done.returncode, status, done.stderr)
        return done
