"""The harness of the benchmarks on trivial tasks: what happens to cells, ratios, exponents and what is written."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from harness import text  # noqa: E402
from harness.measuring import Patience, measure  # noqa: E402
from harness.results import CellResult, Spread, TaskResult, fit, growth, machine, merged, to_json  # noqa: E402
from harness.tasks import TOOLS, Growth, register  # noqa: E402

from benchmark_tasks import TASKS  # noqa: E402

ABOUT = {"command": "python benchmarks/run.py", "quick": True, "load": [0.0, 1.0], "minutes": 0.1}


# Importing a tool's library would take longer than all the rest; what is measured here needs none.
@pytest.fixture(scope="module")
def trivial():
    task = replace(TASKS["trivial"], module="benchmark_tasks")
    said = []
    light = {name: task.cells[name] for name in ("numpy", "loop", "random-numbers", "brute-force", "pymc")}
    result = measure(replace(task, cells=light), Patience(repeats=2, limit=0.5), tell=said.append)
    return result, said


def test_cells_are_right_wrong_crashed_too_slow_or_empty(trivial):
    result, said = trivial
    found = {name: (cell.status, cell.reason) for name, cell in result.cells.items()}
    assert found["numpy"] == ("wrong", "off by 0.5, more than 1e-06")
    assert found["loop"] == ("crashed", "ValueError: not today")
    assert found["random-numbers"] == ("crashed", "died: SIGABRT")
    assert found["brute-force"] == ("exceeded", "over 1.5 s")
    assert found["pymc"] == ("cannot", "no gradient")
    assert found["qif"] == ("cannot", "channels only")
    assert len(result.cells["numpy"].seconds) == 2
    assert "ValueError: not today" in said[0]


def cell(tool, seconds, **more):
    made = CellResult(tool, "ok", seconds=seconds, fixed=[0.1] * len(seconds), first=1.0, memory=2**20)
    return replace(made, **more)


def measured(**cells):
    return TaskResult(TASKS["trivial"], {name: CellResult(name, "cannot", "no") for name in TOOLS} | cells)


def test_ratios_pair_turns_and_count_samples_up_to_the_same_precision():
    result = measured(
        privug=cell("privug", [1.0, 2.0, 4.0], values=[1.0]),
        numpy=cell("numpy", [3.0, 8.0, 8.0]),
        nutpie=cell("nutpie", [0.5], values=[1.1], effective=400.0),
    )
    result.judge()
    assert result.ratio("numpy") == Spread(3.0, 2.5, 3.5)
    # 0.1 s of tuning, and 0.4 s for 400 of the thousand effective samples wanted
    assert result.ratio("nutpie").median == pytest.approx(1.1)
    assert result.ratio("privug") is None
    assert (result.cells["privug"].error, result.cells["privug"].status) == (0.0, "ok")
    assert result.cells["nutpie"].status == "ok"  # off by two standard errors
    assert [(bar["of"], bar["holds"]) for bar in result.bars()] == [("numpy", True), ("loop", None), ("memory", True)]


def test_a_sampled_answer_is_wrong_beyond_five_standard_errors():
    result = measured(privug=cell("privug", [1.0], values=[1.3], effective=400.0))
    result.judge()
    assert result.cells["privug"].status == "wrong"


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_exponents_are_found(power):
    sizes = np.array([10, 100, 1_000])
    found = fit(sizes, 3e-3 * sizes**power)
    assert found.slope == pytest.approx(power, abs=1e-12)
    assert found.last == pytest.approx(power, abs=1e-12)
    assert found.error == pytest.approx(0, abs=1e-7)


def test_the_standard_error_of_an_exponent_is_that_of_regression():
    x, y = np.log([1, 2, 4, 8]), np.array([0.0, 0.9, 1.1, 2.2])
    found = fit(np.exp(x), np.exp(y))
    slope, _ = np.polyfit(x, y, 1)
    covariance = np.linalg.inv(np.stack([x, np.ones(4)]) @ np.stack([x, np.ones(4)]).T)
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    assert found.slope == pytest.approx(slope)
    assert found.error == pytest.approx(np.sqrt(residual @ residual / 2 * covariance[0, 0]))


def test_growth_is_a_task_for_each_size():
    assert TASKS["sizes-10"].size == 10
    assert TASKS["sizes-100"].reason("privug") == "too large"
    assert TASKS["sizes-10"].cells["privug"]()() == 10
    results = []
    for size in (10, 100):
        task = replace(TASKS["sizes-10"], size=size)
        half = cell("privug", [size**2 / 100], fixed=[0.0], effective=50 * size)  # ever more samples at larger sizes
        results.append(TaskResult(task, {name: CellResult(name, "cannot") for name in TOOLS} | {"privug": half}))
    tasks = {str(result.task.size): result.to_json() for result in results}
    assert growth(tasks)["sizes"]["privug"]["slope"] == pytest.approx(1)


def test_bars_of_growth_are_of_the_largest_size_that_a_tool_has():
    made = register(Growth("g", "?", (1, 2, 4), {}, up_to={"loop": 2}, bars={"loop": 3, "numpy": 5}))
    assert [task.bars for task in made.values()] == [{}, {"loop": 3}, {"numpy": 5}]


@pytest.fixture
def written(trivial):
    result, _ = trivial
    ours = measured(privug=cell("privug", [1.0, 2.0], values=[1.0]), numpy=result.cells["numpy"])
    ours.judge()
    return json.loads(json.dumps(to_json([ours], machine=machine(), **ABOUT), allow_nan=False))


def test_json_keeps_to_its_schema_and_names_no_path(written):
    jsonschema.validate(written, json.loads((ROOT / "benchmarks/schema.json").read_text()))
    assert str(ROOT) not in json.dumps(written)
    assert written["tasks"]["trivial"]["cells"]["privug"]["quartiles"] == [1.25, 1.75]


def test_runs_of_one_commit_are_shown_as_one(written):
    other = {**written, "load": [3.0, 0.5], "tasks": {"another": written["tasks"]["trivial"]}, "command": "second"}
    both = merged([written, other])
    assert list(both["tasks"]) == ["trivial", "another"]
    assert (both["load"], both["command"]) == ([0.0, 3.0], "python benchmarks/run.py; second")
    with pytest.raises(SystemExit, match="different commits"):
        merged([written, {**written, "machine": {**written["machine"], "commit": "0"}}])


def test_the_readme_is_written_between_its_marks(written, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{text.MARKS[0]}\nold\n{text.MARKS[1]}\nafter\n")
    text.write_readme(page, written)
    said = page.read_text()
    assert said.startswith("before\n")
    assert said.endswith("\nafter\n")
    assert "old" not in said
    assert "| `trivial` | NumPy by hand |" in said
    assert "**wrong**" in said
    assert " s |" not in said.partition("### Bars")[0]  # ratios only


def test_numbers_of_two_digits():
    assert [text.number(value) for value in (0.0123, 1.26, 47.3, 123, 98765.4)] == [
        "0.012",
        "1.3",
        "47",
        "120",
        "99,000",
    ]
