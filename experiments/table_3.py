"""Leakage tools and what they can do.

What the paper says of other tools is data here. What Privug can do is decided by tests: each of its cells names one,
which is run now, and says yes if it passes.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import privug as pv

from .drawing import Draw, canvas
from .findings import Findings, Line

PAPER = "Table 3"

ROOT = Path(pv.__file__).parents[2]
PROVEN, DISPROVEN, UNKNOWN = "yes", "no", "not run"


@dataclass(frozen=True)
class Feature:
    """A column of the table: its name, what the paper says of its own Privug, and the test that decides today."""

    name: str
    paper: str
    test: str


FEATURES = (
    Feature("discrete input", "yes", "tests/leakage/test_vulnerability.py::TestExact::test_sum_of_two"),
    Feature("continuous input", "yes", "tests/test_paper_examples.py::test_mean_of_two_hundred"),
    Feature("discrete output", "yes", "tests/leakage/test_information.py::TestExact::test_sum_of_two_dice"),
    Feature("continuous output", "yes", "tests/test_paper_examples.py::test_four_normal_ages_seen_exactly"),
    Feature(
        "programs of any language",
        "Java/Scala/Python",
        "tests/program/test_external.py::test_conditioning_on_an_external_output",
    ),
    Feature("exact", "?", "tests/inference/test_engines.py::test_auto_is_exact_where_it_can_be"),
    Feature(
        "sampling",
        "yes",
        "tests/inference/test_engines.py::test_auto_samples_where_draws_from_the_prior_are_worth_enough",
    ),
    Feature(
        "estimation", "yes", "tests/leakage/test_black_box.py::test_every_method_bounds_the_risk_of_geometric_noise"
    ),
    Feature("KSP", "yes", "tests/policy/test_check.py::test_published_policy_decisions"),
    Feature("entropy", "yes", "tests/leakage/test_entropy.py::test_closed_forms"),
    Feature("min-entropy", "(yes) c", "tests/leakage/test_entropy.py::test_min_entropy_and_guesses_of_samples"),
    Feature("mutual information", "(yes) c", "tests/leakage/test_information.py::TestExact::test_channel"),
    Feature("Bayes risk", "(yes) c", "tests/leakage/test_vulnerability.py::TestExact::test_closed_forms"),
    Feature("KL divergence", "yes", "tests/leakage/test_divergence.py::test_closed_forms"),
)

# The cells of other tools, in the order of the features, as the paper prints them: y yes, n no, a b c yes but for its
# footnotes of that name, and what the tool takes as input.
TOOLS = {
    "LeakiEst": ("ynyy", "set of samples", "nny", "nnyynn"),
    "F-BLEAU": ("yayy", "set of samples", "nny", "nnynyn"),
    "SPIRE": ("ynyn", "custom: PSI", "ynn", "ynnnnn"),
    "DKBP": ("ynyn", "custom: Polyhedra", "ynn", "ynnnnn"),
    "QUAIL": ("ynyn", "custom: QUAIL", "ynn", "nnnynn"),
    "HyLeak": ("ynyn", "custom: QUAIL 2.0", "nyy", "nynynn"),
    "LeakWatch": ("ybyy", "Java", "nyy", "bncbnn"),
}
CORRECTIONS = (
    "LeakiEst and LeakWatch give the Bayes risk as well: they estimate min-entropy leakage, and the risk is 1 - 2^-H "
    "of the min-entropy H that is left. The paper says no.",
    "DKBP's polyhedra are sound bounds on beliefs rather than exact ones, so its yes under exact has conditions.",
    "HyLeak computes small parts of a program exactly and samples the others, so its no under exact does, too.",
)
FOOTNOTES = "a: foundations only, not implemented; b: shown by the paper, not by the tool's authors; c: by other tools."


def cells(tool: str) -> list[str]:
    """What the paper says of another tool, feature by feature."""
    variables, language, abilities, measures = TOOLS[tool]
    return [*variables, language, *abilities, *measures]


def tests_run(tests: Iterable[str], *options: str) -> str:
    """Run tests in a process of their own, all at once, and return what it printed."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    return run.stdout


def verdicts(tests: Iterable[str], printed: str) -> dict[str, str]:
    """Which tests have passed: at least one case of each, and none that did not."""
    ended: dict[str, set[str]] = {}
    for line in printed.splitlines():
        outcome, _, rest = line.partition(" ")
        if outcome in ("PASSED", "FAILED", "ERROR"):
            ended.setdefault(rest.split(" - ")[0].split("[")[0], set()).add(outcome)
    return {test: PROVEN if ended.get(test) == {"PASSED"} else DISPROVEN for test in tests}


def figure(privug: list[str]) -> Draw:
    """Return what draws the table; a cell is filled where the answer is yes."""
    rows = {tool: cells(tool) for tool in TOOLS} | {"Privug": privug}

    def draw(axes: Any) -> None:
        style = canvas()
        for up, (tool, row) in enumerate(reversed(rows.items())):
            for across, cell in enumerate(row):
                shade = style.BLUE if cell in ("y", PROVEN) else style.SKY if cell in ("a", "b", "c") else "white"
                language = FEATURES[across].name.startswith("programs") and tool != "Privug"
                if language:
                    shade = style.SKY if cell == "Java" else "white"
                axes.add_patch(axes_rectangle(across, up, shade))
                if cell in ("a", "b", "c"):
                    axes.text(across + 0.5, up + 0.5, cell, ha="center", va="center", fontsize=7)
        axes.set(xlim=(0, len(FEATURES)), ylim=(0, len(rows)))
        axes.set_xticks(
            [place + 0.5 for place in range(len(FEATURES))], [f.name for f in FEATURES], rotation=60, ha="right"
        )
        axes.set_yticks([place + 0.5 for place in range(len(rows))], [*reversed(rows)])
        axes.tick_params(length=0, labelsize=7)

    return draw


def axes_rectangle(across: float, up: float, shade: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((across + 0.05, up + 0.08), 0.9, 0.84, facecolor=shade, edgecolor="grey", linewidth=0.5)


def run(features: tuple[Feature, ...] = FEATURES) -> Findings:
    tests = [feature.test for feature in features]
    there = (ROOT / "tests").is_dir()
    decided = verdicts(tests, tests_run(tests, "-rA")) if there else dict.fromkeys(tests, UNKNOWN)
    lines = [Line(feature.name, decided[feature.test], None, feature.paper, feature.test) for feature in features]
    notes = [FOOTNOTES, *CORRECTIONS]
    if there:
        passed = sum(verdict == PROVEN for verdict in decided.values())
        lines.append(Line("tests of these cells that pass", float(passed), float(len(tests))))
    else:
        notes.insert(
            0, "The tests are not part of an installed package: run this in a checkout to have the cells decided."
        )
    picture = figure([decided[feature.test] for feature in features])
    return Findings(lines, {"Tools (rows) and what they can do (dark: yes; light: with conditions)": picture}, notes)
