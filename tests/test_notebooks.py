"""The notebooks run, cell by cell, and what a cell shows is shown."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples" / "notebooks").glob("*.ipynb"))


def run(notebook: Path, folder: Path) -> list[object]:
    """Run the cells in order, each from a file of its own; return what they end in, as a notebook shows it."""
    session: dict[str, object] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []  # none that may be out of date
        source = "".join(cell["source"])
        file = folder / f"{notebook.stem}_{number}.py"
        file.write_text(source, encoding="utf-8")
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(file), "exec"), session)
        if last is not None:
            found.append(eval(compile(ast.Expression(last.value), str(file), "eval"), session))
    return found


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    shown = [value for value in run(notebook, tmp_path) if value is not None]
    html = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert html
    assert all(text.startswith("<") for text in html)


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["choosing_epsilon", "first_report", "is_my_table_anonymous"]
