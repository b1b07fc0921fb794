"""Rows that are alike are found whatever objects they are made of, and only those."""

import gc

import pytest

import privug as pv
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate
from privug.prior.plating import Likeness


def sizes(table):
    return [segment.size if isinstance(segment, Plate) else 1 for segment in table.segments]


def test_rows_from_literals_are_alike():
    """Every call makes new lists; the distributions are the same."""
    table = pv.Records(20, lambda i: pv.Row(zip=pv.Choice(["a", "b"], p=[0.3, 0.7]), age=pv.Choice([1, 2, 3]))).plated()
    assert isinstance(table, PlatedTable)
    assert sizes(table) == [20]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: pv.Choice(["a", "b"], p=[0.3, 0.7]), lambda: pv.Choice(["a", "b"], p=[0.7, 0.3])),
        (lambda: pv.Choice([0, 1]), lambda: pv.Choice([False, True])),
        (lambda: pv.Choice([0, 1]), lambda: pv.Choice([0.0, 1.0])),
        (lambda: pv.Choice([0, 1]), lambda: pv.Bernoulli(0.5)),
        (lambda: pv.Binomial(3, 0.5), lambda: pv.Binomial(4, 0.5)),
        (lambda: pv.Normal(0, sd=1), lambda: pv.Normal(0, sd=2)),
        (lambda: pv.Normal(0, sd=1), lambda: pv.Laplace(0, 1)),
    ],
)
def test_rows_of_other_distributions_are_not(one, other):
    table = pv.Records(30, lambda i: pv.Row(x=one() if i < 10 else other())).plated()
    assert sizes(table) == [10, 20]


def test_plain_cells_of_other_types_are_a_difference():
    table = pv.Records(30, lambda i: pv.Row(x=pv.Bernoulli(0.5), group=i if i < 10 else str(i))).plated()
    assert sizes(table) == [10, 20]


def test_a_cell_used_twice_in_a_row():
    def row(i):
        x = pv.Bernoulli(0.5)
        return pv.Row(x=x, y=x) if i < 10 else pv.Row(x=pv.Bernoulli(0.5), y=pv.Bernoulli(0.5))

    assert sizes(pv.Records(30, row).plated()) == [10, 20]


def test_roots_that_rows_share_are_noticed():
    shared = pv.Bernoulli(0.5)
    likeness = Likeness()
    rows = [pv.Row(x=pv.Bernoulli(0.5)) for _ in range(9)]
    likeness.look_at(rows)
    assert not likeness.share_roots
    likeness.look_at([*rows, pv.Row(x=shared), pv.Row(x=shared)])
    assert likeness.share_roots
    assert sizes(likeness.table(11)) == [9, 1, 1]


def test_choices_are_independent_and_keep_their_types():
    first, second = pv.Choice([1, 2]), pv.Choice([1, 2])
    result = pv.Attack(lambda x, y: x - y, {"x": first, "y": second}, "x").run(engine="exact")
    assert float(result.prediction.probability(lambda d: d == 0)) == 0.5
    kinds = [pv.Choice(values).node.dtype.kind for values in ([0, 1], [False, True], [0.0, 1.0], [0, 1])]
    assert kinds == ["i", "b", "f", "i"]
    values = ["a", "b"]
    before = pv.Choice(values)
    values.append("c")
    assert (before.node.levels, pv.Choice(values).node.levels) == (("a", "b"), ("a", "b", "c"))


def test_building_a_table_leaves_the_garbage_collector_as_it_was():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            pv.Attack(lambda rows: rows[0].x, {"rows": pv.Records(9, pv.Row(x=pv.Bernoulli(0.5)))}, len).run()
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
