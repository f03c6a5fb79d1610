#!/usr/bin/env python3
"""Draws the phases of a frontier (its vertices but one) against microbatches, for docs/pipeline.md.

Usage: pipeline_phases.py RUBATO PROFILE BLOCKED_POWER_W OUT.svg
"""
import json
import math
import subprocess
import sys

RUBATO, PROFILE, BLOCKED, OUT = sys.argv[1:]
COUNTS = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 330, 70, 20, 40, 50


def phases(microbatches):
    done = subprocess.run([RUBATO, "pipeline", "front", "--profile", PROFILE, "--blocked-power", BLOCKED, "--microbatches",
                           str(microbatches), "--exact", "--json"], capture_output=True, text=True, check=True)
    return len(json.loads(done.stdout)) - 1


points = [(count, phases(count)) for count in COUNTS]
most = 100 * math.ceil(max(p for _, p in points) / 100)
low, high = math.log(COUNTS[0]), math.log(COUNTS[-1])


def x(count):
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(count) - low) / (high - low)


def y(value):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most


svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
       'font-family="system-ui, sans-serif" font-size="12" fill="#555">',
       f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
       f'<text x="{LEFT}" y="22">phases of the exact frontier, 8 stages, 1F1B</text>']
for tick in range(0, most + 1, 200):
    svg.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
               f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
for count in COUNTS:
    svg.append(f'<text x="{x(count):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{count}</text>')
line = " ".join(f"{x(c):.1f},{y(p):.1f}" for c, p in points)
svg.append(f'<polyline points="{line}" fill="none" stroke="#2166ac" stroke-width="1.8"/>')
for count, value in points:
    svg.append(f'<circle cx="{x(count):.1f}" cy="{y(value):.1f}" r="3.5" fill="#2166ac"><title>{value}</title></circle>')
svg.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">microbatches</text></svg>')
with open(OUT, "w", encoding="utf-8") as out:
    out.write("\n".join(svg) + "\n")
print(points)
