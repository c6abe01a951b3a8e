"""The leaves of a schema, and objects that have one of them set. Pure: tests/acto/test_leaves.py tries it.

A path is a text such as "template.spec.containers[].env[].name"; "[]" is the first item of a list, "{}" the first key of a map.
"""
import copy
import json
import re
from collections import namedtuple

Leaf = namedtuple("Leaf", "path schema")
TOKEN = re.compile(r"\[\]|\{\}|[^.\[{]+")


def leaves(schema, path):
    """All leaves below path: [Leaf]."""
    if schema.get("properties"):
        return [leaf for name, child in schema["properties"].items() for leaf in leaves(child, f"{path}.{name}")]
    if schema.get("type") == "array":
        return leaves(schema["items"], path + "[]")
    if isinstance(schema.get("additionalProperties"), dict):
        return leaves(schema["additionalProperties"], path + "{}")
    return [Leaf(path, schema)]


def at(schema, path):
    """The schema below it, or None."""
    for token in TOKEN.findall(path):
        schema = schema.get("items") if token == "[]" else schema.get("additionalProperties") if token == "{}" \
            else schema.get("properties", {}).get(token)
        if not schema:
            return None
    return schema


def with_leaf(value, path, leaf, key, beside):
    """A copy of value with the leaf; key(path) is the key of a map, beside(path, is_new) what an object on the way needs besides."""
    value, walked = copy.deepcopy(value), ""
    tokens = TOKEN.findall(path)
    where, holder, slot = value, None, None
    for token in tokens:
        if token == "[]":
            where = where if isinstance(where, list) else []
            holder[slot] = where
            if not where:
                where.append(None)
            slot, holder = 0, where
        else:
            where = where if isinstance(where, dict) else {}
            if holder is not None:
                holder[slot] = where
            for name, needed in beside(walked).items():
                where.setdefault(name, needed)
            slot, holder = key(walked + "{}") if token == "{}" else token, where
        walked += token if token in ("[]", "{}") else f".{token}" if walked else token
        where = holder[slot] if isinstance(holder, list) else holder.get(slot)
    holder[slot] = leaf
    return value


def merge_patch(old, new):
    """RFC 7386: what makes the new out of the old."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**{name: None for name in old if name not in new},
            **{name: merge_patch(old[name], child) if isinstance(old.get(name), dict) else child
               for name, child in new.items() if json.dumps(old.get(name)) != json.dumps(child) or name not in old}}
