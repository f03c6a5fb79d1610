#!/usr/bin/env python3
"""Pages that commands write, and pictures of benchmark scripts: what they hold.

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


def document(page):
    """What a page is drawn from."""
    return json.loads(re.search('id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])


def tables_of_pages(folder):
    """The tables of a page are those that --json prints, and its charts are of columns that these have."""
    examples, db, page = SOURCE / "docs" / "examples", folder / "r.db", folder / "p.html"
    named = folder / "named.csv"
    named.write_text("segment,repeat,kernel,class,pass,flops,dram_bytes\n"
                     "s,1,a<b & c,gelu,forward,1e9,1e9\n")
    run(RUBATO, "explore", "gpt3-xl", "--per", "kernel", "--db", db)
    for name, words in (("transfers", ("transfer", named, "--db", db, "--plan", "1", "--batches", "1,40", "--tp", "1,2")),
                        ("steps", ("trace", "scale", "gpt3-small", "--tp", "1..2", "--pp", "1,2", "--dp", "1..4", "--microbatches", "4", "--slack", "0,5",
                                   "--clocks", "mem=1593 core=900,1155,1410", "--cluster", "dgx-a100")),
                        ("steps", ("trace", "scale", "gpt3-small", "--dp", "2", "--no-plans", "--disturb", "0:kernels*1.5")),
                        ("latencies", ("latency-scan", "gpt3-xl", "--latencies-us", "1,1000,6000")),
                        ("errors", ("validate", examples / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb")),
                        ("runs", ("replay", examples / "run.pt.trace.json.gz", "--power", examples / "run.power.csv"))):
        printed = rows_of(RUBATO, *words, "--page", page)
        data = document(page)
        tables = {key: [dict(zip(table["columns"], row)) for row in table["rows"]] for key, table in data["tables"].items()}
        if isinstance(printed, dict):
            assert {key: printed[key] for key in tables} == tables, words
        else:
            assert tables[name] == printed and len(printed) > 0, words
        for part in data["sections"]:
            for chart in part["charts"]:
                shown = [chart.get("x"), *chart.get("y", []), *chart.get("ratio", []), *(field for pair in chart.get("pairs", []) for field in (*pair[:2], *pair[3:])),
                         *[chart.get("panels", [])], chart.get("by")]
                fields = {field for one in shown if one for field in ([one] if isinstance(one, str) else one)}
                assert fields <= set(data["tables"][part["name"]]["columns"]), (words, fields)
    assert "cannot" in run(RUBATO, "transfer", named, "--db", db, "--plan", "1", "--page", db / "t.html", status=4)


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


with tempfile.TemporaryDirectory() as temporary:
    tables_of_pages(Path(temporary))
    growth_pictures(Path(temporary))
print("2 passed, 0 failed")
