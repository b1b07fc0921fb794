"""Policies from TOML files: limits beside a program; predicates are expressions that only look at values."""

import ast
import builtins
import inspect
import linecache
import symtable
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privug.arguments import check_kind, shortened, shown
from privug.attack import Attack
from privug.errors import ArgumentError, PrivugError
from privug.observation.observations import Observation, between, equals, near
from privug.policy import clauses
from privug.policy.declared_checks import Check, paired
from privug.policy.policies import Clause, Policy

FUNCTIONS = frozenset(
    function.__name__
    for function in (
        abs, all, any, bool, enumerate, float, int, len, list, max, min, range, round, set, sorted, str, sum, tuple, zip
    )
)  # fmt: skip
"""The built-in functions that an expression may call."""
LONGEST = 2_000

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Name, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp,
    ast.comprehension, ast.Call, ast.keyword, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def function_of(text: str, where: str, names: tuple[str, ...] | None = None) -> Callable[..., Any]:
    """Return an expression as a function of the names in it: of those given, or of whatever it asks for.

    `where` says where the expression stands, for messages. Its source is registered in `linecache`, where tracing looks
    for it, under a name that holds all of it: a file that is read anew never changes what an older function was.

    >>> function_of("18 <= secret < 65 and secret != 40", "here", ("secret",))(40)
    False
    """
    tree = _parsed(text, where)
    for node in ast.walk(tree):
        if (wrong := _forbidden(node)) is not None:
            raise ArgumentError(f"{where}: {wrong} in {shortened(repr(text))}")
    source = ast.unparse(tree)
    asked = _free_names(source)
    if names is not None and (unknown := [name for name in asked if name not in names]):
        raise ArgumentError(f"{where}: {unknown[0]!r} is not known in {shortened(repr(text))}; use {', '.join(names)}")
    return _compiled(f"lambda {', '.join(names if names is not None else asked)}: ({source})\n", where)


def _parsed(text: str, where: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise ArgumentError(f"{where}: an expression of {len(text):,} characters; at most {LONGEST:,} are read")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise ArgumentError(f"{where}: {shortened(repr(text))} is no Python expression: {reason}") from None


def _forbidden(node: ast.AST) -> str | None:
    """Return what is wrong with a part of an expression, if anything is."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return None
        case ast.Call(func=function):
            return f"{ast.unparse(function)}(...) is called, but only {', '.join(sorted(FUNCTIONS))} can be,"
        case ast.Attribute(attr=name) if name.startswith("_"):
            return f"the attribute {name!r} begins with an underscore"
        case ast.Name(id=name, ctx=ast.Store()) if name in FUNCTIONS:
            return f"{name!r} is the name of a function and cannot be that of a value"
        case ast.Name(id=name) if name.startswith("__"):
            return f"the name {name!r} begins with underscores"
        case ast.comprehension(is_async=1):
            return "async is used"
    return None if isinstance(node, _ALLOWED) else f"{type(node).__name__} is used, which is not allowed"


def _free_names(source: str) -> tuple[str, ...]:
    """Return the names that an expression takes from outside, in alphabetical order, without built-in functions."""
    table = symtable.symtable(source, "<policy>", "eval")
    found = {symbol.get_name() for scope in _scopes(table) for symbol in scope.get_symbols() if symbol.is_global()}
    return tuple(sorted(found - FUNCTIONS))


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _compiled(source: str, where: str) -> Callable[..., Any]:
    file = f"<{where}: {source.strip()}>"
    linecache.cache[file] = (len(source), None, [source], file)  # without a time: not dropped as out of date
    function: Callable[..., Any] = eval(
        compile(source, file, "eval"), {"__builtins__": builtins, "__name__": "__policies__"}
    )
    return function


KINDS: dict[str, Callable[..., Clause]] = {
    "belief": clauses.belief,
    "change": clauses.change,
    "max_belief": clauses.max_belief,
    "bounds": clauses.bounds,
    "measure": clauses.measure,
}
OF_CHECKS = ("name", "attack", "kind", "observe", "except_probability")
"""Keys that are not arguments of the functions that make policies."""


@dataclass(frozen=True)
class Entry:
    """One `[[policy]]` of a file: the policy, the attacks that it is about (all if none are named), and the rest."""

    where: str
    policy: Clause
    attacks: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def read(path: str | Path) -> dict[str, Policy]:
    """Return the policies of a TOML file by their names; `docs/how-to/policy-files.md` describes such files.

    >>> import tempfile
    >>> import privug as pv
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print("policy = [{name='limit', kind='max_belief', at_most=0.8}]", file=file, flush=True)
    ...     print(pv.policy.read(file.name)["limit"])
    the belief in the likeliest value of the secret must be at most 0.8
    """
    return {name: entry.policy for name, entry in _entries(_as_path(path)).items()}


def read_checks(path: str | Path, attacks: Mapping[str, Attack]) -> list[Check]:
    """Return a check for each policy of a TOML file and each of the attacks that it names; of all if it names none.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print("policy = [{name='limit', kind='max_belief', at_most=0.8}]", file=file, flush=True)
    ...     print([check.name for check in pv.policy.read_checks(file.name, {"count": attack})])
    ['count/limit']
    """
    for attack in attacks.values():
        check_kind("read_checks", "attacks", attack, (Attack,))
    return list(_checks(_as_path(path), attacks))


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | Path):
        raise ArgumentError(f"the path of a TOML file is needed, not {shown(path)}")
    return Path(path)


def _checks(path: Path, attacks: Mapping[str, Attack]) -> Iterator[Check]:
    known = ", ".join(attacks) or "none at all"
    for name, entry in _entries(path).items():
        if not attacks:
            raise ArgumentError(f"{entry.where}: there is no pv.Attack that this policy could be about")
        for attack in entry.attacks or tuple(attacks):
            if attack not in attacks:
                raise ArgumentError(f"{entry.where}, attack: there is no attack {shown(attack)}; there is {known}")
            yield paired(attack, attacks[attack], name, entry.policy, **entry.options)


def _entries(path: Path) -> dict[str, Entry]:
    tables = _tables(path)
    entries: dict[str, Entry] = {}
    for number, table in enumerate(tables, 1):
        name = table.get("name", f"policy {number}")
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"{path}, policy {number}, name: a text is needed, not {shown(name)}")
        if name in entries:
            raise ArgumentError(f"{path}: two policies are called {name!r}")
        entries[name] = _entry(f"{path}, policy {name!r}", name, table)
    return entries


def _tables(path: Path) -> list[dict[str, Any]]:
    """Return the tables `[[policy]]`; anything else in the file is refused, so that no policy goes unread."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # wrong TOML, and bytes that are no text
        raise ArgumentError(f"{path} is no TOML file: {error}") from None
    if strange := [key for key in content if key != "policy"]:
        raise ArgumentError(f"{path}: {shown(strange[0])} is not known; policies are tables that begin with [[policy]]")
    tables = content.get("policy", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ArgumentError(f"{path}: policies are tables that begin with [[policy]], in two pairs of brackets")
    if not tables:
        raise ArgumentError(f"{path} has no policies; they are tables that begin with [[policy]]")
    return tables


def _entry(where: str, name: str, table: Mapping[str, Any]) -> Entry:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        said = "is missing; it is" if kind is None else f"is {shown(kind)}, but it must be"
        raise ArgumentError(f"{where}, kind: it {said} one of {', '.join(KINDS)}")
    given = {key: value for key, value in table.items() if key not in OF_CHECKS}
    options: dict[str, Any] = {}
    if "observe" in table:
        options["observe"] = _observation(f"{where}, observe", table["observe"])
    if "except_probability" in table:
        options["except_probability"] = _share(f"{where}, except_probability", table["except_probability"])
    return Entry(where, _policy(where, name, kind, given), _names(f"{where}, attack", table.get("attack", [])), options)


def _policy(where: str, name: str, kind: str, given: dict[str, Any]) -> Clause:
    make, arguments = KINDS[kind], dict(given)
    takes = {key: one for key, one in inspect.signature(make).parameters.items() if key != "name"}
    if kind == "measure":  # its own argument is called `name`, which here is that of the policy
        takes["measure"] = inspect.signature(make).parameters["name"]
    if strange := [key for key in arguments if key not in takes]:
        raise ArgumentError(f"{where}, {strange[0]}: a policy of kind {kind!r} takes {', '.join([*takes, *OF_CHECKS])}")
    if missing := [key for key, one in takes.items() if one.default is one.empty and key not in arguments]:
        raise ArgumentError(f"{where}, {missing[0]}: it is missing; a policy of kind {kind!r} needs it")
    for key, names in (("predicate", ("secret",)), ("for_each", None)):
        if key in arguments:
            arguments[key] = _function(f"{where}, {key}", arguments[key], names)
    if "predicate" in given:
        arguments.setdefault("claim", given["predicate"].strip())
    if "measure" in arguments:
        arguments["name"] = arguments.pop("measure")
    try:
        return make(**arguments)
    except PrivugError as error:
        raise ArgumentError(f"{where}: {error}") from None


def _function(where: str, text: Any, names: tuple[str, ...] | None) -> Callable[..., Any]:
    if not isinstance(text, str):
        raise ArgumentError(f"{where}: an expression in quotes is needed, not {shown(text)}")
    return function_of(text, where, names)


def _names(where: str, given: Any) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{where}: the name of an attack is needed, or a list of names, not {shown(given)}")
    return tuple(dict.fromkeys(names))


def _share(where: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise ArgumentError(f"{where}: a probability below 1 is needed, not {shown(given)}")
    return float(given)


def _observation(where: str, given: Any) -> Observation:
    """Return what the attacker sees: a value, { near = 55.3, within = 0.05 } or { between = [50, 60] }."""
    try:
        match given:
            case {"near": centre, "within": within, **rest} if not rest:
                return near(centre, within=within)
            case {"between": [low, high], **rest} if not rest:
                return between(low, high)
            case dict() | list():
                raise ArgumentError("a value is needed, or { near = 5, within = 1 }, or { between = [4, 6] }")
        return equals(given)
    except PrivugError as error:
        raise ArgumentError(f"{where}: {error}") from None
