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
granularity = ["run", "kernel"]
slack_pct = 1
switch_latency_us = [1000, 22000]
""")
    run("experiment", "run", folder / "captured.toml", "--db", folder / "cs.db")
    sound(page, report(folder, "cs.db", "captured-experiment.html", "--experiment", "latest"))
    for expected, selector in ((4, "#units-table tbody tr"), (2, "#fronts path.front"), (2, "#latency path.front"), (0, ".cell")):
        assert count(page, selector) == expected, (selector, count(page, selector))


def captured_page(page, folder):
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--slack", "5", "--odds", "0", "--per", "run,kernel", "--db", folder / "c.db")
    sound(page, report(folder, "c.db", "captured.html"))
    assert text(page, "#line-set").startswith("memory 1593, core 1305 MHz"), text(page, "#line-set")
    assert text(page, "#line-set code").startswith("sudo nvidia-smi -lgc 1305,1305"), text(page, "#line-set code")
    for expected, selector in ((1, "#front .bound"), (2, "#front .plan")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    # No plan of the run lies below the bound that is drawn at its time.
    tables = page.evaluate("JSON.parse(document.getElementById('data').textContent).tables")
    plans, front = ([dict(zip(tables[name]["columns"], row)) for row in tables[name]["rows"]] for name in ("plans", "front"))
    for plan in plans:
        later = [point["bound_change_pct"] for point in front if point["time_s"] >= plan["time_s"]]
        assert not later or plan["energy_change_pct"] >= max(later) - 0.06, (plan, later)


def captured_default(page, folder):
    """Where no single clock saves, as the terminal says too, the headline is the plan that does; clocks left to the driver are drawn as that."""
    capture = SOURCE / "tests/captures/traces/kineto_h100_qwen_fwd.json.gz"
    said = run("explore", capture, "--slack", "1.5", "--per", "run,kernel,segment", "--odds", "0", "--clocks", "coarse", "--db", folder / "default.db")
    assert re.search(r"^run .*  0\.0 +0\.0 ", said, re.MULTILINE), said
    sound(page, report(folder, "default.db", "default.html"))
    told = next(line for line in said.splitlines() if line.startswith("Saves "))
    assert abs(float(re.match(r"([\d.]+) % less energy in at most 1.5 % more time", text(page, "#title"))[1]) - percents(told)[0]) < 0.06, (text(page, "#title"), told)
    assert not any("nvidia-smi" in line for line in page.evaluate("[...document.querySelectorAll('#line-set code')].map((e) => e.textContent)"))
    assert "segment" in text(page, "#line-set")


def captured_limited(page, folder):
    """Launches that reach the power limit together draw less than alone: the line that bounds plans takes that in."""
    capture = SOURCE / "tests/captures/traces/kineto_a100_ddp2_resnet.json.gz"
    options = ("--gpu", "a100-sxm4-80gb", "--slack", "5", "--odds", "0", "--per", "run,pass", "--db", folder / "limited.db")
    run("explore", capture, *options, "--power-limit", "100")
    sound(page, report(folder, "limited.db", "limited.html"))
    assert count(page, ".bound") > 0


def captured_slider(page, folder):
    """The slider finds the stored plan that saves most in the time, and the clocks of the kernels follow it."""
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--odds", "0", "--per", "run,kernel,segment", "--db", folder / "cl.db")
    sound(page, report(folder, "cl.db", "captured-slider.html"))

    def rows(sql):
        return json.loads(run("query", "--db", folder / "cl.db", "--json", sql))

    plans = rows("SELECT plan_id, granularity, slack_pct, time_change_pct AS time, energy_change_pct AS energy FROM v_plans WHERE energy_j IS NOT NULL AND in_time")
    shown = []
    for per in ("run", "kernel", "segment"):
        for slack in (6, 3, 1.5, 0.5, 0):
            page.evaluate(f"(() => {{ const g = document.querySelector('#front select'); g.value = '{per}'; g.dispatchEvent(new Event('change'));"
                          f" const s = document.getElementById('slack'); s.value = {slack}; s.dispatchEvent(new Event('input')); }})()")
            fits = [p for p in plans if p["granularity"] == per and p["time"] <= slack + 1e-7 and p["slack_pct"] <= slack + 1e-7]
            if count(page, "#front .chosen circle") == 0:
                assert all(p["energy"] > -0.005 for p in fits), (per, slack, fits)
                continue
            energy, time = percents(page.evaluate("document.querySelector('#front .chosen circle title').textContent"))
            assert time <= slack + 0.006 and all(energy <= p["energy"] + 0.006 for p in fits), (per, slack, energy, fits)
            same = [p for p in fits if abs(p["energy"] - energy) < 0.006]
            if same:
                clocks = {row["clock"] for row in rows(f"SELECT DISTINCT clock FROM v_kernel_clocks WHERE plan_id = {same[0]['plan_id']}")}
                drawn = set(page.evaluate("[...document.querySelectorAll('#kernels-table tbody tr')].map((row) => [...row.cells].map((c) => c.textContent).find((t) => t.includes('/') || t.endsWith(' clocks')))"))
                assert {c for c in drawn if c and "/" in c} <= clocks, (drawn, clocks)
                shown.append(same[0]["plan_id"])
    assert len(set(shown)) > 1, shown


def other_spec(page, folder):
    """A file that takes the name of a shipped spec: its clocks are not the shipped ones, and its errors are those that it says."""
    spec = json.loads((SOURCE / "models" / "data" / "a100-sxm4-80gb.json").read_text())
    (folder / "own.json").write_text(json.dumps(spec).replace('"1593"', '"fast"'))
    run("explore", EXAMPLES / "run.pt.trace.json.gz", "--gpu", folder / "own.json", "--slack", "5", "--odds", "0", "--per", "run", "--db", folder / "own.db")
    sound(page, report(folder, "own.db", "own.html"))
    assert re.search(r"Model error[\d.]+ %, the largest", text(page, "#trust")), text(page, "#trust")
    assert text(page, "#line-set code").startswith("sudo nvidia-smi -lgc "), text(page, "#line-set code")


CHECKS = (captured_experiment_page, captured_page, captured_default, captured_limited, captured_slider, other_spec)
