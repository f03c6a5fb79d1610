#!/usr/bin/env python3
"""Scripts for clusters (tools/packaging/clusters), run as launchers and Slurm run them, with stand-ins for nvidia-smi and rubato that write
down what they are told. A real Slurm runs them in commands/experiments/sweep_slurm_test.sh.

Usage: clusters_test.py SOURCE_DIR
"""
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import run  # noqa: E402

SCRIPTS = Path(sys.argv.pop(1)).resolve() / "tools/packaging/clusters"


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.log = Path(folder.name), Path(folder.name) / "log"
        for name in ("nvidia-smi", "rubato", "train"):
            self.stand_in(name)

    def stand_in(self, name, status=0):
        path = self.folder / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> "{self.log}"\necho said\nexit {status}\n')
        path.chmod(0o755)

    def run_script(self, name, *words, path=None, **variables):
        """(status, what was called)."""
        self.log.write_text("")
        done = run("/bin/bash", SCRIPTS / name, *words, env={"PATH": path or f"{self.folder}:/usr/bin:/bin", **variables}, cwd=self.folder)
        self.output, self.errors = done.stdout, done.stderr
        return done.returncode, self.log.read_text().splitlines()

    def of_rank(self, clocks, **variables):
        return self.run_script("clocks_of_rank", clocks, "train", "--steps", "3", **variables)

    def locked(self, gpu, mhz):
        return [f"nvidia-smi -i {gpu} -lgc {mhz},{mhz}", "train --steps 3", f"nvidia-smi -i {gpu} -rgc"]

    def test_each_rank_sets_its_stages_clock_and_gives_it_back(self):
        stages = "900,1110,1200,1305"
        for rank, mhz in enumerate((900, 900, 1110, 1110, 1200, 1200, 1305, 1305)):
            torchrun = dict(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="8")
            self.assertEqual(self.of_rank(stages, **torchrun), (0, self.locked(rank, mhz)))
        self.assertEqual(self.output, "said\n")  # the program's alone
        slurm = dict(SLURM_PROCID="6", SLURM_LOCALID="2", SLURM_STEP_NUM_TASKS="8")
        self.assertEqual(self.of_rank(stages, **slurm), (0, self.locked(2, 1305)))
        self.assertEqual(self.of_rank(stages, **slurm, CUDA_VISIBLE_DEVICES="7,6,5,4"), (0, self.locked(5, 1305)))
        self.assertEqual(self.of_rank(stages, **slurm, CUDA_VISIBLE_DEVICES="GPU-1"), (0, self.locked("GPU-1", 1305)))
        mpi = dict(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_LOCAL_RANK="1", OMPI_COMM_WORLD_SIZE="4")
        self.assertEqual(self.of_rank("1110", **mpi), (0, self.locked(1, 1110)))
        self.assertEqual(self.of_rank("1110"), (0, self.locked(0, 1110)))

    def test_what_it_cannot_do_does_not_stop_training(self):
        self.assertEqual(self.of_rank("0,1110", RANK="0", WORLD_SIZE="2"), (0, ["train --steps 3"]))
        self.stand_in("train", status=7)
        self.stand_in("nvidia-smi", status=4)
        self.assertEqual(self.of_rank("1110"), (7, self.locked(0, 1110)))
        self.assertIn("stays at the driver's clocks", self.errors)

    def test_wrong_uses_run_nothing(self):
        self.assertEqual(self.run_script("clocks_of_rank", "1110"), (2, []))
        self.assertIn("Usage: clocks_of_rank", self.errors)
        self.assertEqual(self.of_rank("900,1110,1200", WORLD_SIZE="4"), (2, []))
        self.assertIn("3 clocks do not divide 4 ranks", self.errors)

    def test_prolog_and_epilog_give_back_the_jobs_gpus(self):
        expected = [line for gpu in (1, 3) for line in (f"rubato restore --gpu {gpu}", *(f"nvidia-smi -i {gpu} {clocks}" for clocks in ("-rgc", "-rmc", "-rac")))]
        self.assertEqual(self.run_script("give_clocks_back", SLURM_JOB_GPUS="1,3"), (0, expected))
        self.assertEqual(self.output + self.errors, "")
        self.stand_in("rubato", status=4)
        self.stand_in("nvidia-smi", status=3)
        self.assertEqual(self.run_script("give_clocks_back", SLURM_JOB_GPUS="1,3"), (0, expected))

    def test_prolog_and_epilog_never_fail(self):
        self.assertEqual(self.run_script("give_clocks_back"), (0, []))  # a job without GPUs
        self.assertEqual(self.run_script("give_clocks_back", SLURM_JOB_GPUS="99", path="/nowhere"), (0, []))  # a node without them
        self.assertEqual(self.errors, "")


if __name__ == "__main__":
    unittest.main()
