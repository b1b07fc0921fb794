"""A small validator of JSON values: the words of JSON Schema that tests/oracles/sarif.json is written in."""

import re

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}
WORDS = {
    "$ref", "type", "enum", "pattern", "minimum", "required", "properties", "additionalProperties", "items",
    "uniqueItems",
}  # fmt: skip


def mistakes(value, schema, definitions, where="log"):
    """Return what is wrong with a value, place by place."""
    assert set(schema) <= WORDS, f"{where}: words that this validator does not know"
    if "$ref" in schema:
        return mistakes(value, definitions[schema["$ref"]], definitions, where)
    kind = TYPES.get(schema.get("type"), object)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return [f"{where} is no {schema['type']}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} does not match {schema['pattern']}")
    if value_below(value, schema):
        found.append(f"{where} is below {schema['minimum']}")
    if isinstance(value, dict):
        found += [f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value]
        for key, inner in value.items():
            known = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            refused = known is False
            found += (
                [f"{where}.{key} is not known"] if refused else mistakes(inner, known, definitions, f"{where}.{key}")
            )
    if isinstance(value, list):
        if schema.get("uniqueItems") and any(one in value[:place] for place, one in enumerate(value)):
            found.append(f"{where} has an item twice")
        for place, inner in enumerate(value):
            found += mistakes(inner, schema.get("items", {}), definitions, f"{where}[{place}]")
    return found


def value_below(value, schema):
    return "minimum" in schema and value < schema["minimum"]
