#!/usr/bin/env python3
"""Pictures that commands and benchmark scripts write: well-formed, with what they should show.

Usage: pictures.py RUBATO SOURCE_DIR
"""
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import finished  # noqa: E402

RUBATO, SOURCE = sys.argv[1], Path(sys.argv[2])
SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments, status=0):
    done = finished(*arguments, status=status)
    return done.stdout + done.stderr


def rows_of(*arguments):
    return json.loads(finished(*arguments, "--json").stdout)


def numbers(attribute):
    return [tuple(map(float, pair.split(","))) for pair in attribute.split()]


def transfer_pictures(folder):
    db, svg, page = folder / "r.db", folder / "t.svg", folder / "t.html"
    named = folder / "named.csv"
    named.write_text("segment,repeat,kernel,class,pass,flops,dram_bytes\n"
                     "s,1,a<b & c,gelu,forward,1e9,1e9\n")
    run(RUBATO, "explore", "gpt3-xl", "--granularity", "kernel", "--db", db)
    rows = rows_of(RUBATO, "transfer", named, "--db", db, "--plan", "1", "--batches", "1,40", "--tp", "1,2",
                          "--plot", svg, "--page", page)
    assert [row["trace"] for row in rows] == ["named"] + [
        f"gpt3-xl-b{b}-s1024-tp{tp}-dp1" for tp in (1, 2) for b in (1, 40)], rows

    drawing = xml.parse(svg).getroot()
    titles = [element.text for element in drawing.iter(SVG + "title")]
    texts = [element.text for element in drawing.iter(SVG + "text")]
    for row in rows:
        # Once per mark: two savings, the regret, two times.
        own = [t for t in titles if t.startswith(row["trace"] + ":")]
        assert len(own) == 5, (row["trace"], own)
        assert f"{round(-row['energy_change_pct'], 2) + 0.0:.2f} % saved" in own[0], (own[0], row)
        assert f"regret {row['equal_time_regret_points']:.2f} points" in own[0], (own[0], row)
    for text in ("gpt3-xl, TP 1", "gpt3-xl, TP 2", "traces named", "energy saved, %", "regret at equal time, points",
                 "change of time, %", "batch, sequences"):
        assert text in texts, (text, texts)
    # Heights agree with the numbers: a trace that saves more is drawn higher, in all panels.
    marks = [e for e in drawing.iter(SVG + "circle") if e.find(SVG + "title") is not None]
    saved = {m.find(SVG + "title").text.split(":")[0]: float(m.get("cy")) for m in marks if m.get("fill") == "#d55e00"
             and float(m.get("cy")) < 308}
    by_saving = sorted(rows, key=lambda row: row["energy_change_pct"])
    heights = [saved[row["trace"]] for row in by_saving]
    assert heights == sorted(heights), (by_saving, heights)

    # Each mark of the plan lies within its interval, in its saving and in its time.
    intervals = [e for e in drawing.iter(SVG + "line") if "interval" in (e.get("class") or "").split()]
    assert len(intervals) == 2 * len(rows), (len(intervals), len(rows))
    for line in intervals:
        inside = [m for m in marks if m.get("fill") == "#d55e00" and m.get("cx") == line.get("x1")
                  and float(line.get("y2")) - 0.1 <= float(m.get("cy")) <= float(line.get("y1")) + 0.1]
        assert len(inside) == 1, (line.attrib, inside)

    html = page.read_text()
    assert all(row["trace"] in html for row in rows)
    inside = xml.fromstring(re.search(r"<svg .*?</svg>", html, re.DOTALL)[0])
    assert len(list(inside.iter(SVG + "title"))) == len(titles)
    assert "cannot" in run(RUBATO, "transfer", named, "--db", db, "--plan", "1", "--plot", db / "t.svg", status=4)


def scale_pictures(folder):
    """Steps over degrees of parallelism: bars as high as shares, lines as high as savings."""
    svg, page = folder / "s.svg", folder / "s.html"
    rows = rows_of(RUBATO, "trace", "scale", "gpt3-small", "--tp", "1..2", "--pp", "1,2", "--dp", "1..4",
                   "--microbatches", "4", "--slack", "0,5", "--clocks", "mem=1593 core=900,1155,1410",
                   "--cluster", "dgx-a100", "--plot", svg, "--page", page)
    assert [(row["tp"], row["pp"], row["dp"]) for row in rows] == [
        (t, p, d) for t in (1, 2) for p in (1, 2) for d in (1, 2, 4)], rows
    drawing = xml.parse(svg).getroot()
    texts = [element.text for element in drawing.iter(SVG + "text")]
    for text in ("TP 1: share of the step", "TP 2: energy saved, %", "2 stages, replicas", "slack 5 %"):
        assert text in texts, (text, texts)
    saved = []
    for row in rows:
        named = f"TP {row['tp']}, PP {row['pp']}, DP {row['dp']}: {row['gpus']} GPUs"
        own = lambda kind: [e for e in drawing.iter(SVG + kind)
                            if e.find(SVG + "title") is not None and e.find(SVG + "title").text.startswith(named)]
        heights = [float(bar.get("height")) for bar in own("rect")]
        shares = [row["compute_pct"] - row["hidden_pct"], row["hidden_pct"], row["exposed_pct"], row["bubble_pct"]]
        assert len(heights) == len(shares) and abs(sum(heights) - 92) < 0.5, (named, heights)
        for height, share in zip(heights, shares):
            assert abs(height / 0.92 - share) < 0.2, (named, heights, shares)
        points = own("circle")
        assert len(points) == 2, (named, points)
        saved += [(row["tp"], row[f"energy_change_pct_slack_{slack}"], float(point.get("cy")))
                  for slack, point in zip((0, 5), points)]
    for tensor in (1, 2):
        by_change = sorted((change, height) for t, change, height in saved if t == tensor)
        assert [height for _, height in by_change] == sorted(height for _, height in by_change), by_change
    html = page.read_text().replace("&nbsp;", " ")
    least = min(rows, key=lambda row: row["energy_change_pct_slack_5"])
    assert (f"to {-least['energy_change_pct_slack_5']:.1f} % (TP {least['tp']}, PP {least['pp']}, DP {least['dp']})"
            in html), html
    assert html.count("<tr") == len(rows) + 1
    times = run(RUBATO, "trace", "scale", "gpt3-small", "--dp", "2", "--no-plans", "--disturb", "0:kernels*1.5", "--plot", svg)
    assert "wrote" in times and not list(xml.parse(svg).getroot().iter(SVG + "circle"))


def growth_pictures(folder):
    """Lines of known exponents, in the form Google Benchmark writes."""
    rows = []
    for kernels in (10, 100, 1000, 10000):
        for clocks, power in ((66, 1.0), (762, 2.0)):
            name = f"f/kernels:{kernels}/clocks:{clocks}/real_time"
            rows.append({"name": name, "run_name": name, "run_type": "iteration", "time_unit": "us",
                         "cpu_time": 3.0 * kernels**power, "real_time": 1.0})
    rows.append({"name": "g/kernels:10", "run_name": "g/kernels:10", "run_type": "iteration", "time_unit": "ns",
                 "cpu_time": 1.0, "real_time": 1.0})
    data, svg = folder / "b.json", folder / "b.svg"
    data.write_text(json.dumps({"context": {}, "benchmarks": rows}))
    growth = SOURCE / "bench" / "tables" / "growth.py"
    said = run(sys.executable, growth, "draw", svg, "--panel", "both <&>", data, "f", "kernels", "cpu_time",
               "--panel", "one", data, "f/clocks:762", "kernels", "cpu_time")
    assert "both <&>: 66 clocks: exponent 1.000 over all, 1.000 from 1,000 on" in said, said
    assert "both <&>: 762 clocks: exponent 2.000 over all, 2.000 from 1,000 on" in said, said
    assert "one: f: exponent 2.000" in said, said
    drawing = xml.parse(svg).getroot()
    lines = [numbers(line.get("points")) for line in drawing.iter(SVG + "polyline")]
    assert [len(line) for line in lines] == [4, 4, 4]
    for line in lines:  # straight on logarithmic axes
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(line, line[1:])]
        assert max(slopes) - min(slopes) < 0.01 and max(slopes) < 0, slopes
    assert "no two points of 'g'" in run(sys.executable, growth, "draw", svg, "--panel", "g", data, "g", "kernels",
                                        "cpu_time", status=1)


def latency_picture(folder):
    svg = folder / "l.svg"
    rows = rows_of(RUBATO, "sweep-latency", "gpt3-xl", "--latencies-us", "1,1000,6000", "--plot", svg)
    assert len(rows) == 6, rows
    drawing = xml.parse(svg).getroot()
    texts = [element.text for element in drawing.iter(SVG + "text")]
    for text in ("Raven Ridge, 1 us", "Ascend NPU, 1 ms", "H200, 6 ms", "the device waits for the whole latency"):
        assert text in texts, (text, texts)
    assert not any("Quadro" in text for text in texts), texts
    titles = [element.text for element in drawing.iter(SVG + "title")]
    for row in rows:
        shown = f"energy {round(row['segment_energy_change_pct'], 2) + 0.0:+.2f} %, time {round(row['segment_time_change_pct'], 2) + 0.0:+.2f} %"
        # Once for energy, once for time.
        assert sum(t.startswith("segment, ") and shown in t for t in titles) == 2, (shown, titles)


with tempfile.TemporaryDirectory() as temporary:
    transfer_pictures(Path(temporary))
    scale_pictures(Path(temporary))
    growth_pictures(Path(temporary))
    latency_picture(Path(temporary))
print("4 passed, 0 failed")
