"""Imports go one way through the house, and files stay short."""

import ast
from pathlib import Path

import privug

ROOT = Path(privug.__file__).parent

# Each room may import from the rooms before it, and from itself.
LAYERS = [
    {"escaping", "errors", "arguments", "estimate", "settings", "interruption", "progress"},
    {"model"},
    {"prior"},
    {"program"},
    {"observation"},
    {"inference"},
    {"leakage"},
    {"report"},
    {"attack"},
    {"mechanisms", "studies", "reidentification", "policy"},
    {"cli"},
]
RANK = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}
OPTIONAL = {
    "arviz",
    "dask",
    "jax",
    "joblib",
    "matplotlib",
    "numpyro",
    "nutpie",
    "opendp",
    "pandas",
    "polars",
    "pymc",
    "pytensor",
}
# The only rooms and files that import an optional library; they are themselves imported when first needed.
SEAMS = {
    "inference/chains/pymc_engine.py": {"pymc", "pytensor", "nutpie"},
    "inference/chains/pymc_model.py": {"pymc", "pytensor"},
    "inference/chains/numpyro_engine.py": {"numpyro", "jax"},
    "inference/chains/numpyro_model.py": {"numpyro", "jax"},
    "inference/chains/arviz_seam.py": {"arviz"},
    "report/plots.py": {"matplotlib"},
}


def sources():
    return [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_the_command_line_uses_public_names_only():
    for path in (ROOT / "cli").glob("*.py"):
        inner = [name for name in imported(path) if name.startswith("privug.") and not name.startswith("privug.cli")]
        assert inner == []


def test_optional_libraries_stay_outside_the_core():
    for path in sources():
        used = OPTIONAL & {name.split(".")[0] for name in imported(path)}
        assert used <= SEAMS.get(path.relative_to(ROOT).as_posix(), set()), path


def test_files_and_functions_stay_short():
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 50, f"{path}: {node.name}"
