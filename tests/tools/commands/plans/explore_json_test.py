#!/usr/bin/env python3
"""`rubato explore --json` against docs/explore.schema.json, for traces, tables of a trace and captured runs; and that the schema
can refuse: documents with a name, type or row too many do not pass.

Usage: explore_json_test.py RUBATO SOURCE_DIR
"""
import copy
import json
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOOLS), str(TOOLS / "python")]
from checks import check, exit_status, run  # noqa: E402
from schema import problems  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SCHEMA = json.loads((SOURCE / "docs/explore.schema.json").read_text(encoding="utf-8"))
TABLES = "passes,kernels,segments"


def explored(*arguments):
    done = run(RUBATO, "explore", *arguments, "--json", "--quiet")
    check(f"{arguments}: works and says nothing else", done.returncode == 0 and not done.stderr, done.stderr)
    return json.loads(done.stdout)


def broken_laws(name, document):
    """What passes, kernels and segments of one plan sum to is the same, and all plans are beside the same default clocks."""
    def plan(row):
        return row["granularity"], row["goal"], row["slack_pct"]

    def same(a, b):
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-9)

    tables = {table: document[table] for table in TABLES.split(",") if "clock" in document.get(table, [{}])[0] and "time_s" in document[table][0]}
    found = {plan(row) for row in document["plans"] if row["goal"] != "default" and row["energy_j"] is not None}
    before = set()
    for table, rows in tables.items():
        if {plan(row) for row in rows} != found:
            yield f"{name}: {table} are of {len({plan(row) for row in rows})} plans, not of {len(found)}"
    for key in found:
        for value in ("time_s", "energy_j"):
            sums = {table: sum(row.get("repeats", 1) * row[value] for row in rows if plan(row) == key) for table, rows in tables.items()}
            if document["run"][0]["kind"] == "capture":
                sums.pop("segments", None)  # of one step, with the time between launches
            if sums and not all(same(one, sums["passes"]) for one in sums.values()):
                yield f"{name}, {key}: {value} of {sums}"
            change = value.rsplit("_", 1)[0] + "_change_pct"
            before.add((value, round(sum(row[value] / (1 + row[change] / 100) for row in tables.get("passes", []) if plan(row) == key), 6)))
        if document["run"][0]["kind"] == "trace" and tables:
            whole = next(row for row in document["plans"] if plan(row) == key)
            if not same(whole["energy_j"], sum(row["energy_j"] for row in tables["passes"] if plan(row) == key)):
                yield f"{name}, {key}: energy of the plan"
    if len(before) > 2:
        yield f"{name}: several defaults: {before}"


def without_descriptions(schema, where="$"):
    """Every name of a row is explained."""
    for name, one in schema.get("properties", {}).items():
        if "description" not in one and one.get("type") != "array":
            yield f"{where}.{name}"
        yield from without_descriptions(one.get("items", {}), f"{where}.{name}")


def main():
    documents = {
        "trace": explored("gpt3-xl", "--slack", "2%", "--list", TABLES),
        "segment": explored("gpt3-xl", "--gpu", "a100-sxm4-80gb", "--per", "segment", "--switching", "spec", "--slack", 2),
        "goals": explored("gpt3-xl", "--goal", "edp,energy", "--slack", "0,any", "--per", "run"),
        "costs": explored("gpt3-xl", "--goal", "energy,cost", "--prices", "kwh=0.12,gpu-hour=0.05", "--host-power", 100),
        "captured cost": explored(SOURCE / "docs/examples/run.pt.trace.json.gz", "--per", "run,segment", "--goal", "energy,cost",
                                  "--prices", "kwh=0.12,pue=1.2"),
        "captured": explored(SOURCE / "docs/examples/run.pt.trace.json.gz", "--per", "run,pass,segment", "--slack", 1, "--list", TABLES),
    }
    documents["stages"] = explored("gpt3-small", "--stages", 2, "--microbatches", 2, "--goal", "energy,edp", "--list", "passes,segments", "--disturb", "jitter=0.02")
    documents["kernels of stages"] = explored("gpt3-small", "--stages", 2, "--microbatches", 2, "--per", "kernel", "--odds", 0, "--slack", 5, "--list", TABLES)
    documents["profile"] = explored(SOURCE / "docs/examples/gpt3-175b-a100.csv", "--blocked-power", 84, "--slack", "-90,5", "--list", "passes,segments")
    documents["ranks"] = explored(*sorted((SOURCE / "docs/examples/pipeline").glob("rank*.gz")), "--per", "run,gpu", "--slack", 20, "--clocks", "coarse", "--list", TABLES)
    for name, document in documents.items():
        broken = list(broken_laws(name, document))
        check(f"{name}: sums of its tables agree", not broken, broken[:5])
        found = list(problems(document, SCHEMA))
        check(f"{name}: is as the schema says", not found, found[:5])
    found = [name for part in SCHEMA["$defs"].values() for name in without_descriptions(part)]
    check("every name of a row is explained", not found, found)

    newer = copy.deepcopy(documents["trace"])
    newer.update(more=[{"x": 1}])
    newer["plans"][0].update(more=1)
    check("the schema lets names of a newer program pass", not list(problems(newer, SCHEMA, strict=False)))
    check("names that nobody described do not pass here", list(problems(newer, SCHEMA)))
    for change in (lambda d: d.update(schema=2), lambda d: d.pop("schema"), lambda d: d.pop("plans"), lambda d: d["plans"][0].update(time_s="fast"),
                   lambda d: d["plans"][0].pop("energy_change_pct"), lambda d: d["run"][0].update(program_version=None), lambda d: d["run"].append({}),
                   lambda d: d["plans"][0].update(status="good")):
        for name in ("trace", "captured", "stages"):
            broken = copy.deepcopy(documents[name])
            change(broken)
            check(f"the schema refuses a broken document of a {name}", list(problems(broken, SCHEMA, strict=False)))
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
