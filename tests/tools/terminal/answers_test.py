#!/usr/bin/env python3
"""What commands answer on a terminal: the decisive numbers first, those that programs read, with what they rest on.

Usage: answers_test.py RUBATO SOURCE_DIR
"""
import json
import re
import subprocess
import sys
import unittest

from program_case import FEW, PIPELINE, RUBATO, SOURCE, STAGES, ProgramCase


class Answers(ProgramCase):
    def test_the_answer_comes_first(self):
        """On what, then what was found, in the words of the page; then tables."""
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        for command, answer in ((("replay", SOURCE / "docs/examples/run.pt.trace.json.gz"), "The model gives the run "),
                                (("trace", "scale", "gpt3-small", "--pp", "1,2", "--slack", "1"), "With 1 % more time allowed, plans save "),
                                (("latency-scan", "gpt3-xl", "--latencies-us", "10,100"), "A device that runs on meanwhile: energy -"),
                                (("validate", SOURCE / "docs/examples/a100-sweep.csv", "--gpu", "a100-sxm4-80gb"), "Mean absolute error: time "),
                                (("pipeline", "straggle", *PIPELINE, "--factor", "1.2"), "A pipeline that waits for a slower one: energy -"),
                                (("pipeline", "scale", *PIPELINE, "--replicas", "2", "--global-batch", "8"), "In the same time: energy -"),
                                (("pipeline", "compare", *PIPELINE), "Our plan in the time of the highest clocks: energy -"),
                                (("pipeline", "front", *PIPELINE), "In the least time, "),
                                (("pipeline", "latency-scan", *PIPELINE, "--latencies-us", "10"), "A stage that waits for its clock: energy -"),
                                (("reproduce", "kareus2026"), "Energy of a block beside an all-reduce, "),
                                (("verify", "--plan", SOURCE / "docs/examples/plan.json", "--measured", SOURCE / "docs/examples/ab.csv"), "Measured: energy -"),
                                (("calibrate", SOURCE / "docs/examples/a100-sweep.csv", "--gpu", "a100-sxm4-80gb", "--kernels-only", "-o", "g.json"),
                                 "Mean absolute error on points that the fit had not seen: time "),
                                (("impact", SOURCE / "docs/examples/training-run.toml", "--db", "r.db"), "The training run takes "),
                                (("suggest", "gpt3-xl", "--points", "2"), "Measure every kernel at 2 clocks next"),
                                (("remeasure", "gpt3-xl", "--campaigns", "5"), "A plan per kernel that promises -"),
                                (("compare", "1", "1", "--db", "r.db"), "Run 1 uses as much energy as run 1, and as much time.")):
            lines = self.run_program(*command).stdout.splitlines()
            said = next(i for i, line in enumerate(lines) if i > 0 and not line.startswith("  "))  # below a heading of some lines
            self.assertTrue(lines[said].startswith(answer), lines[:4])
            self.assertNotRegex(" ".join(lines[:4]), "<b>|&nbsp;|<br>")

    def test_every_exploration_has_the_same_five_lines(self):
        """Of a trace, a capture, ranks and stages, on every width; JSON has the same words."""
        ranks = sorted((SOURCE / "docs/examples/pipeline").glob("rank*.pt.trace.json.gz"))
        for work in (("gpt3-xl", "--clocks", "paper"), (SOURCE / "docs/examples/run.pt.trace.json.gz", "--clocks", "coarse"), (*ranks, "--per", "run,gpu", "--clocks", "coarse"), STAGES,
                     ("gpt3-small", "--stages", "2")):
            said = json.loads(self.run_program("explore", *work, "--slack", "5", "--json").stdout)
            shown = self.run_program("explore", *work, "--slack", "5", "--wide").stdout
            lines, table = shown.split("\n\n")[:2]
            labels = [line[:10].strip() for line in lines.splitlines() if not line.startswith(" ")]
            self.assertEqual(labels, ["Planned", "Set", "Saves", "Rests on", "Next"])
            for key, label in zip(("planned", "set", "saves", "rests_on", "next"), labels):
                begin = next(line for line in lines.splitlines() if line.startswith(label))[10:]
                self.assertEqual(said["answer"][0][key].split("\n")[0], begin)
            self.assertTrue(table.startswith("one clock for "), table)
            headline = next(row for row in said["answers"] if row["is_headline"])
            if headline["plan"] is not None:
                self.assertIn(f"{-headline['energy_change_pct']:.1f} % energy", said["answer"][0]["saves"])
            self.assertLessEqual(shown.count("\nnote: "), 3)

    def test_replayed_times_have_the_unit_that_suits_them(self):
        replay = ("replay", SOURCE / "docs/examples/run.pt.trace.json.gz", "--captured-clock", "1593/1410")
        shown, rows = self.run_program(*replay).stdout, json.loads(self.run_program(*replay, "--json").stdout)["classes"]
        for name, unit, per_ms in (("gemm", "s", 1e-3), ("gelu", "ms", 1), ("reduce", "us", 1e3)):
            row = next(row for row in rows if row["class"] == name)
            self.assertRegex(shown, rf"(?m)^{name} .* {row['captured_ms'] * per_ms:.4g} {unit} .* {row['predicted_ms'] * per_ms:.4g} {unit} ")

    def test_a_note_of_several_plans_is_shown_once(self):
        self.run_program("explore", "--per", "kernel", "--slack", "1,2", "--db", "r.db", status=1)
        shown = " ".join(self.run_program("show", "r.db", "--notes").stdout.split())
        self.assertEqual(shown.count("changes ignored: chosen as if switches were free; the table has the same plan with the cost of its switches, each of 22 ms"), 1)
        self.assertRegex(shown, r"plans per segment are chosen with that cost; plan 1, 2\. not applicable: [^.]*; plan 1, 2\. slack missed: [^.]*; plan 1, 2\.")

    def test_what_bolder_odds_would_save_comes_when_they_are_asked_for(self):
        for work in (("gpt3-xl", "--clocks", "paper"), (SOURCE / "docs/examples/run.pt.trace.json.gz", "--per", "run")):
            note = re.search(r"a plan with (\d+) % odds of being in time would save ([\d.]+) %: --odds (\d+)", self.run_program("explore", *work, "--slack", "5").stdout.replace("\n  ", " "))
            bolder = re.search(r"Saves +([\d.]+) % energy.*?\(> ?(\d+) % odds|Saves +([\d.]+) % energy[^(]*\([^)]*\), time [^(]*\((\d+) % odds",
                               self.run_program("explore", *work, "--slack", "5", "--odds", note[3]).stdout)
            saved, odds = [float(word) for word in bolder.groups() if word]
            self.assertGreaterEqual(saved, float(note[2]) - 0.05)
            self.assertGreaterEqual(odds, float(note[3]))

    def test_notes_are_three_at_most_and_all_of_them_when_asked(self):
        """The same in words everywhere: terminal, JSON, database, show and the page."""
        self.run_program("trace", "gen", "gpt3-xl", "--batch", "8", "--optimizer", "-o", "large.json")
        explore = ("explore", "large.json", "--slack", "5")
        answer = json.loads(self.run_program(*explore, "--json", "--db", "r.db").stdout)["answer"][0]
        notes = answer["notes"].split("\n")
        self.assertGreater(len(notes), 3, notes)
        self.assertRegex(notes[0], r"a plan with \d+ % odds of being in time would save [\d.]+ %: --odds \d+$")
        stored = [row["text"] for row in json.loads(self.run_program("query", "r.db", "--json", "SELECT text FROM screens WHERE label = 'note' ORDER BY position").stdout)]
        self.assertEqual(stored, notes)
        for words, more in ((explore, "--list notes"), (("show", "r.db"), "--notes")):
            shown = self.run_program(*words).stdout
            self.assertEqual(shown.count("note: "), 3, shown)
            self.assertIn(f"{len(notes) - 3} more: {more}", shown)
        shown = " ".join(self.run_program("show", "r.db", "--notes").stdout.split())
        listed = " ".join(self.run_program(*explore, "--list", "notes").stdout.split())
        for note in notes:
            self.assertIn(f"note: {note}", shown)
            self.assertIn(f"note: {note}", listed)
        self.run_program("report", "--db", "r.db", "-o", "r.html")
        page = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', (self.folder / "r.html").read_text(), re.DOTALL)[1])
        self.assertEqual(page["answer"]["notes"], notes)

    def test_impact_counts_changes_of_clock(self):
        """Of the latest run the plan that can be kept, and of one that cannot what it takes as played."""
        self.run_program("explore", "gpt3-xl", "--slack", "1", "--db", "r.db")
        plans = json.loads(self.run_program("query", "--db", "r.db", "--json", "SELECT * FROM v_plans").stdout)
        impact = ("impact", SOURCE / "docs/examples/training-run.toml", "--db", "r.db")

        def change(*plan):
            rows = json.loads(self.run_program(*impact, *plan, "--json").stdout)["impact"]
            return next(row["change_pct"] for row in rows if row["quantity"] == "energy of the boards")

        by_grain = {plan["granularity"]: plan for plan in plans}
        self.assertAlmostEqual(change(), by_grain["segment"]["energy_change_pct"], places=9)
        kernel = by_grain["kernel"]
        self.assertLess(kernel["planned_energy_change_pct"], kernel["energy_change_pct"])
        self.assertAlmostEqual(change("--plan", str(kernel["plan_id"])), kernel["energy_change_pct"], places=9)
        said = " ".join(self.run_program(*impact).stdout.split())
        self.assertIn(f"plan {by_grain['segment']['plan_id']} per segment (relaxed_waste, slack 1 %)", said)
        self.assertIn("The training run takes ", said)
        self.assertIn("changes counted: chosen with the cost of switches, each of 22 ms", said)

    def test_an_exported_plan_says_which_it_is(self):
        self.run_program("explore", "gpt3-xl", "--goal", "edp,energy", "--per", "run", "--db", "r.db")
        told = self.run_program("export", "--db", "r.db", "--plan", "latest", "-o", "p.json").stderr
        change = json.loads((self.folder / "p.json").read_text())["plans"][0]["promise"]["energy_change_pct"]
        self.assertIn(f"per run (edp): energy {change:+.2f} %, time ", told)

    def test_impact_knows_what_generated_traces_train(self):
        self.run_program("trace", "gen", "gpt3-small", "--batch", "4", "--seq", "512", "--tp", "2", "-o", "step.json")
        self.run_program("explore", "step.json", "--per", "run", "--slack", "20", "--db", "r.db")
        filled = re.sub(r"value = nan", "value = 64", self.run_program("impact", "--template").stdout).replace('= ""', '= "x"').replace("# host_w", "# host_w")
        (self.folder / "run.toml").write_text(filled)
        rows = json.loads(self.run_program("impact", "run.toml", "--db", "r.db", "--json").stdout)["impact"]
        run = json.loads(self.run_program("query", "--db", "r.db", "--json", "SELECT default_time_s AS time_s FROM v_runs").stdout)[0]
        # 64 tokens on 64 GPUs, of which two share a replica of 4 x 512 tokens.
        self.assertAlmostEqual(rows[0]["default"], 64 / (32 * 4 * 512) * run["time_s"] / 3600, places=12)

    def test_impact_of_captured_runs(self):
        """A step is an iteration, several GPUs are summed; what a capture does not know is asked for."""
        inputs = (SOURCE / "docs/examples/training-run.toml").read_text()
        (self.folder / "run.toml").write_text(inputs + 'tokens_per_iteration = {value = 1e6, source = "a"}\ngpus_per_replica = {value = 2, source = "b"}\n')
        captures = SOURCE / "tests/captures"
        for number, (capture, steps, gpus) in enumerate(((("--gpu", "a100-sxm4-80gb", captures / "traces/kineto_a100_ddp2_resnet.json.gz"), 3, 1),
                                                         ((captures / "multirank/dlrm_v100_8rank/*",), 1, 8)), 1):
            done = subprocess.run([RUBATO, "explore", *map(str, capture), "--per", "kernel", "--slack", "1", "--db", "r.db"], cwd=self.folder, capture_output=True)
            run = json.loads(self.run_program("query", "--db", "r.db", "--json", f"SELECT * FROM v_runs WHERE run_id = {number}").stdout)[0]
            plan = json.loads(self.run_program("query", "--db", "r.db", "--json", f"SELECT * FROM v_plans WHERE run_id = {number}").stdout)[0]
            rows = json.loads(self.run_program("impact", "run.toml", "--db", "r.db", "--plan", str(number), "--json").stdout)["impact"]
            # 300e9 tokens on 64 GPUs, of which two share a replica's 1e6 tokens.
            iterations = 300e9 / (1e6 * 32)
            self.assertAlmostEqual(rows[0]["default"] / (iterations * run["default_time_s"] / steps / 3600), 1, places=9)
            self.assertAlmostEqual(rows[1]["default"] / (iterations * run["default_energy_j"] / steps / gpus * 64 / 3.6e6), 1, places=9)
            self.assertAlmostEqual(rows[1]["change_pct"], plan["energy_change_pct"], places=9)
            self.assertAlmostEqual(rows[1]["change_low_pct"], plan["energy_change_low_pct"], places=9)
            self.assertAlmostEqual(rows[0]["change_high_pct"], plan["time_change_high_pct"], places=9)
            said = " ".join(self.run_program("impact", "run.toml", "--db", "r.db", "--plan", str(number)).stdout.split())
            self.assertEqual(done.returncode, 0 if plan["in_time"] else 1)  # late or not with its switches
            late = "" if plan["in_time"] else ", late"
            self.assertIn(f"plan {number} per kernel (relaxed_waste, slack 1 %), switches counted{late} The training run takes ", said)
            self.assertIn(f"What was captured is taken as {steps} iteration", said)
        told = self.run_program("impact", SOURCE / "docs/examples/training-run.toml", "--db", "r.db", "--plan", "2", status=3).stderr
        self.assertIn("capture run 2 does not say what it trains; expected tokens_per_iteration and gpus_per_replica", told)
        told = self.run_program("impact", "run.toml", "--db", "r.db", "--plan", "9", status=2).stderr
        self.assertIn("there is no plan 9 with clocks", told)

    def test_impact_counts_hosts_once(self):
        """The file of inputs says what hosts draw: energies of the boards are those without --host-power."""
        inputs = (SOURCE / "docs/examples/training-run.toml").read_text()
        (self.folder / "run.toml").write_text(inputs + 'tokens_per_iteration = {value = 40960, source = "a"}\ngpus_per_replica = {value = 1, source = "b"}\n')
        captured = ("--gpu", "a100-sxm4-80gb", SOURCE / "tests/captures/traces/kineto_a100_ddp2_resnet.json.gz")
        for work in (), captured:
            self.boards_are_the_same_with_hosts(work)

    def boards_are_the_same_with_hosts(self, work):
        boards = []
        for host in ("0", "100"):
            self.run_program("explore", *work, *FEW, "--slack", "20", "--host-power", host, "--db", "r.db")
            rows = json.loads(self.run_program("impact", "run.toml", "--db", "r.db", "--json").stdout)["impact"]
            boards.append(next(row["default"] for row in rows if row["quantity"] == "energy of the boards"))
        self.assertAlmostEqual(boards[0] / boards[1], 1.0, places=9)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
