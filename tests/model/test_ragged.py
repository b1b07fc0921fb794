"""Random numbers of rows in one flat array: which rows are whose, and folds over them."""

import numpy as np
import pytest

import privug as pv
from privug.errors import Untraceable
from privug.model.node import ancestors
from privug.model.plan import Plan
from privug.model.plated_tables import RaggedTable
from privug.model.plates import fold, going_through
from privug.model.row_offsets import RowOffsets

SIZES = np.array([3, 0, 1, 3, 0, 2])


def test_rows_are_told_apart():
    segments = RowOffsets(SIZES)
    assert segments.total == 9
    assert segments.owners.tolist() == [0, 0, 0, 2, 3, 3, 3, 5, 5]
    assert segments.positions.tolist() == [0, 1, 2, 0, 0, 1, 2, 0, 1]
    assert segments.spread(np.arange(6)).tolist() == segments.owners.tolist()
    assert segments.spread(np.array([7])).tolist() == [7]


@pytest.mark.parametrize("which", [slice(None), np.array([5, 0, 1]), SIZES > 0, np.array([], int)])
def test_rows_of_some_samples(which):
    flat = np.arange(9)
    expected = [flat[RowOffsets(SIZES).owners == k] for k in np.arange(6)[which]]
    assert RowOffsets(SIZES).chosen(flat, which).tolist() == [row for rows in expected for row in rows.tolist()]


@pytest.mark.parametrize("sizes", [SIZES, np.sort(SIZES), np.zeros(4, int), np.array([5])])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_groups_and_parts_hold_every_row_once(sizes, rows):
    segments, flat = RowOffsets(sizes), np.arange(sizes.sum())
    expected = [part.sum() for part in np.split(flat, np.cumsum(sizes)[:-1])]
    assert segments.reduced(lambda part: part.sum(axis=1), flat).tolist() == expected
    parts = [part.reduced(lambda p: p.sum(axis=1), part.own(flat)) for part in segments.parts(rows)]
    assert np.concatenate(parts).tolist() == expected
    assert next(segments.parts(rows)).first_sample == 0


def table(size, row) -> RaggedTable:
    made = pv.Records(size, row).ragged(40, 5)
    assert made is not None
    return made


def on_sizes(nodes, size, values):
    drawn = np.random.Generator(np.random.SFC64(1))
    return Plan(nodes, [size.node]).run(len(values), drawn, {size.node: np.array(values)})


@pytest.mark.parametrize(("how", "plain"), [("sum", sum), ("any", any), ("all", all), ("min", min), ("max", max)])
@pytest.mark.parametrize("values", [SIZES, np.sort(SIZES)])
def test_folds_are_those_of_plain_rows(how, plain, values):
    size = pv.Binomial(40, 0.1)
    (plate,) = table(size, pv.Row(x=pv.DiscreteUniform(1, 100), y=pv.DiscreteUniform(1, 100))).segments
    with going_through(plate):
        x, y = plate.row
        term = x > y if how in ("any", "all") else x - 2 * y
        folded = fold(plate, how, term)
    columns = [cell.node for cell in plate.cells]
    one, two, result = on_sizes([*columns, folded.node], size, values)
    for k, (left, right) in enumerate(zip(RowOffsets(values).split(one), RowOffsets(values).split(two), strict=True)):
        terms = [
            int(a) > int(b) if how in ("any", "all") else int(a) - 2 * int(b) for a, b in zip(left, right, strict=True)
        ]
        if terms or how in ("sum", "any", "all"):
            assert result[k] == plain(terms)


def test_terms_may_depend_on_what_rows_share():
    size, shift = pv.Binomial(40, 0.1), pv.Normal(0, sd=100)
    (plate,) = table(size, pv.Row(x=pv.Normal(0, sd=1))).segments
    with going_through(plate):
        folded = fold(plate, "sum", plate.row.x * shift)
    x, s, result = on_sizes([plate.cells[0].node, shift.node, folded.node], size, SIZES)
    assert np.allclose(result, [part.sum() * s[k] for k, part in enumerate(RowOffsets(SIZES).split(x))])


def test_rows_of_their_own_are_there_if_the_table_is_long_enough():
    def row(i):
        return pv.Row(x=pv.Normal(0, sd=1) if i < 2 else pv.Normal(5, sd=1))

    made = table(pv.Binomial(40, 0.1), row)
    assert [getattr(segment, "is_ragged", False) for segment in made.segments] == [False, False, True]
    assert made.outline.starts == (0, 1, 2)
    (plate_size, there) = on_sizes([made.segments[2].size.node, made.conditions[1].node], made.size, [0, 1, 2, 9])
    assert plate_size.tolist() == [0, 0, 0, 7]
    assert there.tolist() == [False, False, True, True]
    certain = table(pv.DiscreteUniform(2, 30), row)
    assert certain.conditions == (True, True, True)


def test_rows_alike_in_the_middle_are_cut_off_where_they_end():
    def row(i):
        return pv.Row(x=pv.Normal(5, sd=1) if 1 <= i < 11 else pv.Normal(0, sd=1))

    made = table(pv.DiscreteUniform(0, 40), row)
    assert made.outline.starts == (0, 1, 11)
    sizes = on_sizes([made.segments[1].size.node, made.segments[2].size.node], made.size, [0, 1, 5, 11, 12, 40])
    assert sizes[0].tolist() == [0, 0, 4, 10, 10, 10]
    assert sizes[1].tolist() == [0, 0, 0, 0, 1, 29]


def test_cells_may_depend_on_others_of_the_row_and_on_plain_ones():
    def row(i):
        age = pv.DiscreteUniform(18, 80)
        return pv.Row(place=i, age=age, old=age > 60, ill=pv.Bernoulli(pv.given(age > 60, {True: 1.0, False: 0.0})))

    made = table(pv.DiscreteUniform(0, 40), row)
    (plate,) = made.segments
    place, age, old, ill = on_sizes([cell.node for cell in plate.cells], made.size, SIZES)
    assert place.tolist() == RowOffsets(SIZES).positions.tolist()
    assert old.tolist() == (age > 60).tolist() == (ill == 1).tolist()


def test_rows_that_are_shared_stay_shared():
    shared = pv.Normal(0, sd=100)
    made = table(pv.DiscreteUniform(0, 40), lambda i: pv.Row(x=pv.Normal(shared, sd=0.001)))
    (plate,) = made.segments
    assert shared.node in ancestors([plate.cells[0].node])
    x, mean = on_sizes([plate.cells[0].node, shared.node], made.size, SIZES)
    assert np.abs(x - mean[RowOffsets(SIZES).owners]).max() < 0.01


def test_what_needs_a_known_size_is_refused():
    made = table(pv.DiscreteUniform(0, 40), pv.Row(x=pv.Normal(0, sd=1)))
    for act in (lambda: len(made), lambda: list(made), lambda: made.x, lambda: made[-1], lambda: made[3:]):
        with pytest.raises(Untraceable):
            act()


def test_tables_without_equal_rows_have_no_plates():
    assert pv.Records(pv.DiscreteUniform(0, 40), lambda i: pv.Row(x=pv.Normal(i, sd=1))).ragged(40, 20) is None
