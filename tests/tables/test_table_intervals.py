"""Feasible intervals and posteriors against plain enumeration of all fillings."""

import numpy as np
import pytest
from table_enumeration import Puzzle, Scenario, distribution, poisson_weights

import privug as pv

MARKS = {"*": (0, None), "<3": (0, 2)}


def audited(scenario, **options):
    table = pv.tables.read(
        scenario.sheet(), suppressed=MARKS, base=scenario.base, rounding=scenario.rounding, name="table"
    )
    return {cell.name: cell for cell in pv.tables.audit(table, repair=None, **options).cells}


def same(found, truth):
    assert set(found) == set(truth)
    assert [found[value] for value in truth] == pytest.approx([*truth.values()], abs=1e-9)


def compare(cells, puzzle, names, weights=None):
    fillings = puzzle.fillings()
    assert len(fillings)
    assert set(cells) == set(names)
    for name, leaves in names.items():
        values, cell = puzzle.totals(fillings, leaves), cells[name]
        assert (cell.low, cell.high) == (values.min(), values.max())
        assert type(cell.low) is int
        present = values[values > 0]
        assert cell.others == ((present.min() - 1, present.max() - 1) if len(present) else None)
        weight = np.ones(len(values)) if weights is None else weights(fillings)
        same(cell.belief, distribution(values, weight))


@pytest.mark.parametrize("seed", range(100))
def test_two_way_tables(seed):
    rng = np.random.default_rng(seed)
    scenario = Scenario(rng, *rng.choice([[1, 2], [2, 2], [2, 3], [3, 3]], 1)[0])
    compare(audited(scenario), scenario.puzzle, scenario.names)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("rounding", ["nearest", "random"])
def test_rounded_tables(seed, rounding):
    rng = np.random.default_rng(1000 + seed)
    scenario = Scenario(rng, 2, 2, base=int(rng.choice([2, 3, 5])), rounding=rounding, largest=7)
    likelihood = None
    if rounding == "random":

        def likelihood(fillings):
            weights = np.ones(len(fillings))
            for (r, c), text in scenario.texts.items():
                if text not in MARKS:
                    true = scenario.puzzle.totals(fillings, scenario.leaves_of(r, c))
                    weights *= 1 - np.abs(true - int(text)) / scenario.base
            return weights

    cells = audited(scenario)
    compare(cells, scenario.puzzle, scenario.names, likelihood)


@pytest.mark.parametrize("seed", range(20))
def test_poisson_and_multinomial_priors(seed):
    rng = np.random.default_rng(2000 + seed)
    scenario = Scenario(rng, 2, 3, totals=False)
    puzzle = scenario.puzzle
    rates = {(r, c): float(rng.uniform(0.5, 6)) for r, c in puzzle.leaves}
    cells = audited(scenario, prior="poisson", rate=rates)
    compare(cells, puzzle, scenario.names, lambda fillings: poisson_weights(puzzle, fillings, rates))
    margins = {
        (r, c): max(1e-300, int(scenario.texts[r, "Total"]) * int(scenario.texts["Total", c])) for r, c in puzzle.leaves
    }
    cells = audited(scenario, prior="multinomial")
    compare(cells, puzzle, scenario.names, lambda fillings: poisson_weights(puzzle, fillings, margins))


@pytest.mark.parametrize("seed", range(40))
def test_linked_tables(seed):
    """Region by sex, and region by age, of the same people: the regions' totals are the link."""
    rng = np.random.default_rng(3000 + seed)
    regions, others = ["r0", "r1"], {"sex": ["f", "m"], "age": ["young", "old"]}
    people = {key: int(rng.integers(0, 3)) for key in ((r, s, a) for r in regions for s in "fm" for a in others["age"])}
    counts = {
        (name, r, c): sum(n for (q, s, a), n in people.items() if q == r and c in (s, a))
        for name, categories in others.items()
        for r in regions
        for c in categories
    }
    puzzle, names, tables = Puzzle(counts, sum(people.values())), {}, []
    for name, categories in others.items():
        rows = [[f"region \\ {name}", *categories, "Total"]]
        for r in [*regions, "Total"]:
            rows.append([r])
            for c in [*categories, "Total"]:
                leaves = [
                    leaf for leaf in counts if leaf[0] == name and r in (leaf[1], "Total") and c in (leaf[2], "Total")
                ]
                true = sum(counts[leaf] for leaf in leaves)
                hidden = rng.random() < (0.5 if "Total" not in (r, c) else 0.3) and (r, c) != ("Total", "Total")
                rows[-1].append("*" if hidden else str(true))
                if hidden:
                    names.setdefault(f"{r} x {c}", leaves)
                else:
                    puzzle.says(leaves, true, true)
        tables.append(pv.tables.read(rows, name=name))
    for r in [*regions, "Total"]:
        sides = [[leaf for leaf in counts if leaf[0] == name and r in (leaf[1], "Total")] for name in others]
        puzzle.says(sides[0], 0, 0, minus=sides[1])
    cells = {cell.name: cell for cell in pv.tables.audit(tables, repair=None).cells}
    compare(cells, puzzle, names)


@pytest.mark.parametrize("seed", range(30))
def test_hierarchies(seed):
    rng = np.random.default_rng(4000 + seed)
    parts = {"North": ["a", "b"], "South": ["c", "d"]}
    counts = {(d, s): int(rng.integers(0, 4)) for d in "abcd" for s in "fm"}
    inside = {"Total": "abcd", **parts, **{d: d for d in "abcd"}}
    puzzle, names = Puzzle(counts, sum(counts.values())), {}
    rows = [["region \\ sex", "f", "m", "Total"]]
    for region, districts in inside.items():
        rows.append([region])
        for sex in ("f", "m", "Total"):
            leaves = [(d, s) for d in districts for s in "fm" if sex in (s, "Total")]
            true = sum(counts[leaf] for leaf in leaves)
            hidden = rng.random() < 0.4 and region != "Total"
            rows[-1].append("*" if hidden else str(true))
            if hidden:
                names[f"{region} x {sex}"] = leaves
            else:
                puzzle.says(leaves, true, true)
    table = pv.tables.read(rows, hierarchy=parts)
    cells = {cell.name: cell for cell in pv.tables.audit(table, repair=None).cells}
    compare(cells, puzzle, names)
