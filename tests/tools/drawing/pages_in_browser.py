#!/usr/bin/env python3
"""Opens every kind of page in headless Chromium: it draws without a word on the console, at the widths of a desk and a telephone,
light and dark, and does what pages do: values, slider, highlighting, files, lines to copy.

Usage: pages_in_browser.py RUBATO SOURCE_DIR; exit status 77: skipped.
"""
import csv
import gzip
import json
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

import captured_pages
from page_checks import EXAMPLES, RUBATO, browser, count, percents, report, run, sound, text


def run_page(page, folder):
    run("explore", "gpt3-xl", "--granularity", "iteration,pass", "--odds", 0, "--db", folder / "s.db")
    sound(page, report(folder, "s.db", "set.html"))
    assert count(page, "#set-line code") == 1
    assert text(page, "#set-line code") == "sudo nvidia-smi -lgc 1890,1890 && sudo nvidia-smi -lmc 9251,9251   # back: sudo nvidia-smi -rgc && sudo nvidia-smi -rmc"
    # A plan per pass that is the one clock again is no finer answer.
    assert text(page, "#finer") == "" and count(page, "#play-line code") == 0 and " 1 clocks" not in text(page, "main"), text(page, "#finer")
    run("reproduce", "spaan2026", "--db", folder / "r.db")
    sound(page, report(folder, "r.db", "report.html"))
    for expected, selector in ((3, "path.front"), (8, ".published"), (46, "#kernels .row"), (66, "#grid .cell")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    slider(page)
    interactions(page)
    clear_label(page, folder / "report.html")


CROSSED = """(() => { const box = document.querySelector('#front .chosen text').getBoundingClientRect(), svg = document.querySelector('#front svg'), to = svg.getScreenCTM();
  const within = (x, y) => x > box.left && x < box.right && y > box.top && y < box.bottom;
  const lines = [...svg.querySelectorAll('line')].map((e) => e.getBoundingClientRect()).filter((b) => b.left < box.right && b.right > box.left && b.top < box.bottom && b.bottom > box.top);
  const curves = [...svg.querySelectorAll('path.front')].filter((e) => { for (let at = 0; at < e.getTotalLength(); ++at) { const p = e.getPointAtLength(at).matrixTransform(to); if (within(p.x, p.y)) return true; } return false; });
  return [lines.length, curves.length]; })()"""


def clear_label(page, path):
    """What the chosen point is worth stands where no line is, near it."""
    for width in (390, 1300):
        page.open(path, width=width)
        for grain in ("iteration", "pass", "kernel"):
            for slack in (0, 1, 3, 7, 12, 20):
                slide(page, grain, slack)
                assert page.evaluate(CROSSED) == [0, 0], (width, grain, slack, page.evaluate(CROSSED))


def slide(page, grain, slack):
    page.evaluate(f"(() => {{ const g = document.getElementById('grain'); g.value = '{grain}'; g.dispatchEvent(new Event('change'));"
                  f" const s = document.getElementById('slack'); s.value = {slack}; s.dispatchEvent(new Event('input')); }})()")
    energy, time = percents(text(page, "#slider-answer"))[:2]
    assert time <= slack + 0.006, (grain, slack, time)
    return energy


def slider(page):
    """It gives what the search gives, and the bars follow it."""
    for grain in ("iteration", "pass", "kernel"):
        for slack in (0, 5, 12):
            exact = json.loads(run("explore", "gpt3-xl", "--granularity", grain, "--slack", slack, "--odds", 0, "--json"))["plans"][-1]
            assert exact["granularity"] == grain
            # Of kernels the page counts time in bins: close to the best, and never more.
            beyond = slide(page, grain, slack) - exact["energy_change_pct"]
            assert -0.006 < beyond < (0.05 if grain == "kernel" else 0.006), (grain, slack, beyond)
            # The headline says what the slider does.
            assert slack == 0 or abs(percents(text(page, "#answer"))[0] - exact["energy_change_pct"]) < 0.11, text(page, "#answer")
    bars = "[...document.querySelectorAll('#kernels rect.mark')].map((e) => e.getAttribute('width')).join()"
    clocks = "[...document.querySelectorAll('#kernels-table tbody tr')].map((e) => e.cells[3].textContent).join()"
    seen = set()
    for slack in (0, 10, 20):
        slide(page, "kernel", slack)
        seen.add((page.evaluate(bars), page.evaluate(clocks)))
        # The kernels' savings add up to what the slider says.
        saved = page.evaluate("[...document.querySelectorAll('#kernels-table tbody tr')].map((e) => parseFloat(e.cells[7].textContent)).reduce((a, b) => a + b)")
        energy = percents(text(page, "#slider-answer"))[0]
        assert abs(saved / 1814.1 + energy / 100) < 2e-4, (slack, saved, energy)
    assert len(seen) == 3, "bars and clocks do not follow the slider"
    slide(page, "iteration", 10)
    assert text(page, "#set-line code") == text(page, "#slider-line code"), text(page, "#set-line code")
    assert text(page, "#slider-line code").startswith("sudo nvidia-smi -lgc "), text(page, "#slider-line code")


def host_power_page(page, folder):
    """The rest of the node is in what the slider says too, and the line that plans it again asks for it."""
    options = ("--granularity", "iteration", "--host-power", "200", "--slack", "5")
    run("explore", "gpt3-xl", *options, "--db", folder / "h.db")
    sound(page, report(folder, "h.db", "host.html"))
    exact = json.loads(run("explore", "gpt3-xl", *options, "--json"))["plans"][-1]
    assert abs(slide(page, "iteration", 5) - exact["energy_change_pct"]) < 0.006
    assert "200 W per GPU, the rest of the node" in text(page, "main")
    slide(page, "pass", 5)
    again = shlex.split(text(page, "#slider-line code").split("#")[0])
    assert again[:2] == ["rubato", "explore"] and float(again[again.index("--host-power") + 1]) == 200.0, again


def interactions(page):
    page.hover("#kernels .row:nth-of-type(12) rect.mark")
    name = text(page, "#kernels .row:nth-of-type(12) text")
    assert name in text(page, "#tip") and "energy" in text(page, "#tip"), text(page, "#tip")
    linked = page.evaluate("[...document.querySelectorAll('.linked')].map((e) => e.dataset.kernel)")
    assert len(linked) == 2 and set(linked) == {name}, (name, linked)  # bar and row of the table
    # One stop of the keyboard for a picture, arrows within.
    assert count(page, "#kernels .mark[tabindex='0']") == 1
    page.evaluate("document.querySelector('#kernels .mark').focus()")
    first = text(page, "#tip")
    page.press("ArrowDown")
    assert text(page, "#tip") != first and page.evaluate("document.querySelector('#tip').hidden") is False
    for button, kind in (("#front + .tools button", "svg"), ("#plans + .tools button", "csv")):
        page.evaluate(f"document.querySelector({json.dumps(button)}).click()")
        saved = page.download(kind)
        if kind == "svg":
            root = xml.fromstring(saved)
            assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10 and "var(" not in saved, saved[:300]
        else:
            lines = saved.splitlines()
            assert lines[0].startswith("Plan,Time (%),Energy (%)") and lines[1].startswith("default clocks,0.00,0.00"), lines[:2]
    csv_numbers(page)
    copying(page)


def csv_numbers(page):
    """Numbers lose their marks for thousands, lists of numbers stay lists, cut names are whole."""
    page.evaluate("""(() => { const made = document.createElement('div'); made.className = 'scroll'; made.id = 'made';
        made.innerHTML = '<table><thead><tr><th>a</th><th>b</th><th>c</th></tr></thead><tbody><tr><td>1,234.5 J</td><td>0,1,2</td><td data-full="whole name">whole…</td></tr>'
          + '<tr><td>+12 J</td><td>3</td><td>x</td></tr></tbody></table>';
        document.querySelector('main').append(made); })()""")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    page.evaluate("document.querySelector('#made + .tools button').click()")
    assert page.download("csv").splitlines() == ["a (J),b,c", '1234.5,"0,1,2",whole name', "12,3,x"]
    page.evaluate("(() => { const made = document.querySelector('#made'); made.nextElementSibling.remove(); made.remove(); })()")


def copying(page):
    click = "document.querySelector('#set-line button').click()"
    page.evaluate("addEventListener('copy', () => { window.copiedText = getSelection().toString(); })")
    # By the clipboard's interface, and by the older command where that is refused.
    for write in ("async (text) => { window.copiedText = text; }", "async () => { throw new Error('refused'); }"):
        page.evaluate(f"(() => {{ window.copiedText = null; Object.defineProperty(navigator, 'clipboard', {{value: {{writeText: {write}}}, configurable: true}}); {click}; }})()")
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert page.evaluate("window.copiedText") == text(page, "#set-line code"), write
        assert text(page, "#set-line button") == "Copied", write
    page.evaluate(f"(() => {{ document.execCommand = () => false; {click}; }})()")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert text(page, "#set-line button") != "Copied"


def missed_slack(page, folder):
    """A plan that is late once changes of clock are counted is no answer; lines to type are words to a shell."""
    db = folder / "it's $HOME.db"
    options = ("--granularity", "kernel", "--slack", "2", "--switching", "latency=20ms", "--power-limit", "300", "--db", db)
    run("explore", *options, "gpt3-xl", status=1)
    sound(page, report(folder, db.name, "missed.html"))
    assert text(page, ".answer").startswith("No plan that is in time"), text(page, ".answer")
    assert count(page, "#play-line code") == 0 and count(page, "#set-line code") == 0
    line = shlex.split(text(page, "#slider-line code"))
    assert line == "rubato explore gpt3-xl --gpu rtx-3080-ti --power-limit 300 --switching latency=20ms --granularity kernel --slack 2".split(), line
    run(*line[1:], status=1)
    quick = folder / "quick it's $HOME.db"
    run("explore", "--granularity", "pass", "--slack", "2", "--odds", 0, "--db", quick)
    sound(page, report(folder, quick.name, "quick.html"))
    line = shlex.split(text(page, "#play-line code"))
    assert line[line.index("--db") + 1] == str(quick), line
    run(*line[1:line.index("-o")], "-o", folder / "plan.json")


def without_a_plan(page, folder):
    run_status = subprocess.run([RUBATO, "explore", "gpt3-xl", "--goal", "time", "--budget", "1J", "--db", folder / "n.db"], capture_output=True)
    assert run_status.returncode == 1
    sound(page, report(folder, "n.db", "none.html"))
    assert "No plan does what was asked for" in text(page, ".answer")
    assert page.evaluate("document.getElementById('kernels').closest('section').hidden")


EXPERIMENT = """
schema = 1
name = "<script>alert(1)</script> & \\"co\\""
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = [4, 8, 16]
sequence = [512, 1024]
switch_stall_us = [0, 100]
clocks = "mem=5001,auto core=1470,1680,auto"
granularity = ["iteration", "pass", "kernel"]
[scenario."</script><b>bold"]
gpu = "rtx-3080-ti"
trace = "gpt3-xl"
goal = "time"
energy_budget_j = 1
"""


def experiment_page(page, folder):
    """12 settings of 3 units, and a scenario whose name must stay text."""
    (folder / "e.toml").write_text(EXPERIMENT)
    run("sweep", "run", folder / "e.toml", "--db", folder / "e.db")
    sound(page, report(folder, "e.db", "experiment.html", "--experiment", "latest"))
    assert text(page, "#title") == '<script>alert(1)</script> & "co"'
    assert "37 of 37 units" in text(page, "#subtitle") and "12 of 13 settings that save most" in text(page, "#kernels-note"), text(page, "#kernels-note")
    for expected, selector in ((6, ".panel"), (36, ".unit"), (6, "path.front"), (3, "path.latency"), (12 * 46, ".cell"), (37, ".unit-row"), (0, "b:not(#answer b)")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    # Settings are told apart by their names, which say nothing that the others imply.
    names = page.evaluate("[...document.querySelectorAll('#front-a option')].map((e) => e.textContent)")
    assert len(names) == len(set(names)) == 13 and "batch 16, sequence 512, switch stall 0 us" in names, names
    run("sweep", "run", EXAMPLES / "experiment.toml", "--db", folder / "ex.db")
    sound(page, report(folder, "ex.db", "two-gpus.html", "--experiment", "latest"))
    names = page.evaluate("[...document.querySelectorAll('#front-a option')].map((e) => e.textContent)")
    assert len(names) == len(set(names)) == 5 and "gpu rtx-3080-ti, batch 40, switch latency 0 us" in names, names


def late_experiment_page(page, folder):
    """The headline is the unit that top calls the best: of those that keep their slack with changes of clock counted."""
    (folder / "late.toml").write_text("""schema = 1
name = "late"
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = [4, 8]
sequence = 1024
granularity = ["iteration", "pass", "kernel"]
slack_pct = 1
""")
    db = folder / "late.db"
    run("sweep", "run", folder / "late.toml", "--db", db)
    sound(page, report(folder, db.name, "late.html", "--experiment", "latest"))
    units = json.loads(run("top", "--db", db, "--json"))
    assert not any("slack missed" in (unit["notes"] or "") for unit in units), units
    late = json.loads(run("query", "--db", db, "--json", "SELECT count(*) AS n FROM v_plans WHERE in_time = 0"))[0]["n"]
    assert late > 0
    kept = units[0]
    assert percents(text(page, "#answer"))[0] == round(kept["energy_change_pct"], 2), text(page, "#answer")
    # Numbers of an axis differ.
    panels = page.evaluate("[...document.querySelectorAll('svg.panel')].map((e) => [...e.querySelectorAll('text.tick[text-anchor=middle]')].map((t) => t.textContent))")
    assert len(panels) == 2 and all(len(panel) == len(set(panel)) > 0 for panel in panels), panels
    lead = run("top", "--db", db).split("Best by energy: ")[1]
    assert percents(lead)[0] == round(kept["energy_change_pct"], 2), lead


HOSTILE = "<b class='bad'>&\"x\"'y'</b><script>console.log(1)</script>"


def hostile_names(page, folder):
    """Names from files are text on every drawn page."""
    with gzip.open(EXAMPLES / "run.pt.trace.json.gz", "rt") as file:
        capture = json.load(file)
    name = max((e for e in capture["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["dur"])["name"]
    for event in capture["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"] == name:
            event["name"] = HOSTILE
    trace = folder / "<i class='bad'>&.pt.trace.json"
    trace.write_text(json.dumps(capture))
    run("replay", trace, "--page", folder / "h-replay.html")
    lines = (EXAMPLES / "a100-sweep.csv").read_text().splitlines()
    rows = list(csv.reader(lines))
    column = rows[0].index("kernel")
    first = rows[1][column]
    with open(folder / "<i class='bad'>&.csv", "w", newline="") as file:
        csv.writer(file).writerows([[HOSTILE if cell == first else cell for cell in row] for row in rows])
    run("validate", folder / "<i class='bad'>&.csv", "--gpu", "a100-sxm4-80gb", "--page", folder / "h-validation.html")
    profile = folder / "<i class='bad'>&profile.csv"
    profile.write_text((EXAMPLES / "gpt3-175b-a100.csv").read_text())
    run("explore", profile, "--blocked-power", "84", "--slack", "0", "--timeline", folder / "h-pipeline.html")
    # Readers of captures leave out what stands in angle brackets and before the function: template arguments, types.
    for page_name, shown in (("h-replay", """x"'y'"""), ("h-validation", HOSTILE), ("h-pipeline", "")):
        page.open(folder / f"{page_name}.html")
        assert page.console == [] and count(page, ".bad") == 0, (page_name, page.console)
        if shown:
            assert shown in text(page, "main"), page_name
            kernels = page.evaluate("[...document.querySelectorAll('[data-kernel]')].map((e) => e.dataset.kernel)")
            assert any(shown in kernel for kernel in kernels), page_name


# Names of devices that are shown, and how often one is crossed by the line of another.
DEVICES = """(() => { let names = 0, crossed = 0;
  for (const svg of document.querySelectorAll('svg')) {
    const lines = [...svg.querySelectorAll('line.zero')].map((e) => e.getBoundingClientRect()).filter((b) => b.height > 0);
    for (const name of svg.querySelectorAll('text.label')) {
      const b = name.getBoundingClientRect();
      if (b.width === 0) continue;
      ++names;
      crossed += lines.filter((l) => l.left < b.right && l.right > b.left && l.top < b.bottom && l.bottom > b.top).length;
    }
  }
  return [names, crossed]; })()"""


def drawn_pages(page, folder):
    """Pages without d3: each with what only it shows."""
    run("replay", EXAMPLES / "run.pt.trace.json.gz", "--power", EXAMPLES / "run.power.csv", "--page", folder / "replay.html")
    sweep = (EXAMPLES / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb")
    run("validate", *sweep, "--page", folder / "validation.html")
    run("transfer", "--db", folder / "r.db", "--batches", "1,40", "--tp", "1,2", "--page", folder / "transfer.html")
    run("explore", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84", "--slack", "0,5", "--timeline", folder / "pipeline.html")
    run("sweep-latency", "gpt3-xl", "--latencies-us", "1,6000,500000", "--page", folder / "latency.html")
    run("reproduce", "spaan2026", "--report", folder / "reproduce.html")
    run("trace", "scale", "gpt3-small", "--tp", "1..2", "--pp", "1..2", "--dp", "1..2", "--microbatches", "4", "--page", folder / "scale.html")
    for name in ("scale", "replay", "validation", "transfer", "pipeline", "latency", "reproduce"):
        sound(page, folder / f"{name}.html")
        assert count(page, ".tools button") >= 2, name
        page.hover("svg .mark")
        assert len(text(page, "#tip")) > 10, name
    for width in (390, 1300):
        page.open(folder / "latency.html", width=width)
        assert page.evaluate(DEVICES) == [8, 0], (width, page.evaluate(DEVICES))
    page.open(folder / "replay.html")
    page.hover("figure .mark")
    assert len(set(page.evaluate("[...document.querySelectorAll('.linked')].map((e) => e.dataset.kernel)"))) == 1
    page.open(folder / "pipeline.html")
    shown = "[...document.querySelectorAll('#gantt text.mhz')].filter((e) => getComputedStyle(e).display !== 'none').length"
    colour = "getComputedStyle(document.querySelectorAll('#gantt rect.pass')[200]).fill"
    before = page.evaluate(colour)
    assert page.evaluate(shown) == 0
    page.evaluate("document.querySelector('input[data-class]').click()")
    assert page.evaluate(shown) > 300 and page.evaluate(colour) != before


def main():
    if not browser.found():
        print("skipped: no chromium on this machine")
        return 77
    checks = (run_page, without_a_plan, missed_slack, experiment_page, late_experiment_page, *captured_pages.CHECKS, host_power_page, hostile_names, drawn_pages)
    with tempfile.TemporaryDirectory() as temporary, browser.Browser() as page:
        for check in checks:
            check(page, Path(temporary))
    print(f"{len(checks)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
