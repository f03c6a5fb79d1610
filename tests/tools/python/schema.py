"""What of a document a JSON schema does not allow: the parts of the language that those in docs/ use, and no other."""

import json

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
NOTES = {"$schema", "$id", "$defs", "title", "description"}
RULES = {"type", "const", "enum", "required", "properties", "items", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum",
         "exclusiveMaximum", "anyOf", "oneOf", "$ref"}


def is_kind(value, name):
    return isinstance(value, KINDS[name]) and (name == "boolean" or not isinstance(value, bool))


def problems(value, schema, root=None, where="$", strict=True):
    """Lines that say where the value breaks the schema. `strict`: names that the schema does not have are wrong too."""
    root = root or schema
    unknown = set(schema) - RULES - NOTES
    assert not unknown, f"this checker does not know {unknown}"
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from problems(value, target, root, where, strict)
    kinds = schema.get("type", [])
    if kinds and not any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{where}: is {json.dumps(value)[:60]}; expected {kinds}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: is {value!r}; expected {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: is {value!r}; expected one of {schema['enum']}"
    for rule, most in (("oneOf", 1), ("anyOf", len(schema.get("anyOf", [])))):
        found = [list(problems(value, one, root, where, strict)) for one in schema.get(rule, [])]
        if found and not 1 <= sum(not one for one in found) <= most:
            yield f"{where}: fits none or several of {len(found)}: {found}"
    if is_kind(value, "number"):
        for rule, holds in (("minimum", lambda limit: value >= limit), ("maximum", lambda limit: value <= limit),
                            ("exclusiveMinimum", lambda limit: value > limit), ("exclusiveMaximum", lambda limit: value < limit)):
            if rule in schema and not holds(schema[rule]):
                yield f"{where}: is {value}; expected {rule} {schema[rule]}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{where}: has {len(value)} elements"
        for index, one in enumerate(value):
            yield from problems(one, schema.get("items", {}), root, f"{where}[{index}]", strict)
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: has no '{name}'"
        for name, one in value.items():
            if name in schema.get("properties", {}):
                yield from problems(one, schema["properties"][name], root, f"{where}.{name}", strict)
            elif strict and "properties" in schema:
                yield f"{where}: '{name}' is not in the schema"


def plan_problems(document, root):
    """Of a plan file; `root` is the project's folder."""
    found = list(problems(document, json.loads((root / "docs" / "plan.schema.json").read_text(encoding="utf-8"))))
    for name, plan in enumerate(document["plans"]):  # what a schema cannot say
        if (plan["role"] == "answer") != (name == 0):
            found.append(f"plan {name} has role {plan['role']}")
        for gpu in plan["gpus"]:
            found += [f"clock {one['clock']} of {gpu['label']} is not there" for one in gpu["segments"]
                      if one["clock"] is not None and one["clock"] >= len(document["clocks"])]
        for quantity, base in (("time", "default_time_s"), ("energy", "default_energy_j")):
            value = plan["promise"][f"{quantity}_s" if quantity == "time" else f"{quantity}_j"]
            change = 100 * (value / document["run"][base] - 1)
            if abs(change - plan["promise"][f"{quantity}_change_pct"]) > 1e-6:
                found.append(f"{quantity} of plan {name} changes by {change} %, not {plan['promise'][f'{quantity}_change_pct']}")
    return found
