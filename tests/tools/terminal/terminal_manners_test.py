#!/usr/bin/env python3
"""What a user of a shell expects: pipes, standard input, folders made, percentages, --quiet, help, and files that are told.

Usage: terminal_manners_test.py RUBATO SOURCE_DIR
"""
import csv
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
import unittest

from program_case import FEW, PIPELINE, RUBATO, SOURCE, STAGES, ProgramCase, cpu_s


class Manners(ProgramCase):
    def test_a_reader_that_has_seen_enough_ends_nothing(self):
        # More than a pipe holds, to a reader of one line; what was asked for beside it is done all the same.
        command = f"{RUBATO} explore --list kernels --json --db r.db | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stdout, "{\n0\n")
        self.assertEqual(done.stderr, "stored as run 1 in r.db\n")
        self.assertEqual(self.run_program("query", "--db", "r.db", "--csv", "SELECT count(*) AS n FROM runs").stdout, "n\n1\n")

    def test_a_reader_of_both_streams_ends_nothing(self):
        # Status 0, or that of the error, though nobody reads notes and errors any more.
        for command, status in ((f"explore {' '.join(FEW)} --db r.db", 0), (f"explore {SOURCE}/docs/examples/run.pt.trace.json.gz {' '.join(FEW)}", 0),
                                ("trace convert gpt3-xl t.csv", 0), ("explore --slack 1e308", 2)):
            subprocess.run(["bash", "-c", f"exec 3> >(true); sleep 0.2; {RUBATO} {command} >&3 2>&3; echo $? > status"], cwd=self.folder)
            self.assertEqual((self.folder / "status").read_text(), f"{status}\n", command)

    def test_a_full_disk_is_still_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([RUBATO, "explore", *FEW], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("No space left", done.stderr)

    def test_a_file_says_its_form_and_holds_what_would_be_printed(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        query = ("query", "--db", "r.db", "SELECT run_id, gpu FROM runs")
        for command in (("gpus",), ("pipeline", "front", *PIPELINE), query):
            for extension, option in ((".csv", "--csv"), (".json", "--json"), (".jsonl", "--json-lines")):
                done = self.run_program(*command, "-o", f"new/x{extension}")
                self.assertEqual(done.stdout, "")
                self.assertIn(f"wrote new/x{extension}\n", done.stderr)
                self.assertEqual((self.folder / f"new/x{extension}").read_text(), self.run_program(*command, option).stdout, (command, extension))

    def test_programs_read_one_document(self):
        """JSON, an object a line, or rows of one width: no words between."""
        capture = SOURCE / "docs/examples/run.pt.trace.json.gz"
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        for command in (("explore", *FEW), ("explore", capture, *FEW), ("replay", capture), ("replay", capture, "--per-kernel"), ("trace", "show", "gpt3-xl"),
                        ("trace", "scale", "gpt3-small", "--tp", "1,2", "--no-plans"), ("latency-scan", "gpt3-xl", "--latencies-us", "10"),
                        ("transfer", "--batches", "1", "--db", "r.db"), ("suggest", "gpt3-xl"), ("gpus",),
                        ("validate", SOURCE / "docs/examples/a100-sweep.csv", "--gpu", "a100-sxm4-80gb"),
                        ("explore", *STAGES), ("pipeline", "compare", *PIPELINE), ("pipeline", "straggle", *PIPELINE)):
            json.loads(self.run_program(*command, "--json").stdout)
            rows = [json.loads(line) for line in self.run_program(*command, "--json-lines").stdout.splitlines()]
            table = list(csv.reader(self.run_program(*command, "--csv").stdout.splitlines()))
            self.assertEqual({tuple(row) for row in rows}, {tuple(table[0])}, command)
            self.assertEqual({len(row) for row in table}, {len(table[0])}, command)
            self.assertEqual(len(rows), len(table) - 1, command)

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
        self.run_program("explore", *FEW, "--odds", "0", "--db", "made/for/r.db", "--timeline", "also/made/t.json")
        told = self.run_program("report", "--db", "made/for/r.db", "-o", "pages/r.html").stderr
        self.assertIn("wrote pages/r.html", told)
        for path in ("made/for/r.db", "also/made/t.json", "pages/r.html"):
            self.assertTrue((self.folder / path).stat().st_size > 1000, path)

    def test_what_is_written_is_told(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        capture, pipeline = SOURCE / "docs/examples/run.pt.trace.json.gz", ("explore", *STAGES)
        for arguments, path in ((("explore", capture, *FEW, "--timeline", "c.json"), "c.json"), (("replay", capture, "--timeline", "y.json"), "y.json"),
                                ((*pipeline, "--timeline", "g.svg", "--plan-file", "made/p.json"), "made/p.json"), ((*pipeline, "--timeline", "g.html"), "g.html"),
                                ((*pipeline, "--timeline", "g.json", "--plan-file", "z"), "z"), (("trace", "gen", "gpt3-xl", "-o", "n.json"), "n.json"),
                                (("trace", "convert", "gpt3-xl", "t.csv"), "t.csv"), (("export", "--db", "r.db", "-o", "p.json"), "p.json"),
                                (("export", "--db", "r.db", "--plan", "latest", "-o", "plan.json"), "plan.json"),
                                (("explore", *FEW, "--timeline", "l.json"), "l.json"), (("transfer", "--db", "r.db", "--batches", "8", "--page", "t.html"), "t.html"),
                                (("latency-scan", "--latencies-us", "10,100", "--page", "s.html"), "s.html")):
            self.assertIn(f"wrote {path}\n", self.run_program(*arguments).stderr)

    def test_a_name_says_the_form(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        self.run_program("export", "--db", "r.db", "-o", "p.json")
        self.assertEqual(len(json.loads((self.folder / "p.json").read_text())), 1)
        self.run_program("export", "--db", "r.db", "-o", "p.jsonl")
        self.assertEqual(len([json.loads(line) for line in (self.folder / "p.jsonl").read_text().splitlines()]), 1)
        self.run_program("export", "--db", "r.db", "-o", "p.csv")
        self.assertTrue((self.folder / "p.csv").read_text().startswith("kind,run_id,plan_id,"))
        self.assertIn("--csv does nothing with --plan", self.run_program("export", "--db", "r.db", "--plan", "latest", "--csv", status=2).stderr)
        self.assertIn("expected a name that ends in .html",
                      self.run_program("latency-scan", "--latencies-us", "10", "--page", "s.png", status=2).stderr)
        self.run_program("export", "--db", "r.db", "-o", "p.json", "--csv")  # an option outweighs a name
        self.assertTrue((self.folder / "p.json").read_text().startswith("kind,run_id,plan_id,"))

    def test_percentages(self):
        with_sign, without = (json.loads(self.run_program("explore", *FEW, "--slack", slack, "--json").stdout) for slack in ("5 %", "5"))
        self.assertEqual(with_sign["plans"][1]["energy_j"], without["plans"][1]["energy_j"])
        self.assertIn("--power-limit is '5%'; expected a number", self.run_program("explore", "--power-limit", "5%", status=2).stderr)

    def test_the_first_thing_wrong_is_named(self):
        self.assertIn("--goal 'energi' is not known; did you mean 'energy'?", self.run_program("explore", "--goal", "energi", "--slack", "5", status=2).stderr)
        self.assertIn("--batch is 99999999999999999999; expected a whole number from 0 to 18446744073709551615",
                      self.run_program("trace", "gen", "gpt3-xl", "--batch", "9" * 20, "-o", "-", status=2).stderr)
        (self.folder / "file").write_text("")
        self.assertIn("file/t.csv: cannot make its folder: Not a directory", self.run_program("trace", "convert", "gpt3-xl", "file/t.csv", status=4).stderr)

    def test_intervals_that_meet_are_no_saving_yet(self):
        rows = [f"{pair},{arm},10,1.0,{energy}" for pair, plan in ((0, 800), (1, 1000)) for arm, energy in (("default", 1000), ("plan", plan))]
        (self.folder / "ab.csv").write_text("pair,arm,steps,time_s,energy_j\n" + "\n".join(rows) + "\n")
        told = self.run_program("verify", "--plan", SOURCE / "docs/examples/plan.json", "--measured", "ab.csv", "--db", "r.db", status=1).stdout
        self.assertIn("Undecided: ", told)
        self.assertIn(" undecided\n", told)
        self.assertNotIn("The promised saving came", told)
        self.assertIn("undecided", self.run_program("query", "--db", "r.db", "SELECT energy_verdict FROM v_verified").stdout)

    def test_nothing_is_said_of_one_pipeline(self):
        for command in ("describe", "front"):
            self.assertNotIn("times as much", self.run_program("pipeline", command, *PIPELINE).stdout)
            said = " ".join(self.run_program("pipeline", command, *PIPELINE, "--data-parallel", "2").stdout.split())
            self.assertIn("(tensor x data parallel 1 x 2) use 2 times as much", said)

    def test_quiet(self):
        capture = SOURCE / "docs/examples/run.pt.trace.json.gz"
        loud = self.run_program("explore", capture, *FEW)
        quiet = self.run_program("explore", capture, *FEW, "--quiet")
        self.assertIn("note: ", loud.stderr)
        self.assertEqual((quiet.stdout, quiet.stderr), (loud.stdout, ""))
        self.assertIn("error: --slack is 1e+308", self.run_program("explore", "--quiet", "--slack", "1e308", status=2).stderr)
        self.assertEqual(self.run_program("--quiet", "explore", capture, *FEW).stderr, "")
        self.assertIn("--quiet", self.run_program("pipeline", "front", "--help").stdout)

    def on_terminal(self, *arguments, columns, status=0, **environment):
        """Standard output and standard error as a terminal of so many columns shows them: a line of progress is gone at the end."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        tty.setraw(its)
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        with subprocess.Popen([RUBATO, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=its, stderr=its,
                              env={**env, "TERM": "xterm", **environment}) as process:
            def end():  # a terminal that is closed may lose what was just written: we write last, and close after
                process.wait()
                os.write(its, b"\0")
            threading.Thread(target=end).start()
            shown = b""
            while not shown.endswith(b"\0"):
                shown += os.read(ours, 65536)
        os.close(its)
        os.close(ours)
        self.assertEqual(process.returncode, status, shown)
        return re.sub(r"[^\n]*\r\x1b\[K", "", shown[:-1].decode())

    def test_inks_are_not_shown_as_text(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        for command in (("explore",), ("reproduce", "steps"), ("reproduce", "kareus2026"), ("pipeline", "compare", *PIPELINE), ("show", "--db", "r.db"),
                        ("gpus",), ("trace", "show", "gpt3-xl"), ("verify", "--plan", SOURCE / "docs/examples/plan.json", "--measured", SOURCE / "docs/examples/ab.csv")):
            shown = self.on_terminal(*command, columns=100)
            self.assertIn("\x1b[1m", shown, command)
            self.assertNotIn("\\x1b", shown, command)
            words = re.sub(r"\x1b\[[0-9;]*[mK]", "", shown)
            self.assertLessEqual(max(len(line) for line in words.split("\n") if "nvidia-smi" not in line), 100, command)

    def test_tables_fit_the_terminal(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        question = ("query", "--db", "r.db", "SELECT plan_id, granularity, goal, status, work, gpu, time_s, energy_j, energy_change_pct FROM v_plans")
        piped = self.run_program(*question).stdout  # a pipe gets every column
        self.assertEqual(self.run_program(*question, "--wide").stdout, piped)
        for columns in (40, 60, 80):  # SELECT is the user's choice: a block of lines per row
            shown = self.on_terminal(*question, columns=columns, NO_COLOR="1")
            self.assertEqual([line.split()[0] for line in shown.split("\n\n")[0].splitlines()], piped.split("\n")[0].split())
        for columns in (40, 60, 80):
            shown = self.on_terminal("explore", *FEW, columns=columns, NO_COLOR="1")
            table, told = shown[shown.rindex("\none clock for "):].split("\n(left out: ")
            self.assertLessEqual(max(map(len, table.splitlines())), columns)
            self.assertRegex(table, r"^\none clock for .* energy %")
            self.assertRegex(told, r"(?s)^.*switches/s.*--wide shows all\)\n")
        self.assertEqual(self.on_terminal(*question, "--wide", columns=40, NO_COLOR="1"), piped)
        self.assertEqual(self.on_terminal(*question, columns=40, NO_COLOR="1", COLUMNS="400"), piped)

    def test_lines_below_tables_are_wrapped_and_changes_outlast_joules(self):
        for gpu, slack, columns in (("rtx-3080-ti", "0", 100), ("a100-sxm4-80gb", "2", 100)):
            shown = self.on_terminal("explore", "--gpu", gpu, "--slack", slack, columns=columns, NO_COLOR="1")
            table = shown[shown.index("\none clock for "):]
            self.assertLessEqual(max(map(len, table.splitlines())), columns, table)
            self.assertIn("  energy %  ", table)

    def test_transfer_names_the_plan_it_takes(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        self.run_program("trace", "gen", "gpt3-xl", "--batch", "20", "-o", "t.json")
        self.run_program("explore", "t.json", *FEW, "--odds", "0", "--db", "r.db")
        own = self.run_program("transfer", "gpt3-xl", "--db", "r.db", "--json")  # the trace's own, not the newest
        row = json.loads(own.stdout)[0]
        self.assertEqual(row["plan_trace"], row["trace"])
        self.assertIn(f"note: plan {row['plan_id']} (run, global, strict_waste), found on {row['trace']}, is the one taken", own.stderr)
        newest = self.run_program("transfer", "--batches", "10", "--db", "r.db")
        self.assertRegex(newest.stdout, r"^plan \d+ \(run, global, strict_waste\), found on gpt3-xl-b20-")

    def test_transfer_of_a_capture_takes_the_plan_of_a_captured_run(self):
        captures = SOURCE / "tests/captures/traces"
        named = {"a": (captures / "kineto_a100_ddp2_resnet.json.gz", "--gpu", "a100-sxm4-80gb"), "b": (captures / "kineto_h100_qwen_fwd.json.gz", "--gpu", "a100-sxm4-80gb")}
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        told = self.run_program("transfer", *named["a"], "--db", "r.db", status=2).stderr
        self.assertIn("the database has no captured run whose plan could be played", told)
        for capture in named.values():
            self.run_program("explore", *capture, *FEW, "--slack", "10,20", "--db", "r.db")
        plans = [row["plan_id"] for row in json.loads(self.run_program(
            "query", "--db", "r.db", "--json", "SELECT plan_id FROM v_plans WHERE kind = 'capture' ORDER BY plan_id").stdout)]
        own = self.run_program("transfer", *named["a"], "--db", "r.db", "--json")  # its own, not the newest; of the least slack
        self.assertIn(f"note: plan {plans[0]} (run, in at most 10 % more time), found on ", own.stderr)
        row = json.loads(own.stdout)[0]
        self.assertEqual((row["plan_id"], row["plan_captures"]), (plans[0], str(named["a"][0])))
        self.assertAlmostEqual(row["energy_change_pct"], row["own_energy_change_pct"], places=9)
        (self.folder / "other.json.gz").write_bytes(named["a"][0].read_bytes())
        newest = self.run_program("transfer", "other.json.gz", *named["a"][1:], "--db", "r.db")
        self.assertTrue(newest.stdout.startswith(f"plan {plans[2]} (run, in at most 10 % more time), found on\n"), newest.stdout)
        self.assertIn("There the plan changes energy by ", newest.stdout)
        told = self.run_program("transfer", named["a"][0], "--db", "r.db", "--plan", "1", status=2).stderr
        self.assertIn("kineto_a100_ddp2_resnet.json.gz: is a capture; --plan 1 is of traces\n  hint: --plan N takes one of a captured run", told)
        told = self.run_program("transfer", named["a"][0], "--plan", "1", status=2).stderr
        self.assertIn("--db is missing", told)

    def test_colours_are_for_terminals(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        question = ("query", "--db", "r.db", "SELECT plan_id, energy_change_pct, '\x1b[31mred' AS name FROM v_plans")
        shown = self.on_terminal(*question, columns=200)
        self.assertIn("\x1b[1mplan_id\x1b[0m", shown)
        self.assertRegex(shown, r"\x1b\[36m-\d")  # less energy
        self.assertNotIn("\x1b[31m", shown)  # of a name, not ours
        plain = self.run_program(*question).stdout
        self.assertEqual(re.sub("\x1b\\[[0-9]*m", "", shown), plain)
        for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(self.on_terminal(*question, columns=200, **variable), plain)

    def test_warnings_outlast_details(self):
        shown = self.on_terminal("explore", SOURCE / "docs/examples/run.pt.trace.json.gz", "--slack", "2", columns=80, NO_COLOR="1")
        table = next(line for line in shown.splitlines() if line.startswith("one clock for "))
        self.assertTrue(all(title in table for title in ("clocks", "time %", "energy %", "set with")), shown)
        self.assertRegex(shown, r"\nkernel [^(\n]*  cannot be set\n")
        self.assertIn("gap %", re.search(r"(?s)\(left out: .*?\)", shown).group())

    def test_names_cut_are_told(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        question = ("query", "--db", "r.db", f"SELECT '{'k' * 150}' AS kernel, 1 AS one")
        shown = self.on_terminal(*question, columns=400, NO_COLOR="1")
        self.assertIn("(shortened: kernel; --wide shows all)", shown)
        self.assertNotIn("k" * 101, shown)
        for shown in (self.run_program(*question).stdout, self.on_terminal(*question, "--wide", columns=40, NO_COLOR="1")):
            self.assertIn("k" * 150, shown)
            self.assertNotIn("--wide", shown)

    def test_all_tables_of_a_command_fit(self):
        capture = SOURCE / "docs/examples/run.pt.trace.json.gz"
        for command in (("replay", capture, "--per-kernel"), ("trace", "import", capture), ("trace", "show", "gpt3-xl")):
            shown = self.on_terminal(*command, columns=32)
            plain = re.sub("\x1b\\[[0-9]*m", "", shown)
            self.assertNotEqual(plain, shown)
            self.assertIn("--wide shows all)", plain)
            rows = [line for line in plain.splitlines() if re.search(r"\S {2,}\S", line) and not line.startswith("(")]
            self.assertLessEqual(max(map(len, rows)), 32, rows)

    def test_colours_of_data_do_not_pass(self):
        shown = self.on_terminal("trace", "show", "\x1b[1mbold\x1b[0m", columns=80, status=2)
        self.assertNotIn("\x1b[1m", shown)
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        shown = self.on_terminal("query", "--db", "r.db", "--csv", "SELECT '\x1b[1mbold\x1b[0m' AS name", columns=80)
        self.assertEqual(shown, "name\n\\x1b[1mbold\\x1b[0m\n")

    def test_standard_input_is_called_so(self):
        capture = gzip.decompress((SOURCE / "docs/examples/run.pt.trace.json.gz").read_bytes()).decode()
        for arguments in (("explore", "-", *FEW), ("explore", "-", *FEW, "--json"), ("trace", "import", "-"), ("explore", "-", *FEW, "--db", "r.db")):
            told = self.run_program(*arguments, input=capture)
            self.assertIn("standard input", told.stdout)
            self.assertNotIn("rubato-", told.stdout + told.stderr)
            self.assertNotIn("standard-input", told.stdout + told.stderr)
        self.run_program("trace", "convert", "gpt3-xl", "t.json")
        told = self.run_program("explore", "-", *FEW, input=(self.folder / "t.json").read_text())
        self.assertTrue(told.stdout.startswith("Planned   standard input on "), told.stdout)
        told = self.run_program("explore", "-", *FEW, "--json", input=(self.folder / "t.json").read_text())
        self.assertTrue(json.loads(told.stdout)["answer"][0]["planned"].startswith("standard input on "), told.stdout[:900])
        self.assertIn("standard input", self.run_program("query", "--db", "r.db", "SELECT work FROM v_runs").stdout)
        self.assertIn("error: standard input:1:", self.run_program("trace", "show", "-", input="{", status=3).stderr)

    def test_standard_input_on_pages(self):
        capture = gzip.decompress((SOURCE / "docs/examples/run.pt.trace.json.gz").read_bytes()).decode()
        self.run_program("replay", "-", "--page", "r.html", "--timeline", "r.json", input=capture)
        for name in ("r.html", "r.json"):
            text = (self.folder / name).read_text()
            self.assertNotIn("standard-input", text)
            self.assertNotRegex(text, r"rubato-\w{6}/")
        self.assertIn("standard input", (self.folder / "r.html").read_text())

    def test_cut_short(self):
        """Ctrl-C: what was done is printed, one line says how much of all it is, the status is 130."""
        batches = ",".join(map(str, range(1, 400)))
        for arguments, what in (
                (("trace", "scale", "gpt3-13b", "--tp", "1..8", "--pp", "1..16", "--dp", "1..64", "--seq", "2048", "--optimizer"), "combinations"),
                (("transfer", "--plan", SOURCE / "docs/examples/spaan2026-table1.csv", "--batches", batches, "--tp", "1,2,4,8", "--collectives", "none"), "traces")):
            program = subprocess.Popen([RUBATO, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while program.poll() is None and cpu_s(program) < 0.5:  # it has begun to give parts
                time.sleep(0.01)
            program.send_signal(signal.SIGINT)
            shown, told = program.communicate()
            self.assertEqual(program.returncode, 130, told)
            done = re.search(rf"^interrupted: (\d+) of (\d+) {what} done\n\Z", told, re.MULTILINE)
            self.assertTrue(done, told)
            self.assertLess(int(done[1]), int(done[2]))
            self.assertTrue(shown)

    def test_whole_numbers_have_no_decimals(self):
        self.run_program("explore", *FEW, "--odds", "0", "--db", "r.db")
        shown = self.run_program("query", "--db", "r.db", "SELECT power_limit_w, 0.5 AS half FROM runs").stdout
        self.assertEqual(shown.split("\n")[1].split(), ["350", "0.5000"])

    def test_help(self):
        for path in (("explore",), ("pipeline", "front")):
            self.assertEqual(self.run_program("help", *path).stdout, self.run_program(*path, "--help").stdout)
        self.assertEqual(self.run_program("help", "help").stdout, self.run_program("--help").stdout)
        self.assertEqual(self.run_program("help").stdout, self.run_program("--help").stdout)
        self.assertIn("did you mean 'explore'?", self.run_program("help", "explor", status=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
