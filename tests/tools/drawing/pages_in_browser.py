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
    run("explore", "gpt3-xl", "--per", "run,pass", "--odds", 0, "--db", folder / "s.db")
    sound(page, report(folder, "s.db", "set.html"))
    five_lines(page, folder, "s.db")
    run("reproduce", "spaan2026", "--db", folder / "r.db")
    sound(page, report(folder, "r.db", "report.html"))
    five_lines(page, folder, "r.db")
    for expected, selector in ((3, "#front path.front"), (8, "#front .published"), (1, "#front .chosen circle"), (6, "#clocks path.front")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    # The page holds the tables of --json under the same names, and the SQL of each gives its rows.
    tables = page.evaluate("Object.entries(JSON.parse(document.getElementById('data').textContent).tables).filter(([, t]) => t.sql).map(([name, t]) => [name, t.sql, t.rows.length])")
    assert {"run", "answers", "plans", "notes", "passes", "kernels"} <= {name for name, _, _ in tables}, tables
    for name, sql, rows in tables:
        assert len(json.loads(run("query", "--db", folder / "r.db", "--json", sql))) == rows, name
    slider(page)
    interactions(page)


def five_lines(page, folder, db):
    """The same five as in the terminal, and as the view has."""
    [lines] = json.loads(run("query", "--db", folder / db, "--json", "SELECT planned, \"set\", saves, rests_on, next FROM v_lines ORDER BY run_id DESC LIMIT 1"))
    assert page.evaluate("[...document.querySelectorAll('dl.five dt')].map((e) => e.textContent)") == ["Planned", "Set", "Saves", "Rests on", "Next"]
    for name in ("planned", "saves", "rests_on", "next"):
        assert text(page, f"#line-{name}") == lines[name], (name, text(page, f"#line-{name}"), lines[name])
    assert text(page, "#line-set").startswith(lines["set"].split("\n")[0])


def slide(page, grain, slack):
    page.evaluate(f"(() => {{ const g = document.querySelector('#front select'); g.value = '{grain}'; g.dispatchEvent(new Event('change'));"
                  f" const s = document.getElementById('slack'); s.value = {slack}; s.dispatchEvent(new Event('input')); }})()")
    if count(page, "#front .chosen circle") == 0:
        assert text(page, "#title").startswith("Keep the default clocks"), text(page, "#title")
        return 0.0
    energy, time = percents(page.evaluate("document.querySelector('#front .chosen circle').dataset.tip || document.querySelector('#front .chosen circle title').textContent"))
    assert time <= slack + 0.006, (grain, slack, time)
    return energy


SAVED = "[...document.querySelectorAll('#kernels-table tbody tr')].map((e) => parseFloat([...e.cells].at(-2).textContent)).reduce((a, b) => a + b)"


def slider(page):
    """It gives what the search gives, and title, lines and tables follow it."""
    for grain in ("run", "pass", "kernel"):
        for slack in (0, 5, 12):
            exact = json.loads(run("explore", "gpt3-xl", "--per", grain, "--clocks", "paper", "--slack", slack, "--odds", 0, "--json"))["plans"][-1]
            assert exact["granularity"] == grain
            # Of kernels the page prices time: close to the best, and never more.
            beyond = slide(page, grain, slack) - exact["energy_change_pct"]
            assert -0.006 < beyond < (0.05 if grain == "kernel" else 0.006), (grain, slack, beyond)
    page.evaluate("[...document.querySelectorAll('#kernels p.tools button')].at(-1).click()")
    seen = set()
    for slack in (0, 10, 20):
        energy = slide(page, "kernel", slack)
        assert f"{-energy:.1f} % less energy" in text(page, "#title") or slack == 0, (text(page, "#title"), energy)
        seen.add(page.evaluate("document.querySelector('#kernels-table').textContent"))
        # The kernels' savings add up to what the title says.
        assert count(page, "#kernels-table tbody tr") == 46
        saved = page.evaluate(SAVED)
        assert abs(saved / 1814.1 + energy / 100) < 2e-4, (slack, saved, energy)
    assert len(seen) == 3, "clocks do not follow the slider"
    slide(page, "run", 10)
    assert text(page, "#line-set code").startswith("sudo nvidia-smi -lgc "), text(page, "#line-set")
    assert "#slack=10" in page.evaluate("location.href") and "per=run" in page.evaluate("location.href")


def host_power_page(page, folder):
    """The rest of the node is in what the slider says too, and the line that plans it again asks for it."""
    options = ("--per", "run", "--host-power", "200", "--slack", "5")
    run("explore", "gpt3-xl", *options, "--db", folder / "h.db")
    sound(page, report(folder, "h.db", "host.html"))
    exact = json.loads(run("explore", "gpt3-xl", *options, "--odds", 0, "--json"))["plans"][-1]
    assert abs(slide(page, "run", 5.1) - exact["energy_change_pct"]) < 0.2
    assert "200 W per GPU, in all energies" in text(page, "main")
    slide(page, "pass", 5)
    again = shlex.split(text(page, "#line-set code"))
    assert again[:2] == ["rubato", "explore"] and float(again[again.index("--host-power") + 1]) == 200.0, again


def brush(page, picture, ticks):
    """A stretch of the x axis is shown that the pointer selects; a double click, Escape and the keys give back what was there."""
    places = f"[...document.querySelectorAll('{picture} .tick')].filter((t) => t.querySelector('text[dy=\"0.71em\"]')).map((t) => [t.querySelector('line').getBoundingClientRect().x, parseFloat(t.textContent.replace('\u2212', '-'))])"

    def value(share):
        """On the axis as it is now: it is linear."""
        (a, low), *_, (b, high) = page.evaluate(places)
        x, width = page.evaluate(f"(({{x, width}}) => [x, width])(document.querySelector('{picture}').getBoundingClientRect())")
        return low + (x + share * width - a) * (high - low) / (b - a)

    whole, low, high = page.evaluate(ticks), value(0.3), value(0.5)
    page.drag(picture, 0.3, 0.5, release=False)
    assert count(page, f"{picture} .brush") == 1
    page.press("Escape")
    assert count(page, f"{picture} .brush") == 0 and page.evaluate(ticks) == whole
    page.drag(picture, 0.3, 0.5)
    left, right = page.evaluate(f"(() => {{ const d = document.querySelectorAll('{picture} .domain'), b = [...d].at(-1).getBoundingClientRect(), s = document.querySelector('{picture}').getBoundingClientRect(); return [(b.left - s.x) / s.width, (b.right - s.x) / s.width]; }})()")
    step = (high - low) / 50  # two pixels or so
    assert abs(value(left) - low) < step and abs(value(right) - high) < step, (value(left), low, value(right), high)
    page.double_click(picture)
    assert page.evaluate(ticks) == whole
    page.evaluate(f"document.querySelector('{picture} .mark, {picture}').focus()")
    for key in ("+", "-"):
        page.press(key)
        assert page.evaluate(ticks) != whole, key
        page.press("Escape")
        assert page.evaluate(ticks) == whole, key


def interactions(page):
    slide(page, "kernel", 12)
    page.hover("#kernels-table tbody tr:nth-of-type(3)")
    name = text(page, "#kernels-table tbody tr:nth-of-type(3) td")
    assert set(page.evaluate("[...document.querySelectorAll('.linked')].map((e) => e.dataset.kernel)")) == {name}
    page.hover("#front .mark.published")
    assert "published" in text(page, "#tip") and "energy" in text(page, "#tip"), text(page, "#tip")
    # One stop of the keyboard for a picture, arrows within.
    assert count(page, "#front .mark[tabindex='0']") == 1
    page.evaluate("document.querySelector('#front .mark').focus()")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")  # it may be scrolled to
    first = text(page, "#tip")
    page.press("ArrowDown")
    assert text(page, "#tip") != first and page.evaluate("document.querySelector('#tip').hidden") is False
    # Sorted by a column, and back; filtered.
    numbers = "[...document.querySelectorAll('#kernels-table tbody tr')].map((e) => parseFloat(e.cells[2].textContent))"
    for _ in range(2):
        page.evaluate("document.querySelector('#kernels-table th button[data-field=launches]').click()")
        shown, down = page.evaluate(numbers), page.evaluate("document.querySelector('#kernels-table th:nth-child(3)').getAttribute('aria-sort')") == "descending"
        assert shown == sorted(shown, reverse=down) and len(set(shown)) > 1, shown
    page.evaluate("(() => { const f = document.querySelector('#kernels input[type=search]'); f.value = 'gemm backward'; f.dispatchEvent(new Event('input')); })()")
    names = page.evaluate("[...document.querySelectorAll('#kernels-table tbody tr')].map((e) => e.textContent)")
    assert 0 < len(names) < 46 and all("gemm" in row and "backward" in row for row in names), names
    # Zoomed in, fewer numbers are on the axis, and all again.
    ticks = "[...document.querySelectorAll('#front-plot .tick text[dy=\"0.71em\"]')].map((e) => e.textContent).join()"
    whole = page.evaluate(ticks)
    page.evaluate("document.querySelector('#front .zoom button').click()")
    assert page.evaluate(ticks) != whole
    page.evaluate("[...document.querySelectorAll('#front .zoom button')].at(-1).click()")
    assert page.evaluate(ticks) == whole
    brush(page, "#front-plot svg", ticks)
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    for button, kind in (("#front .chart + .tools button", "svg"), ("#plans-table + .tools button", "csv")):
        page.evaluate(f"document.querySelector({json.dumps(button)}).click()")
        saved = page.download(kind)
        if kind == "svg":
            root = xml.fromstring(saved)
            assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10 and "var(" not in saved, saved[:300]
        else:
            assert saved.splitlines()[0].startswith("one clock for,") and saved.splitlines()[1].startswith("default,"), saved.splitlines()[:2]
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
    slide(page, "run", 10)
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    click = "document.querySelector('#line-set button').click()"
    page.evaluate("addEventListener('copy', () => { window.copiedText = getSelection().toString(); })")
    # By the clipboard's interface, and by the older command where that is refused.
    for write in ("async (text) => { window.copiedText = text; }", "async () => { throw new Error('refused'); }"):
        page.evaluate(f"(() => {{ window.copiedText = null; Object.defineProperty(navigator, 'clipboard', {{value: {{writeText: {write}}}, configurable: true}}); {click}; }})()")
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert page.evaluate("window.copiedText") == text(page, "#line-set code"), write
        assert text(page, "#line-set button") == "Copied", write
    page.evaluate(f"(() => {{ document.execCommand = () => false; {click}; }})()")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert text(page, "#line-set button") != "Copied"


def missed_slack(page, folder):
    """A plan that is late once switches are counted is no answer; lines to type are words to a shell."""
    db = folder / "it's $HOME.db"
    options = ("--per", "kernel", "--slack", "2", "--switching", "latency=20ms", "--power-limit", "300", "--db", db)
    run("explore", *options, "gpt3-xl", status=1)
    sound(page, report(folder, db.name, "missed.html"))
    assert text(page, "#title").startswith("Keep the default clocks"), text(page, "#title")
    assert count(page, "#line-set code") == 0
    slide(page, "kernel", 3)
    line = shlex.split(text(page, "#line-set code"))
    assert line == "rubato explore gpt3-xl --gpu rtx-3080-ti --power-limit 300 --switching latency=20ms --per kernel --slack 3".split(), line
    run(*line[1:], status=1)
    quick = folder / "quick it's $HOME.db"
    run("explore", "--per", "pass", "--slack", "2", "--odds", 0, "--db", quick)
    sound(page, report(folder, quick.name, "quick.html"))
    line = shlex.split(text(page, "#line-set code"))
    assert line[line.index("--db") + 1] == str(quick), line
    run(*line[1:line.index("-o")], "-o", folder / "plan.json")


def without_a_plan(page, folder):
    run_status = subprocess.run([RUBATO, "explore", "gpt3-xl", "--goal", "time", "--budget", "1J", "--db", folder / "n.db"], capture_output=True)
    assert run_status.returncode == 1
    sound(page, report(folder, "n.db", "none.html"))
    assert "No plan does what was asked for" in text(page, "#title")
    assert count(page, "#kernels") == 0


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
granularity = ["run", "pass", "kernel"]
[scenario."</script><b>bold"]
gpu = "rtx-3080-ti"
trace = "gpt3-xl"
goal = "time"
energy_budget_j = 1
"""


def experiment_page(page, folder):
    """12 settings of 3 units, and a scenario whose name must stay text."""
    (folder / "e.toml").write_text(EXPERIMENT)
    run("experiment", "run", folder / "e.toml", "--db", folder / "e.db")
    sound(page, report(folder, "e.db", "experiment.html", "--experiment", "latest"))
    assert '<script>alert(1)</script> & "co"' in text(page, "#answer") and "37 of 37 units" in text(page, "#answer")
    assert "12 of 13 settings that save most" in text(page, "#kernels"), text(page, "#kernels p")
    page.evaluate("[...document.querySelectorAll('#front select')].forEach((s, i) => { s.value = ['batch', 'sequence'][i]; s.dispatchEvent(new Event('change')); })")
    for expected, selector in ((6, ".panel"), (36, ".unit"), (6, "#fronts path.front"), (3, "#latency path.front"), (12 * 46, ".cell"), (37, "#units-table tbody tr"), (0, "main b")):
        assert count(page, selector) == expected, (selector, count(page, selector))
    # Settings are told apart by their names, which say nothing that the others imply.
    names = page.evaluate("[...document.querySelector('#fronts select').querySelectorAll('option')].map((e) => e.textContent)")
    assert len(names) == len(set(names)) == 12 and "batch 16, sequence 512, switch stall 0 us" in names, names
    run("experiment", "run", EXAMPLES / "experiment.toml", "--db", folder / "ex.db")
    sound(page, report(folder, "ex.db", "two-gpus.html", "--experiment", "latest"))
    names = page.evaluate("[...document.querySelector('#fronts select').querySelectorAll('option')].map((e) => e.textContent)")
    assert len(names) == len(set(names)) == 5 and "gpu rtx-3080-ti, batch 40, switch latency 0 us" in names, names


def late_experiment_page(page, folder):
    """The headline is the unit that top calls the best: of those that keep their slack with switches counted."""
    (folder / "late.toml").write_text("""schema = 1
name = "late"
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = [4, 8]
sequence = 1024
granularity = ["run", "pass", "kernel"]
slack_pct = 1
""")
    db = folder / "late.db"
    run("experiment", "run", folder / "late.toml", "--db", db)
    sound(page, report(folder, db.name, "late.html", "--experiment", "latest"))
    units = json.loads(run("top", "--db", db, "--json"))
    assert not any("slack missed" in (unit["notes"] or "") for unit in units), units
    late = json.loads(run("query", "--db", db, "--json", "SELECT count(*) AS n FROM v_plans WHERE in_time = 0"))[0]["n"]
    assert late > 0
    kept = units[0]
    saved = -kept["energy_change_pct"]
    assert text(page, "#title").startswith(f"{saved:.1f} % less energy at " if saved > 0.005 else "No plan in time saves energy"), text(page, "#title")
    # Numbers of an axis differ.
    panels = page.evaluate("[...document.querySelectorAll('.panel svg')].map((e) => [...e.querySelectorAll('.tick text[dy=\"0.71em\"]')].map((t) => t.textContent))")
    assert len(panels) == 2 and all(len(panel) == len(set(panel)) > 0 for panel in panels), panels
    lead = run("top", "--db", db)
    assert ("keep the default clocks" in lead) == (saved < 0.005), lead
    assert saved < 0.005 or percents(lead.split("Best answer by energy: ")[1])[0] == round(kept["energy_change_pct"], 2), lead


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


def drawn_pages(page, folder):
    """Pages of commands that are not stored: charts over the tables that they print."""
    run("replay", EXAMPLES / "run.pt.trace.json.gz", "--power", EXAMPLES / "run.power.csv", "--page", folder / "replay.html")
    sweep = (EXAMPLES / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb")
    run("validate", *sweep, "--page", folder / "validation.html")
    run("transfer", "--db", folder / "r.db", "--batches", "1,40", "--tp", "1,2", "--page", folder / "transfer.html")
    run("explore", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84", "--slack", "0,5", "--timeline", folder / "pipeline.html")
    run("latency-scan", "gpt3-xl", "--latencies-us", "1,6000,500000", "--page", folder / "latency.html")
    run("reproduce", "spaan2026", "--report", folder / "reproduce.html")
    run("trace", "scale", "gpt3-small", "--tp", "1..2", "--pp", "1..2", "--dp", "1..2", "--microbatches", "4", "--page", folder / "scale.html")
    for name, charts in (("scale", 8), ("replay", 2), ("validation", 4), ("transfer", 3), ("pipeline", 2), ("latency", 4), ("reproduce", 4)):
        sound(page, folder / f"{name}.html")
        assert count(page, "figure .chart svg") == charts, (name, count(page, "figure .chart svg"))
        axes = page.evaluate("[...document.querySelectorAll('figure .chart svg')].map((e) => [...e.querySelectorAll('text.name')].map((t) => t.textContent.length))")
        assert all(len(names) == 2 and min(names) > 1 for names in axes), (name, axes)
        page.hover("figure svg .mark")
        assert len(text(page, "#tip")) > 10, name
    # Panels of a chart have the same scales, and what is named on an axis is told apart.
    scales = "[...document.querySelectorAll('figure .chart svg')].map((e) => [...e.querySelectorAll('.tick text')].map((t) => t.textContent).join())"
    page.open(folder / "scale.html")
    assert len(set(page.evaluate(scales))) == 2, page.evaluate(scales)
    page.open(folder / "transfer.html")
    names = page.evaluate("[...document.querySelectorAll('figure .chart svg')].map((e) => [...e.querySelectorAll('.tick text[dy=\"0.71em\"]')].map((t) => t.textContent))")
    assert all(len(set(of)) == len(of) > 1 for of in names), names
    page.open(folder / "latency.html")
    assert len(set(page.evaluate(scales))) == 2
    assert page.evaluate("[...document.querySelectorAll('figure .chart svg')].every((e) => e.textContent.includes('H200'))")
    rows = json.loads(run("latency-scan", "gpt3-xl", "--latencies-us", "1,6000,500000", "--json"))
    tips = page.evaluate("[...document.querySelectorAll('figure svg .mark')].map((e) => e.dataset.tip || e.querySelector('title').textContent)")
    for row in rows:
        assert any(f"latency, us {row['latency_us']:,.0f}," in tip and f" {row['segment_energy_change_pct']:.4g}" in tip for tip in tips), (row, tips[:5])
    page.open(folder / "replay.html")
    page.hover("figure .mark")
    assert len(set(page.evaluate("[...document.querySelectorAll('.linked')].map((e) => e.dataset.kernel)"))) == 1
    page.open(folder / "pipeline.html")
    assert count(page, "#gantt rect.pass") > 300
    gantt_of_a_run(page, folder)


def gantt_of_a_run(page, folder):
    """Of the passes those are drawn that run in the stretch that was selected."""
    run("explore", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "84", "--db", folder / "p.db")
    sound(page, report(folder, "p.db", "stages.html"))
    passes, ticks = count(page, "#gantt rect.pass"), "[...document.querySelectorAll('#gantt .tick')].map((e) => e.textContent).join()"
    brush(page, "#gantt svg", ticks)
    page.drag("#gantt svg", 0.4, 0.5)
    shown = page.evaluate("[...document.querySelectorAll('#gantt rect.pass')].map((e) => (e.dataset.tip || e.querySelector('title').textContent))")
    assert 0 < len(shown) < passes / 3 and len(set(shown)) == len(shown), (len(shown), passes)


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
