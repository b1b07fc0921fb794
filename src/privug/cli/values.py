"""Values on the command line: Python's literals, calls of Privug's functions, and names of the user's file."""

import ast
from collections.abc import Mapping
from typing import Any

import privug as pv
from privug.cli.refusal import Refusal


def literal(text: str) -> Any:
    """Return a Python literal, or else the text as it is."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()


def parameter(text: str) -> tuple[str, list[Any]]:
    """Return the name and the values of `name=value,value,...`.

    >>> parameter("epsilon=0.1,1,10"), parameter("region=north,'north, west'")
    (('epsilon', [0.1, 1, 10]), ('region', ['north', 'north, west']))
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip().isidentifier() or not values.strip():
        raise Refusal(f"--over {text}: write a parameter and its values, as in --over epsilon=0.1,1,10")
    together = literal(f"[{values}]")
    listed = together if isinstance(together, list) else [literal(value) for value in _split(values)]
    return name.strip(), listed


def _split(values: str) -> list[str]:
    """Split at commas that stand in no quotation marks."""
    parts, quote = [""], ""
    for character in values:
        if character in "'\"":
            quote = "" if quote == character else quote or character
        if character == "," and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def observation(text: str, names: Mapping[str, Any]) -> Any:
    """Return what an attacker sees: a value, a call such as near(55.3, within=0.05), or a name of the user's file.

    >>> str(observation("(3, 'x')", {})), str(observation("near(3, within=1)", {}))
    ("the output is (3, 'x')", 'the output is 3, give or take 1')
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return pv.equals(text)
    known = isinstance(tree, ast.Call) or text.strip() in names
    seen = _evaluated(tree, names) if known else literal(text)
    return seen if isinstance(seen, pv.Observation) or (known and isinstance(seen, dict)) else pv.equals(seen)


def _evaluated(tree: ast.expr, names: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="pv"), attr=name)):
            if name not in pv.__all__:
                raise Refusal(f"--observe: pv has no {name!r}; write a value, near(3, within=1) or between(1, 5)")
            positional = [_evaluated(argument, names) for argument in tree.args]
            return getattr(pv, name)(*positional, **{str(k.arg): _evaluated(k.value, names) for k in tree.keywords})
        case ast.Name(id=name) if name in names:
            return names[name]
        case _:
            try:
                return ast.literal_eval(tree)
            except ValueError:
                raise Refusal(f"--observe: {ast.unparse(tree)!r} is neither a value nor a name of the file") from None
