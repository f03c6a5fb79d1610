"""Pages of captured runs, and of experiments with them."""
import json
import re

from page_checks import EXAMPLES, SOURCE, count, percents, report, run, sound, text


def captured_experiment_page(page, folder):
    (folder / "captured.toml").write_text(f"""schema = 1
name = "captured"
[axes]
gpu = "a100-sxm4-80gb"
capture = "{EXAMPLES / 'run.pt.trace.json.gz'}"
clocks = "coarse"
granularity = ["iteration", "kernel"]
slack_pct = 1
switch_latency_us = [1000, 22000]
""")
    run("sweep", "run", folder / "captured.toml", "--db", folder / "cs.db")
    sound(page, report(folder, "cs.db", "captured-experiment.html", "--experiment", "latest"))
    for expected, selector in ((4, ".unit-row"), (2, "path.front"), (2, "path.latency"), (0, ".cell")):
        assert count(page, selector) == expected, (selector, count(page, selector))


def captured_page(page, folder):
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--slack", "5", "--odds", "0", "--granularity", "iteration,kernel", "--db", folder / "c.db")
    sound(page, report(folder, "c.db", "captured.html"))
    assert text(page, "#answer b") == "memory 1593 MHz, core 1305 MHz"
    assert text(page, "#set-line code").startswith("sudo nvidia-smi -lgc 1305,1305 ")
    for expected, selector in ((1, ".bound"), (2, ".plan"), (40, "#kernels .row")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    # The slider's single clock is the plan's.
    assert "memory 1593 MHz, core 1305 MHz" in text(page, "#slider-answer"), text(page, "#slider-answer")
    # The bound that is said holds for every plan of the run that is within that time.
    bound = percents(text(page, "#slider-answer"))[2]
    plans = json.loads(run("explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--slack", "5", "--odds", "0", "--json"))["plans"]
    assert bound >= max(-p["energy_change_pct"] for p in plans) - 0.06, (bound, plans)
    assert text(page, "#bound-note").startswith("No plan lies below the line. It takes each launch "), text(page, "#bound-note")
    page.evaluate("(() => { const s = document.getElementById('slack'); s.value = 0; s.dispatchEvent(new Event('input')); })()")
    assert percents(text(page, "#slider-answer"))[1] <= 0.0, text(page, "#slider-answer")


def captured_default(page, folder):
    """Where no single clock saves, as the terminal says too, the headline is the plan that does; clocks left to the driver are drawn as that."""
    capture = SOURCE / "tests/captures/traces/kineto_h100_qwen_fwd.json.gz"
    said = run("explore", capture, "--slack", "1.5", "--granularity", "iteration,kernel,segment", "--odds", "0", "--db", folder / "default.db")
    assert re.search(r"^iteration .*  0\.0 +0\.0 ", said, re.MULTILINE), said
    sound(page, report(folder, "default.db", "default.html"))
    shown, told = text(page, "#answer"), next(line for line in said.splitlines() if line.startswith("Saves "))
    assert shown.startswith("one clock per segment, 2 clocks in at most 1.5 % more time: energy -"), shown
    assert abs(percents(shown)[1] + percents(told)[0]) < 0.06 and count(page, "#set-line code") == 0, (shown, told)
    assert "No single clock saves energy in that time." in text(page, "#finer"), text(page, "#finer")
    clocks = page.evaluate("[...document.querySelectorAll('#kernels .tick text')].map((e) => e.textContent)")
    drawn = page.evaluate("[...document.querySelectorAll('#kernels-table tbody tr')].map((row) => row.cells[2].textContent)")
    assert ("auto" in clocks) == any(clock.endswith("/auto") for clock in drawn) and "0" not in clocks, (clocks, drawn)


def captured_limited(page, folder):
    """Launches that reach the power limit together draw less than alone: no line of launches alone bounds them."""
    capture = SOURCE / "tests/captures/traces/kineto_a100_ddp2_resnet.json.gz"
    options = ("--gpu", "a100-sxm4-80gb", "--slack", "5", "--odds", "0", "--granularity", "iteration,pass", "--db", folder / "limited.db")
    run("explore", capture, *options, "--power-limit", "100")
    sound(page, report(folder, "limited.db", "limited.html"))
    assert text(page, "#bound-note").startswith("There is no line below which "), text(page, "#bound-note")
    assert count(page, ".bound") == 0 and "No plan of any kind" not in text(page, "#slider-answer")


def captured_slider(page, folder):
    """The slider finds the stored plan that saves most in the time, and the clocks of the kernels follow it."""
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--odds", "0", "--granularity", "iteration,kernel,segment", "--db", folder / "cl.db")
    sound(page, report(folder, "cl.db", "captured-slider.html"))

    def rows(sql):
        return json.loads(run("query", "--db", folder / "cl.db", "--json", sql))

    plans = rows("SELECT plan_id, granularity, time_change_pct AS time, energy_change_pct AS energy FROM v_plans WHERE energy_j IS NOT NULL")
    shown = []
    for slack in (6, 3, 1.5, 0.5, 0):
        page.evaluate(f"(() => {{ const s = document.getElementById('slack'); s.value = {slack}; s.dispatchEvent(new Event('input')); }})()")
        best = min((p for p in plans if p["time"] <= slack + 1e-7), key=lambda p: p["energy"])
        energy, time = percents(text(page, "#slider-plan").split(":", 2)[2])
        assert abs(energy - best["energy"]) < 0.006 and abs(time - best["time"]) < 0.006, (slack, best, text(page, "#slider-plan"))
        chosen = int(page.evaluate("document.getElementById('plan').value"))
        assert abs(next(p["energy"] for p in plans if p["plan_id"] == chosen) - best["energy"]) < 1e-9, (chosen, best)
        clocks = {row["clock"] for row in rows(f"SELECT DISTINCT clock FROM v_kernel_clocks WHERE plan_id = {chosen}")}
        drawn = set(page.evaluate("[...document.querySelectorAll('#kernels-table tbody tr')].map((row) => row.cells[2].textContent)"))
        assert drawn == clocks, (slack, drawn, clocks)
        assert count(page, "#front .plan rect[stroke='var(--ink)']") == 1
        shown.append(chosen)
    assert len(set(shown)) > 2, shown


def other_spec(page, folder):
    """A file that takes the name of a shipped spec: its clocks are not the shipped ones, and its errors are those that it says."""
    spec = json.loads((SOURCE / "models" / "data" / "a100-sxm4-80gb.json").read_text())
    (folder / "own.json").write_text(json.dumps(spec).replace('"1593"', '"fast"'))
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--gpu", folder / "own.json", "--slack", "5", "--odds", "0", "--granularity", "iteration", "--db", folder / "own.db")
    sound(page, report(folder, "own.db", "own.html"))
    assert re.search(r"Model error[\d.]+ % at most", text(page, "#trust")), text(page, "#trust")
    assert text(page, "#set-line code").startswith("sudo nvidia-smi -lgc "), text(page, "#set-line code")


CHECKS = (captured_experiment_page, captured_page, captured_default, captured_limited, captured_slider, other_spec)
