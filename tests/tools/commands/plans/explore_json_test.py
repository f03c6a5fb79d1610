#!/usr/bin/env python3
"""`rubato explore --json` against docs/explore.schema.json, for traces, tables of a trace and captured runs; and that the schema
can refuse: documents with a name, type or row too many do not pass.

Usage: explore_json_test.py RUBATO SOURCE_DIR
"""
import copy
import json
import subprocess
import sys
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SCHEMA = json.loads((SOURCE / "docs/explore.schema.json").read_text(encoding="utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "patternProperties", "required", "additionalProperties",
         "items", "enum", "anyOf", "minimum", "maximum", "minItems", "maxItems"}


def is_of(value, kind):
    if kind in ("number", "integer"):
        return isinstance(value, (int, float) if kind == "number" else int) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


def problems(value, schema, where="$"):
    """What of JSON Schema (2020-12) the file uses; raises on what it does not know."""
    if unknown := set(schema) - KNOWN:
        raise ValueError(f"the validator does not know {unknown}")
    if "$ref" in schema:
        return problems(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    if "anyOf" in schema:
        found = [problems(value, one, where) for one in schema["anyOf"]]
        return [] if [] in found else min(found, key=len)
    kinds = schema.get("type", [])
    if kinds and not any(is_of(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{where} is {value!r}; expected {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}; expected one of {schema['enum']}")
    if is_of(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{where} is {value}; expected {schema.get('minimum')} to {schema.get('maximum')}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where} has {len(value)} rows")
        for i, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{where}[{i}]")
    if isinstance(value, dict):
        found += [f"{where} lacks {name}" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            if name in schema.get("properties", {}):
                found += problems(item, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                found.append(f"{where} has {name}, which is unknown")
    return found


def explored(*arguments):
    done = subprocess.run([RUBATO, "explore", *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and not done.stderr, (arguments, done.stderr)
    return json.loads(done.stdout)


def without_descriptions(schema, where="$"):
    """Every name of a row is explained."""
    for name, one in schema.get("properties", {}).items():
        if "description" not in one and one.get("type") != "array":
            yield f"{where}.{name}"
        yield from without_descriptions(one.get("items", {}), f"{where}.{name}")


def main():
    failures = []
    documents = {
        "trace": explored("gpt3-xl", "--slack", "2%", "--list", "passes,kernels"),
        "segment": explored("gpt3-xl", "--gpu", "a100-sxm4-80gb", "--granularity", "segment", "--switching", "spec", "--slack", 2),
        "goals": explored("gpt3-xl", "--goal", "edp,energy", "--slack", "0,any", "--granularity", "iteration"),
        "costs": explored("gpt3-xl", "--goal", "energy,cost", "--prices", "kwh=0.12,gpu-hour=0.05", "--host-power", 100),
        "captured cost": explored(SOURCE / "docs/examples/run.pt.trace.json.gz", "--granularity", "iteration,segment", "--goal", "energy,cost",
                                  "--prices", "kwh=0.12,pue=1.2"),
        "captured": explored(SOURCE / "docs/examples/run.pt.trace.json.gz", "--granularity", "iteration,pass,segment", "--slack", 1, "--list", "kernels"),
    }
    documents["stages"] = explored("gpt3-small", "--stages", 2, "--microbatches", 2, "--goal", "energy,edp", "--list", "passes,kernels", "--disturb", "jitter=0.02")
    documents["profile"] = explored(SOURCE / "docs/examples/gpt3-175b-a100.csv", "--blocked-power", 84, "--slack", "-90,5")
    for name, document in documents.items():
        failures += [f"{name}: {problem}" for problem in problems(document, SCHEMA)]
    failures += [f"no description: {name}" for part in SCHEMA["$defs"].values() for name in without_descriptions(part)]

    for change in (lambda d: d.update(more=[]), lambda d: d.pop("plans"), lambda d: d["plans"][0].update(time_s="fast"),
                   lambda d: d["plans"][0].pop("energy_change_pct"), lambda d: d["run"][0].update(program_version=None), lambda d: d["run"].append({}),
                   lambda d: d["plans"][0].update(status="good")):
        for name in ("trace", "captured", "stages"):
            broken = copy.deepcopy(documents[name])
            change(broken)
            if not problems(broken, SCHEMA):
                failures.append(f"the schema lets a broken document of a {name} pass")
    print("\n".join([*failures[:40], f"{len(failures)} problems"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
