"""Imports go one way through the house, and files stay short."""

import ast
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import privug
from privug.model.traits import OPERATIONS

ROOT = Path(privug.__file__).parent

# Each room may import from the rooms before it, and from itself.
LAYERS = [
    {
        "escaping",
        "errors",
        "arguments",
        "digits",
        "estimate",
        "scoping",
        "settings",
        "interruption",
        "markup",
        "output",
        "pictures",
        "progress",
    },
    {"runtime"},
    {"model"},
    {"prior"},
    {"program"},
    {"observation"},
    {"inference"},
    {"checkpoints", "leakage"},
    {"report"},
    {"attack", "tallies"},
    {"mechanisms", "reports", "studies", "reidentification", "policy", "tables"},
    {"explorer", "queries"},
    {"__main__", "cli"},
]
# Inside a room the same: each file or folder may import from those in the lines before it, and a folder from itself.
INSIDE = {
    "runtime": [
        "critical pickling",
        "processes",
        "cluster",
        "tasks",
    ],
    "model": [
        "traits",
        "node",
        "integers values",
        "operations",
        "failures propositions",
        "categories",
        "numpy_functions",
        "maybe plan",
        "variable",
        "row_offsets sparse table text",
        "plates",
        "plated_tables",
        "framed",
        "pandas_frames polars_frames structure",
        "batch graph",
        "conditions merging",
    ],
    "prior": [
        "family reading standard",
        "frame scalar",
        "continuous",
        "discrete",
        "choice",
        "conditional mixture",
        "plating population",
        "learning",
        "table",
    ],
    "program": [
        "external inputs logic outputs reachable",
        "traced",
        "sql",
        "calls",
        "batched staged",
        "tracing",
        "native paths predicates",
        "lifting",
    ],
    "inference": [
        "diagnostics graph",
        "intervals question",
        "workload",
        "measure solving",
        "belief case_plan",
        "joint",
        "answer",
        "sampling",
        "chains exact rare tallying",
        "engines",
    ],
    "inference/measure": [
        "density lattice_law",
        "curve",
        "piecewise_map piecewise_polynomial",
        "transforms",
        "convolution",
    ],
    "inference/exact": [
        "request",
        "finite gaussian",
        "rows",
        "counts",
        "engine",
    ],
    "policy": [
        "verdict",
        "policies",
        "boundary clause_questions noisy_outputs",
        "clauses output_levels people",
        "checking",
        "declared_checks monitoring output_classes worst_attacker",
        "check_reports enforcement policy_files",
        "explaining",
    ],
}
RANK = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}
OPTIONAL = {
    "arviz",
    "dask",
    "duckdb",
    "jax",
    "jinja2",
    "joblib",
    "matplotlib",
    "numpyro",
    "nutpie",
    "opendp",
    "pandas",
    "polars",
    "pymc",
    "pytensor",
    "sqlglot",
    "starlette",
    "uvicorn",
}
# The only rooms and files that import an optional library; they are themselves imported when first needed.
SEAMS = {
    "model/pandas_frames.py": {"pandas"},
    "model/polars_frames.py": {"polars"},
    "inference/chains/pymc_engine.py": {"pymc", "pytensor", "nutpie"},
    "inference/chains/numpyro_engine.py": {"numpyro", "jax"},
    "inference/chains/arviz_seam.py": {"arviz"},
    "program/sql/answering.py": {"duckdb", "polars"},
    "program/sql/lowering.py": {"polars", "sqlglot"},
    "program/sql/parsing.py": {"sqlglot"},
    "explorer/server.py": {"starlette", "uvicorn"},
    "report/plots/canvas.py": {"matplotlib"},
}


def sources():
    return [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported(path: Path) -> list[str]:
    names = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_no_room_looks_back():
    wrong = []
    for path in sources():
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "privug" and len(parts) > 1 and parts[1] in RANK and RANK[parts[1]] > RANK[room(path)]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_every_file_stands_in_a_known_room():
    assert {room(path) for path in sources()} <= set(RANK)


def test_imports_go_one_way_inside_rooms():
    for name, lines in INSIDE.items():
        place = {unit: number for number, line in enumerate(lines) for unit in line.split()}
        files = [path for path in (ROOT / name).rglob("*.py") if path != ROOT / name / "__init__.py"]
        units = {path: path.relative_to(ROOT / name).parts[0].removesuffix(".py") for path in files}
        assert set(units.values()) == set(place)
        wrong = [
            f"{path.relative_to(ROOT)} imports {found}"
            for path, unit in units.items()
            for found in imported(path)
            if found.startswith(prefix := f"privug.{name.replace('/', '.')}.")
            and (other := found.removeprefix(prefix).split(".")[0]) != unit
            and place[other] >= place[unit]
        ]
        assert wrong == []


def test_no_two_files_need_each_other():
    files = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in sources()}
    needs = {
        name: {found if found in files else found.rpartition(".")[0] for found in imported(path)} & set(files) - {name}
        for name, path in files.items()
    }
    TopologicalSorter(needs).prepare()  # raises CycleError


# Beside public names, the command line may use what needs nothing of Privug: how files and pages are written.
OPEN_TO_THE_COMMAND_LINE = {"privug.cli", "privug.markup", "privug.output"}


def test_the_command_line_uses_public_names_only():
    for path in (ROOT / "cli").glob("*.py"):
        used = {".".join(name.split(".")[:2]) for name in imported(path) if name.startswith("privug.")}
        assert used <= OPEN_TO_THE_COMMAND_LINE, path


def test_optional_libraries_stay_outside_the_core():
    for path in sources():
        used = OPTIONAL & {name.split(".")[0] for name in imported(path)}
        assert used <= SEAMS.get(path.relative_to(ROOT).as_posix(), set()), path


def test_files_and_functions_stay_short():
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 900, path
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                documented = ast.get_docstring(node, clean=False) is not None
                start = node.body[0].end_lineno if documented else node.lineno
                assert (node.end_lineno or 0) - (start or 0) <= 50, f"{path}: {node.name}"


# Where such names mean something else: methods of arrays that compiled code may call, methods that
# change a container, methods of data frames.
NAMES_OF_OTHER_THINGS = {
    "explorer/answers.py",  # scales of sliders
    "explorer/parameters.py",
    "policy/enforcement.py",  # ways to change a release
    "program/native/passes.py",
    "program/traced/calling.py",
    "program/traced/frames/reductions.py",
    *(f"program/traced/frames/pandas/{name}.py" for name in ("frame", "functions", "group", "series", "values")),
    *(f"program/traced/frames/polars/{name}.py" for name in ("column", "expressions", "frame")),
}


def operations_told_apart(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names of operations by which code tells them apart: in comparisons, patterns, tables of several."""
    found = []
    for node in nodes:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                parts, least = [part for side in sides for part in getattr(side, "elts", [side])], 1
            case ast.MatchValue():
                parts, least = [node.value], 1
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
                parts, least = node.args, 1
            case ast.Dict():
                parts, least = node.keys, 2
            case ast.Set() | ast.Tuple() | ast.List():
                parts, least = node.elts, 2
            case _:
                continue
        names = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in OPERATIONS]
        if len(names) >= least:
            found.append(", ".join(names))
    return list(dict.fromkeys(found))


def test_operations_are_told_apart_by_the_table_alone():
    for path in sources():
        if path.name != "traits.py" and path.relative_to(ROOT).as_posix() not in NAMES_OF_OTHER_THINGS:
            assert operations_told_apart(nodes(path)) == [], path


def test_operations_that_are_told_apart_by_name_are_found():
    text = """
if operation.name == "add" or name.startswith("logical_not") or name in {"floor", "ceil"}:
    table = {"exp": 1, "log": 2}
    made = Elementwise("add", np.add)
match operation.name:
    case "multiply" | "dot":
        pass
"""
    assert sorted(operations_told_apart(ast.walk(ast.parse(text)))) == [
        "add",
        "dot",
        "exp, log",
        "floor, ceil",
        "logical_not",
        "multiply",
    ]
