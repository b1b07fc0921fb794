"""What is known of a distribution stands in its entry: no module outside of `prior/` knows one by its name."""

import ast
import importlib
from pathlib import Path

import pytest

import privug
from privug.prior.family import Family
from privug.prior.scalar import ScalarFamily

ROOT = Path(privug.__file__).parent
MODULES = [importlib.import_module(f"privug.prior.{path.stem}") for path in (ROOT / "prior").glob("*.py")]
CLASSES = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Family)
}
ENTRIES = {name: value for module in MODULES for name, value in vars(module).items() if isinstance(value, Family)}
NAMES = {family.name for family in ENTRIES.values()} | {
    family.name for family in CLASSES.values() if isinstance(getattr(family, "name", None), str)
}
STRUCTURAL = {"Family", "ScalarFamily"}  # what all families are, or all of single numbers
OUTSIDE = [path for path in ROOT.rglob("*.py") if path.parent != ROOT / "prior" and path != ROOT / "__init__.py"]


def mentioned(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def annotations(nodes: list[ast.AST]) -> set[int]:
    """Return the nodes of types, which may be written as strings."""
    roots = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    return {id(node) for root in roots if isinstance(root, ast.AST) for node in ast.walk(root)}


def questions_of_families(tree: ast.AST) -> list[str]:
    """Return where a program asks which family something is."""
    nodes = list(ast.walk(tree))
    found, types = [], annotations(nodes)
    own = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in types:
            found.append(f"line {node.lineno}: {node.value!r}")
        asked: set[str] = set()
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = mentioned(node) & (CLASSES.keys() - STRUCTURAL)
        elif isinstance(node, ast.MatchClass):
            asked = mentioned(node.cls) & (CLASSES.keys() - STRUCTURAL)
        elif isinstance(node, ast.Compare):
            asked = mentioned(node) & ((ENTRIES.keys() | CLASSES.keys()) - own)
        found += [f"line {node.lineno}: a test for {name}" for name in sorted(asked)]
    return found


def test_no_engine_asks_which_family_something_is():
    found = {
        path.relative_to(ROOT).as_posix(): questions_of_families(ast.parse(path.read_text("utf-8"))) for path in OUTSIDE
    }
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "program",
    [
        "if family.name == 'Laplace': pass",
        "if family is NORMAL: pass",
        "if family in (GAMMA, BETA): pass",
        "isinstance(family, ChoiceFamily | MixtureFamily)",
        "match family:\n    case MvNormalFamily(): pass",
        "TABLE = {'Poisson': 1}",
    ],
)
def test_such_a_test_would_be_noticed(program):
    assert questions_of_families(ast.parse(program))


def test_every_entry_is_known_by_its_name_alone():
    scalar = [family for family in ENTRIES.values() if isinstance(family, ScalarFamily)]
    assert len({family.name for family in scalar}) == len({id(family) for family in scalar}) >= 17
