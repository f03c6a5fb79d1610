#!/usr/bin/env python3
"""What a user of a shell expects: pipes, standard input, folders made, percentages, --quiet, help, and files that are told.

Usage: terminal_manners_test.py RUBATO SOURCE_DIR
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FEW = ("--granularity", "iteration")


class Manners(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *arguments, status=0, **options):
        done = subprocess.run([RUBATO, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=60, **{"text": True, **options})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_a_reader_that_has_seen_enough_ends_nothing(self):
        # More than a pipe holds, to a reader of one line; what was asked for beside it is done all the same.
        command = f"{RUBATO} explore --per-kernel --json --db r.db | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "{\n0\n")
        self.assertEqual(done.stderr, "stored as run 1 in r.db\n")
        self.assertEqual(self.run_program("query", "--db", "r.db", "--csv", "SELECT count(*) AS n FROM runs").stdout, "n\n1\n")

    def test_a_full_disk_is_still_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([RUBATO, "explore", *FEW], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 4)
        self.assertIn("No space left", done.stderr)

    def test_standard_input(self):
        trace = self.run_program("trace", "convert", "gpt3-xl", "/dev/stdout", status=2)  # no extension says the form
        self.run_program("trace", "convert", "gpt3-xl", "t.json")
        text = (self.folder / "t.json").read_text()
        by_name = json.loads(self.run_program("trace", "show", "gpt3-xl", "--json").stdout)
        self.assertEqual(json.loads(self.run_program("trace", "show", "-", "--json", input=text).stdout), by_name)
        plans = [json.loads(self.run_program("explore", name, *FEW, "--json", input=text).stdout)["plans"] for name in ("gpt3-xl", "-")]
        self.assertEqual(plans[0][1]["energy_j"], plans[1][1]["energy_j"])
        captured = self.run_program("explore", "-", *FEW, "--json", text=False, input=(SOURCE / "docs/examples/run.pt.trace.json.gz").read_bytes())
        self.assertEqual(json.loads(captured.stdout)["run"][0]["gpus"], 1)
        self.assertIn("standard input: is empty", self.run_program("explore", "-", input="", status=4).stderr)

    def test_kept_input_is_gone_afterwards(self):
        self.run_program("trace", "convert", "gpt3-xl", "t.csv")
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.run_program("trace", "show", "-", input=(self.folder / "t.csv").read_text(), env={**os.environ, "TMPDIR": str(scratch)})
        self.assertEqual(list(scratch.iterdir()), [])

    def test_folders_are_made(self):
        self.run_program("explore", *FEW, "--db", "made/for/r.db", "--timeline", "also/made/t.json")
        told = self.run_program("report", "--db", "made/for/r.db", "-o", "pages/r.html").stderr
        self.assertIn("wrote pages/r.html", told)
        for path in ("made/for/r.db", "also/made/t.json", "pages/r.html"):
            self.assertTrue((self.folder / path).stat().st_size > 1000, path)

    def test_what_is_written_is_told(self):
        self.run_program("explore", *FEW, "--db", "r.db")
        for arguments, path in ((("trace", "convert", "gpt3-xl", "t.csv"), "t.csv"), (("export", "--db", "r.db", "-o", "p.json"), "p.json"),
                                (("export", "--db", "r.db", "--plan", "latest", "-o", "plan.json"), "plan.json"),
                                (("explore", *FEW, "--timeline", "l.json"), "l.json"), (("transfer", "--db", "r.db", "--batches", "8", "--page", "t.html"), "t.html"),
                                (("sweep-latency", "--latencies-us", "10,100", "--plot", "s.svg"), "s.svg")):
            self.assertIn(f"wrote {path}\n", self.run_program(*arguments).stderr)

    def test_a_name_says_the_form(self):
        self.run_program("explore", *FEW, "--db", "r.db")
        self.run_program("export", "--db", "r.db", "-o", "p.json")
        self.assertEqual(len(json.loads((self.folder / "p.json").read_text())), 2)
        self.run_program("export", "--db", "r.db", "-o", "p.jsonl")
        self.assertEqual(len([json.loads(line) for line in (self.folder / "p.jsonl").read_text().splitlines()]), 2)
        self.run_program("export", "--db", "r.db", "-o", "p.csv")
        self.assertTrue((self.folder / "p.csv").read_text().startswith("plan_id,"))
        self.run_program("export", "--db", "r.db", "-o", "p.json", "--csv")  # an option outweighs a name
        self.assertTrue((self.folder / "p.json").read_text().startswith("plan_id,"))

    def test_percentages(self):
        with_sign, without = (json.loads(self.run_program("explore", *FEW, "--slack", slack, "--json").stdout) for slack in ("5%", "5"))
        self.assertEqual(with_sign["plans"][1]["energy_j"], without["plans"][1]["energy_j"])
        self.assertIn("--power-limit is '5%'; expected a number", self.run_program("explore", "--power-limit", "5%", status=2).stderr)

    def test_quiet(self):
        capture = SOURCE / "docs/examples/run.pt.trace.json.gz"
        loud = self.run_program("explore", capture, *FEW)
        quiet = self.run_program("explore", capture, *FEW, "--quiet")
        self.assertIn("note: ", loud.stderr)
        self.assertEqual((quiet.stdout, quiet.stderr), (loud.stdout, ""))
        self.assertIn("error: --slack is 1e+308", self.run_program("explore", "--quiet", "--slack", "1e308", status=2).stderr)
        self.assertIn("--quiet", self.run_program("pipeline", "plan", "--help").stdout)

    def test_help(self):
        for path in (("explore",), ("pipeline", "plan")):
            self.assertEqual(self.run_program("help", *path).stdout, self.run_program(*path, "--help").stdout)
        self.assertEqual(self.run_program("help").stdout, self.run_program("--help").stdout)
        self.assertIn("did you mean 'explore'?", self.run_program("help", "explor", status=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
