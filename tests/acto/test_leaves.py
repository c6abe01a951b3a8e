"""The pure parts of acto, on our own CustomResourceDefinition: `python3 tests/acto/test_leaves.py` prints TAP lines."""
import json
import sys

import leaves
import template_values

number = 0
SCHEMA = {"properties": {
    "count": {"type": "integer"}, "texts": {"type": "array", "items": {"type": "string"}}, "map": {"additionalProperties": {"type": "string"}},
    "items": {"type": "array", "items": {"required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}
PATHS = ["s.count", "s.texts[]", "s.map{}", "s.items[].name", "s.items[].size"]


def check(name, holds):
    global number
    number += 1
    print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    return holds


def with_leaf(value, path, leaf):
    return leaves.with_leaf(value, path, leaf, lambda path: "k", lambda path: {"name": "n"} if path == "s.items[]" else {})


def paths():
    found = leaves.leaves(SCHEMA, "s")
    passed = check("all leaves", [leaf.path for leaf in found] == PATHS)
    passed &= check("each is at its path", all(leaves.at({"properties": {"s": SCHEMA}}, leaf.path) is leaf.schema for leaf in found))
    passed &= check("none is where nothing is", leaves.at(SCHEMA, "s.none") is None)
    return passed


SET = [
    ({}, "s.count", 3, {"s": {"count": 3}}),
    ({}, "s.texts[]", "a", {"s": {"texts": ["a"]}}),
    ({"s": {"texts": ["a", "b"]}}, "s.texts[]", "c", {"s": {"texts": ["c", "b"]}}),
    ({}, "s.map{}", "a", {"s": {"map": {"k": "a"}}}),
    ({}, "s.items[].size", 3, {"s": {"items": [{"name": "n", "size": 3}]}}),
    ({"s": {"items": [{"name": "m"}]}}, "s.items[].size", 3, {"s": {"items": [{"name": "m", "size": 3}]}}),
]
PATCHES = [({"a": 1}, {"a": 1}), ({"a": 1, "b": 2}, {"b": 3}), ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}), ({"a": [1]}, {"a": [2]}),
           ({}, {"a": {"b": 1}}), ({"a": {"b": 1}}, {"a": 1}), ({"a": True}, {"a": 1})]


def apply(value, patch):
    """As an API server does: RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for name, child in patch.items():
        if child is None:
            value.pop(name, None)
        else:
            value[name] = apply(value.get(name), child)
    return value


def objects():
    passed = True
    for before, path, leaf, after in SET:
        kept = json.dumps(before)
        passed &= check(f"{path} in {before}", with_leaf(before, path, leaf) == after and json.dumps(before) == kept)
    for old, new in PATCHES:
        got = apply(old, leaves.merge_patch(old, new))
        passed &= check(f"{old} becomes {new}", json.dumps(got, sort_keys=True) == json.dumps(new, sort_keys=True))
    return passed


def values():
    env = {"type": "array", "items": {"required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}}
    schema = {"properties": {"spec": {"properties": {"containers": {"type": "array", "items": {"properties": {"env": env}}}}}}}
    path = "spec.containers[].env[].value"
    made = leaves.with_leaf(template_values.base(path), path, "a1", template_values.key, template_values.beside(schema, path))
    wanted = [{"name": "pytorch", "image": "image:1", "env": [{"name": "E", "value": "a1"}]}]
    passed = check("a variable comes with a name", made["spec"]["containers"] == wanted)
    for kind, good in template_values.BY_TYPE.items():
        bad = template_values.BAD_BY_TYPE[kind]
        passed &= check(f"bad values of {kind} are none of the good ones", not set(map(repr, good)) & set(map(repr, bad)))
    return passed


if __name__ == "__main__":
    results = paths(), objects(), values()
    print(f"1..{number}")
    sys.exit(0 if all(results) else 1)
