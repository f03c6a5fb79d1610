#!/usr/bin/env python3
"""Measures how time and memory of benchmarks grow with their arguments, and draws it.

Usage: growth.py measure PROGRAM FILTER OUT.json [--repetitions N]
       growth.py draw OUT.svg --panel TITLE FILE.json CASES X Y [--panel ...]

measure  runs each benchmark that FILTER (a regular expression) matches in a process of its own, N times, and writes
         the medians in Google Benchmark's form, with "peak_rss_bytes": the most memory its process held, input included.
draw     one log-log panel per --panel, from such a file or any other JSON of Google Benchmark. CASES: names with the
         arguments that are fixed and perhaps a title, several with "+": "mckp/clocks:762=optimum+front/clocks:762". X: the
         argument on the axis. Y: cpu_time, real_time, peak_rss or a counter. Other arguments make a line each.
         Prints each line's points and its exponent, over all of it and over its larger half (on a log axis).

The pictures of docs/search.md:
  growth.py measure build/release/mckp_bench '^(mckp|front)/.*threads:1' mckp.json
  growth.py draw docs/pictures/search-growth.svg \\
    --panel "CPU time over kernels, 762 clocks" mckp.json "mckp/clocks:762=optimum+front/clocks:762=front" kernels cpu_time \\
    --panel "CPU time over clocks" mckp.json mckp clocks cpu_time \\
    --panel "peak memory of the process, 762 clocks" mckp.json "mckp/clocks:762=optimum" kernels peak_rss \\
    --panel "wall time over launches, aware of switching" switching.json \\
      "switching/random:0/stall_us:100/lead_us:0=steps+switching/random:1/stall_us:100/lead_us:0=any order+switching/random:0/stall_us:0/lead_us:6000=steps, ahead+switching/random:1/stall_us:0/lead_us:6000=any, ahead" \\
      launches real_time
  with switching.json of switching_bench --benchmark_out=switching.json

The picture of docs/performance.md:
  growth.py measure build/release/sweep_bench '^sweep/units' sweep.json --repetitions 2
  growth.py draw docs/pictures/sweep-growth.svg \\
    --panel "CPU time of a sweep, all threads" sweep.json sweep units cpu_time \\
    --panel "peak memory of a sweep" sweep.json sweep units peak_rss \\
    --panel "CPU time of a plan, 762 clocks" mckp.json \\
      "mckp/clocks:762/threads:1=plan+front/clocks:762/threads:1=whole front" kernels cpu_time \\
    --panel "CPU time of a plan" mckp.json "mckp/threads:1=plan" clocks cpu_time

The picture of docs/graphs.md, with graph.json of graph_bench --benchmark_out=graph.json:
  growth.py draw docs/pictures/graph-growth.svg \\
    --panel "CPU time of a replay over launches" graph.json \\
      "simulate/streams:2/ranks:1/overlap:0=one at a time+simulate/streams:2/ranks:1/overlap:1=side by side" launches cpu_time \\
    --panel "CPU time of a replay over streams, 100,000 launches" graph.json \\
      "simulate/launches:100000/ranks:1/overlap:0=one at a time+simulate/launches:100000/ranks:1/overlap:1=side by side" \\
      streams cpu_time \\
    --panel "CPU time of a replay over ranks, 10,000 launches each" graph.json \\
      "simulate/launches:10000/streams:2/overlap:0=one at a time+simulate/launches:10000/streams:2/overlap:1=side by side" \\
      ranks cpu_time \\
    --panel "CPU time over launches, two streams" graph.json \\
      "single_clock/streams:2/ranks:1/overlap:0=763 single clocks+plan_per_launch/streams:2/ranks:1/overlap:0=plan per launch" \\
      launches cpu_time
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555"]  # Okabe and Ito
# Panels of WIDTH x HEIGHT px, two beside each other.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, COLUMNS = 470, 300, 66, 116, 44, 48, 2


def run_alone(program, name, repetitions):
    """The median of one benchmark, with the peak memory of its process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        process = subprocess.Popen([program, f"--benchmark_filter=^{name}$", f"--benchmark_repetitions={repetitions}",
                                    f"--benchmark_out={out}", "--benchmark_out_format=json"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"error: {program}: {name} ended with status {process.returncode}")
        found = json.loads(out.read_text())
    for row in found["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"error: {name}: {row['error_message']}")
    median = next(r for r in found["benchmarks"] if r.get("aggregate_name") == "median") if repetitions > 1 \
        else found["benchmarks"][0]
    return found["context"], {**median, "name": name, "peak_rss_bytes": usage.ru_maxrss * 1024}


def measure(options):
    listed = subprocess.run([options.program, "--benchmark_list_tests", f"--benchmark_filter={options.filter}"],
                            capture_output=True, text=True, check=True).stdout.split()
    if not listed:
        sys.exit(f"error: no benchmark of {options.program} matches '{options.filter}'")
    rows, context = [], {}
    for name in listed:
        context, row = run_alone(options.program, name, options.repetitions)
        rows.append(row)
        print(f"{name}: {row['cpu_time']:.4g} {row['time_unit']} CPU, {row['peak_rss_bytes'] / 1e6:.0f} MB", flush=True)
    Path(options.out).write_text(json.dumps({"context": context, "benchmarks": rows}, indent=1) + "\n")


def parts_of(name):
    """'mckp/kernels:46/real_time' as ('mckp', {'kernels': 46.0})."""
    family, *parts = name.split("/")
    pairs = (part.split(":") for part in parts if ":" in part)
    return family, {key: float(value) for key, value in pairs if value.replace(".", "", 1).isdigit()}


def value_of(row, y):
    if y in ("cpu_time", "real_time"):
        return row[y] * SECONDS[row["time_unit"]]
    return row["peak_rss_bytes" if y == "peak_rss" else y]


def rows_of(file):
    rows = json.loads(Path(file).read_text())["benchmarks"]
    medians = [row for row in rows if row.get("aggregate_name") == "median"]
    return medians or [row for row in rows if row.get("run_type", "iteration") == "iteration"]


def lines_of(file, cases, x, y):
    """{label: [(x, y), ...]}, by rising x."""
    chosen = []
    for case in cases.split("+"):
        name, _, title = case.partition("=")
        family, fixed = parts_of(name)
        for row in rows_of(file):
            found, arguments = parts_of(row.get("run_name", row["name"]))
            if found == family and x in arguments and fixed.items() <= arguments.items():
                others = {k: v for k, v in arguments.items() if k != x and k not in fixed}
                chosen.append((title or family, others, arguments[x], value_of(row, y)))
    # What is the same everywhere needs no mention.
    differing = {k for _, others, _, _ in chosen for k in others if len({o.get(k) for _, o, _, _ in chosen}) > 1}
    several = len({title for title, *_ in chosen}) > 1
    lines = {}
    for title, others, at, value in chosen:
        words = [title] * (several or not differing) + [f"{v:,.0f} {k[:-1] if v == 1 else k}" for k, v in others.items() if k in differing]
        lines.setdefault(", ".join(words), []).append((at, value))
    return {label: sorted(points) for label, points in lines.items() if len(points) > 1}


def exponent(points):
    """Slope of the least-squares line through the logarithms."""
    xs, ys = [math.log(p[0]) for p in points], [math.log(p[1]) for p in points]
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x0) * (y - y0) for x, y in zip(xs, ys)) / sum((x - x0) ** 2 for x in xs)


def larger_half(points):
    middle = math.sqrt(points[0][0] * points[-1][0])
    return points[-2:] if len(points) <= 3 else [p for p in points if p[0] >= middle * (1 - 1e-9)]


def label_of(value, y):
    if y in ("cpu_time", "real_time"):
        names = [(1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
    elif y == "peak_rss":
        names = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")]
    else:
        return f"{value:,.0f}"
    unit, name = next((n for n in names if value >= n[0] * 0.999), names[-1])
    return f"{value / unit:g} {name}"


def decades(low, high):
    return [10.0**p for p in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class Scale:
    """A logarithmic axis from px `start` to `end`."""

    def __init__(self, values, start, end):
        self.low, self.high, self.start, self.end = values[0], values[-1], start, end

    def at(self, value):
        return self.start + (self.end - self.start) * math.log(value / self.low) / math.log(self.high / self.low)


def ends_apart(lines, y_axis):
    """Heights of the labels at the lines' ends, moved apart where they would cover each other."""
    room = 28
    heights = {}
    last = -math.inf
    for label in sorted(lines, key=lambda name: y_axis.at(lines[name][-1][1])):
        last = max(y_axis.at(lines[label][-1][1]), last + room)
        heights[label] = last
    return heights


def panel_svg(title, lines, x, y, left, top):
    all_points = [p for points in lines.values() for p in points]
    xs, ys = sorted(p[0] for p in all_points), sorted(p[1] for p in all_points)
    x_axis = Scale(xs, left + LEFT, left + WIDTH - RIGHT)
    ticks = decades(ys[0], ys[-1])
    y_axis = Scale(ticks, top + HEIGHT - BOTTOM, top + TOP)
    svg = [f'<text x="{left + LEFT}" y="{top + 24}" fill="#222" font-weight="600">{escape(title)}</text>']
    for tick in ticks:
        svg.append(f'<line x1="{x_axis.start}" x2="{x_axis.end}" y1="{y_axis.at(tick):.1f}" y2="{y_axis.at(tick):.1f}" '
                   f'stroke="#ddd"/><text x="{x_axis.start - 8}" y="{y_axis.at(tick) + 4:.1f}" text-anchor="end">'
                   f'{label_of(tick, y)}</text>')
    for tick in (t for t in decades(xs[0], xs[-1]) if xs[0] <= t <= xs[-1]):
        svg.append(f'<line x1="{x_axis.at(tick):.1f}" x2="{x_axis.at(tick):.1f}" y1="{y_axis.start}" y2="{y_axis.end}" '
                   f'stroke="#ddd"/><text x="{x_axis.at(tick):.1f}" y="{y_axis.start + 18}" text-anchor="middle">'
                   f'{tick:,.0f}</text>')
    svg.append(f'<text x="{(x_axis.start + x_axis.end) / 2}" y="{y_axis.start + 38}" text-anchor="middle">{escape(x)}</text>')
    heights = ends_apart(lines, y_axis)
    for colour, (label, points) in zip(COLOURS * len(lines), lines.items()):
        path = " ".join(f"{x_axis.at(a):.1f},{y_axis.at(b):.1f}" for a, b in points)
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        for a, b in points:
            svg.append(f'<circle cx="{x_axis.at(a):.1f}" cy="{y_axis.at(b):.1f}" r="3.2" fill="{colour}">'
                       f'<title>{escape(label)}, {a:,.0f} {escape(x)}: {b:.4g}</title></circle>')
        svg.append(f'<text x="{x_axis.end + 8}" y="{heights[label]:.1f}" fill="{colour}">{escape(label)}</text>'
                   f'<text x="{x_axis.end + 8}" y="{heights[label] + 13:.1f}" fill="{colour}" font-size="11">'
                   f'exponent {exponent(larger_half(points)):.2f}</text>')
        whole, half = exponent(points), exponent(larger_half(points))
        print(f"{title}: {label}: exponent {whole:.3f} over all, {half:.3f} from {larger_half(points)[0][0]:,.0f} on; "
              + ", ".join(f"{a:,.0f}: {b:.4g}" for a, b in points))
    return svg


def draw(options):
    if not options.panel:
        sys.exit("error: nothing to draw; give at least one --panel")
    columns = min(COLUMNS, len(options.panel))
    rows = -(-len(options.panel) // COLUMNS)
    width, height = columns * WIDTH, rows * HEIGHT
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="system-ui, sans-serif" font-size="12" fill="#555">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for i, (title, file, cases, x, y) in enumerate(options.panel):
        lines = lines_of(file, cases, x, y)
        if not lines:
            sys.exit(f"error: {file} has no two points of '{cases}' with argument '{x}'")
        svg += panel_svg(title, lines, x, y, i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT)
    Path(options.out).write_text("\n".join(svg) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("program")
    one.add_argument("filter")
    one.add_argument("out")
    one.add_argument("--repetitions", type=int, default=5)
    one.set_defaults(run=measure)
    two = commands.add_parser("draw")
    two.add_argument("out")
    two.add_argument("--panel", nargs=5, action="append", metavar=("TITLE", "FILE", "CASES", "X", "Y"))
    two.set_defaults(run=draw)
    options = parser.parse_args()
    options.run(options)


main()
