"""The smallest further suppression against all patterns, by enumeration."""

import math
from itertools import combinations

import numpy as np
import pytest
from table_enumeration import Puzzle, Scenario

import privug as pv


def opened(puzzle, hidden):
    """Return the puzzle without what is said about some cells."""
    other = Puzzle(puzzle.leaves, puzzle.most)
    other.statements = [(signs, low, high) for signs, low, high in puzzle.statements if frozenset(signs) not in hidden]
    return other


def is_protected(puzzle, primary, width):
    fillings = puzzle.fillings()
    for leaves in primary:
        values = puzzle.totals(fillings, leaves)
        present = values[values > 0]
        others = len(present) and present.min() == present.max()
        if values.max() - values.min() < max(width, 1) or others:
            return False
    return True


def cheapest(puzzle, primary, published, width, by):
    """Return the cost of the cheapest pattern: its number of cells and their sum."""
    patterns = [p for size in range(len(published) + 1) for p in combinations(published, size)]
    costs = {p: (len(p), sum(published[cell] for cell in p)) for p in patterns}
    for pattern in sorted(patterns, key=lambda p: costs[p] if by == "cells" else costs[p][::-1]):
        if is_protected(opened(puzzle, set(pattern)), primary, width):
            return costs[pattern]
    return None


def expected(puzzle, names, texts, leaves_of, width, by):
    published = {
        frozenset(leaves_of(*cell)): int(text) for cell, text in texts.items() if text.isdigit() and text != "0"
    }
    inner = {leaves: value for leaves, value in published.items() if len(leaves) == 1}
    found = cheapest(puzzle, names, inner, width, by)
    return cheapest(puzzle, names, published, width, by) if found is None else found


@pytest.mark.parametrize("by", ["cells", "sum"])
@pytest.mark.parametrize("seed", range(25))
def test_the_smallest_pattern_is_found(seed, by):
    rng = np.random.default_rng(seed)
    scenario = Scenario(rng, 2, 3, totals=False, largest=3)
    width = int(rng.choice([1, 2]))
    marks = {"*": (0, None), "<3": (0, 2)}
    table = pv.tables.read(scenario.sheet(), suppressed=marks)
    found = pv.tables.audit(table, width=width, repair=by, prior=None)
    names = [*scenario.names.values()]
    if is_protected(scenario.puzzle, names, width):
        assert found.holds
        assert found.further is None
        return
    truth = expected(scenario.puzzle, names, scenario.texts, scenario.leaves_of, width, by)
    if truth is None:
        assert found.further.cells == ()
        return
    values = [int(scenario.texts[tuple(name.split(" x "))]) for name in found.further.cells]
    place = 0 if by == "cells" else 1
    assert (len(values), sum(values))[place] == truth[place]
    assert found.further.minimal
    hidden = {frozenset(scenario.leaves_of(*name.split(" x "))) for name in found.further.cells}
    assert is_protected(opened(scenario.puzzle, hidden), names, width)


def three_way(rng):
    """Return the counts of a table of 2 x 2 x 2, whose sums are no network."""
    return {(a, b, c): int(rng.integers(0, 3)) for a in "ab" for b in "cd" for c in "ef"}


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_pattern_of_three_dimensions_is_found(seed):
    rng = np.random.default_rng(100 + seed)
    counts = three_way(rng)
    puzzle, texts = Puzzle(counts, sum(counts.values())), {}
    hidden = set(map(tuple, rng.permutation([*counts])[:2]))
    rows = [["x", "y", "z", "count"]]
    primary = []

    def leaves_of(*cell):
        return [
            leaf for leaf in counts if all(label in (part, "Total") for label, part in zip(cell, leaf, strict=True))
        ]

    for cell in [(a, b, c) for a in "abT" for b in "cdT" for c in "efT"]:
        labels = tuple("Total" if label == "T" else label for label in cell)
        leaves = leaves_of(*labels)
        true = sum(counts[leaf] for leaf in leaves)
        texts[labels] = "*" if labels in hidden else str(true)
        rows.append([*labels, texts[labels]])
        if labels in hidden:
            primary.append(leaves)
        else:
            puzzle.says(leaves, true, true)
    found = pv.tables.audit(pv.tables.read(rows), prior=None)
    inner = {frozenset([leaf]): n for leaf, n in counts.items() if leaf not in hidden and n}
    truth = cheapest(puzzle, primary, inner, 1, "cells")
    if truth is not None:
        assert (found.further is None and truth[0] == 0) or len(found.further.cells) == truth[0]


def test_a_belief_is_limited_by_further_suppression():
    rows = [
        ["r \\ c", "a", "b", "c", "Total"],
        ["n", "*", "*", "20", "24"],
        ["s", "*", "*", "30", "38"],
        ["e", "10", "12", "15", "37"],
        ["Total", "15", "19", "65", "99"],
    ]
    table = pv.tables.read(rows)
    first = pv.tables.audit(table)
    assert first.holds
    limit = 0.9 * max(cell.likeliest[1] for cell in first.cells)
    found = pv.tables.audit(table, max_belief=limit)
    assert not found.holds
    assert found.further.cells
    again = [[*row] for row in rows]
    for name in found.further.cells:
        r, c = name.split(" x ")
        again[[row[0] for row in rows].index(r)][rows[0].index(c)] = "x"
    after = pv.tables.audit(pv.tables.read(again), max_belief=limit, primary=["*"])
    assert after.holds
    assert math.isclose(sum(after.cells[0].belief.values()), 1)


def test_nothing_is_found_where_nothing_can_be():
    table = pv.tables.read([["region", "people"], ["North", "<5"], ["Total", "3"]])
    found = pv.tables.audit(table)
    assert found.further.cells == ("Total",)
    table = pv.tables.read([["region", "people"], ["North", "<5"], ["Total", "0"]])
    found = pv.tables.audit(table)
    assert str(found.further) == "no further suppression of cells other than zeros was found that holds"
