#!/usr/bin/env python3
"""Operators beside measurements: docs/accuracy.md.

    bench/tables/accuracy.py build/release/rubato > docs/accuracy.md

Each row of models/data/measured/operators/operators.csv is one operator of known shape on one GPU. Rubato says its time, power and clock from the
shape alone; the page has mean absolute errors of each group, beside what NeuSight published for the same rows.
`--errors` prints the errors of groups as JSON, for a test.
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEASURED = ROOT / "models/data/measured/operators/operators.csv"
BYTES = {"fp32": 4, "tf32": 4, "fp8": 1}
QUERY = "SELECT name, time_s, energy_j, effective_core_mhz FROM v_cells WHERE clock = '{}'"
CAPPED = ("rtx-5000-ada",)  # measured under other limits than their own
ATTENTION = ("batch", "q_tokens", "kv_tokens", "heads", "kv_heads", "head_dim")


def kernel(name, row):
    """A row as a kernel of a trace: its shape, and the work that follows from it."""
    made = {"name": name, "label": row["label"], "class": row["class"], "pass": "forward", "dtype": row["dtype"], "work_source": "derived"}
    size = BYTES.get(row["dtype"], 2)
    if row["class"].startswith("gemm"):
        m, n, k, b = (int(row[c]) for c in ("m", "n", "k", "batch"))
        made["gemm"] = {"m": m, "n": n, "k": k, "batch": b}
        made |= {"flops": 2.0 * m * n * k * b, "dram_bytes": float(size * b * (m * k + k * n + m * n))}
    elif row["class"] == "attention":
        shape = {c: int(row[c]) for c in ATTENTION} | {"causal": row["causal"] == "1"}
        b, q, t, h, kv, d = (shape[c] for c in ATTENTION)
        pairs = q * t - q * (q - 1) / 2 if shape["causal"] else q * t
        made["attention"] = shape
        made |= {"flops": 4.0 * b * h * pairs * d, "dram_bytes": 2.0 * size * b * d * (h * q + kv * t)}
    else:
        made["dram_bytes"] = float(row["bytes"])
        made["flops"] = float(row["flops"] or 0)
    return made


def rubato(program, *options):
    return subprocess.run([program, *options], check=True, text=True, stdout=subprocess.PIPE).stdout


def modelled(program, spec, memory, core, limit, rows):
    """Time (s), power (W) and clock (MHz) of rows at one clock under one power limit (W)."""
    with tempfile.TemporaryDirectory() as folder:
        trace, database = pathlib.Path(folder, "t.json"), f"{folder}/t.db"
        names = [f"k{i}" for i in range(len(rows))]
        trace.write_text(json.dumps({
            "schema": 1, "name": "rows", "provenance": {"generator": "accuracy.py", "source": "", "options": ""},
            "kernels": [kernel(n, r) for n, r in zip(names, rows)],
            "segments": [{"name": "all", "repeat": 1, "launches": names}]}))
        rubato(program, "explore", str(trace), "--gpu", spec, "--per", "run", "--slack", "0", "--clocks", f"mem={memory} core={core}", "--power-limit", str(limit), "--db", database, "--quiet")
        cells = json.loads(rubato(program, "query", "--db", database, QUERY.format(f"{memory}/{core}"), "--json"))
    return {c["name"]: (c["time_s"], c["energy_j"] / c["time_s"], c["effective_core_mhz"]) for c in cells}


def measure(program):
    """Rows of the file, each with what Rubato says: model_us, model_w, model_mhz."""
    rows = list(csv.DictReader(MEASURED.open()))
    calls = {}
    for row in rows:
        calls.setdefault((row["spec"], row["core_mhz"], row["power_cap_w"] if row["spec"] in CAPPED else ""), []).append(row)
    for (spec, core_mhz, cap), of in calls.items():
        known = json.loads((ROOT / f"models/data/{spec}.json").read_text())
        found = modelled(program, spec, known["default_clock"]["mem"], core_mhz or "auto", cap or known["power_limit"]["limit_w"], of)
        for i, row in enumerate(of):
            seconds, row["model_w"], row["model_mhz"] = found[f"k{i}"]
            us = seconds * 1e6 + float(row["apart_us"] or 0)
            if row["host_us"]:
                norm = float(row["host_norm"])
                us = (us ** norm + float(row["host_us"]) ** norm) ** (1 / norm)
            row["model_us"] = us
    return rows


def mean_error(rows, model, seen):
    errors = [100 * abs(float(r[model]) / float(r[seen]) - 1) for r in rows if r[seen] and r[model]]
    return statistics.fmean(errors) if errors else math.nan


COLUMNS = [("Time", "model_us", "time_us"), ("Power", "model_w", "power_w"), ("Clock", "model_mhz", "clock_mhz"),
           ("NeuSight", "neusight_us", "time_us"), ("Roofline", "roofline_us", "time_us"), ("Habitat", "habitat_us", "time_us")]


def groups(rows):
    found = {}
    for row in rows:
        found.setdefault((row["group"], row["spec"]), []).append(row)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--errors", action="store_true")
    options = parser.parse_args()
    rows = measure(options.program)
    table = [(group, spec, len(of), [mean_error(of, model, seen) for _, model, seen in COLUMNS]) for (group, spec), of in sorted(groups(rows).items())]
    if options.errors:
        print(json.dumps([{"group": g, "spec": s, "rows": n} | {c[0]: e for c, e in zip(COLUMNS, errors) if e == e} for g, s, n, errors in table], indent=1))
        return
    print((ROOT / "bench/tables/accuracy.md").read_text())
    print("| Operators | Spec | Rows | " + " | ".join(c[0] for c in COLUMNS) + " |\n|" + " --- |" * (3 + len(COLUMNS)))
    for group, spec, count, errors in table:
        print(f"| {group} | {spec} | {count} | " + " | ".join("-" if e != e else f"{e:.1f}" for e in errors) + " |")


if __name__ == "__main__":
    main()
