"""Values as bytes and back, and bytes that are none of ours."""

import contextlib
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.checkpoints.encoding import Damaged, NotStorable, Vocabulary, vocabulary_for
from privug.inference.case_plan import Kept
from privug.model.batch import Batch
from privug.model.structure import LEAF
from privug.model.table import Table

PLAIN = Vocabulary()
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5) | st.complex_numbers(allow_nan=False) | st.dates() | st.datetimes() | st.timedeltas()
    | st.decimals(allow_nan=False) | st.fractions()
)  # fmt: skip
NESTED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=20,
)


def typed(value):
    """Return a value with the types of all of its parts, which equality does not look at."""
    if isinstance(value, list | tuple):
        return type(value), [typed(part) for part in value]
    if isinstance(value, dict):
        return dict, [(typed(key), typed(part)) for key, part in value.items()]
    return type(value), repr(value)


@settings(max_examples=60, deadline=None)
@given(value=NESTED)
def test_values_come_back_as_they_were(value):
    assert typed(PLAIN.decoded(PLAIN.encoded(value))) == typed(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(3.5),
        np.zeros((0, 4)),
        np.array(["a", "bcd"]),
        np.array(["2024-01-01"], "datetime64[D]"),
        np.array([True, False]),
        np.arange(10.0)[::2],
        np.array([1, "a", None, (2, 3)], object),
        np.array([-0.0, math.inf, -math.inf]),
    ],
)
def test_arrays_come_back_bit_by_bit(array):
    back = PLAIN.decoded(PLAIN.encoded(array))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.flags.f_contiguous == np.array(array, copy=True, order="K").flags.f_contiguous
    assert back.tolist() == array.tolist() if array.dtype == object else back.tobytes() == array.tobytes()
    assert back.flags.writeable


def test_scalars_of_numpy_and_zones():
    for scalar in (np.float64(0.1), np.int32(3), np.bool_(True), np.str_("x")):
        back = PLAIN.decoded(PLAIN.encoded(scalar))
        assert (type(back), back) == (type(scalar), scalar)
    for value in (Decimal("1.10"), Fraction(1, 3), date(2024, 2, 29), time(1, 2, 3, 4), timedelta(-1, 5)):
        assert PLAIN.decoded(PLAIN.encoded(value)) == value
    assert math.isnan(PLAIN.decoded(PLAIN.encoded(math.nan)))
    with pytest.raises(NotStorable, match="zone"):
        PLAIN.encoded(datetime.fromisoformat("2024-01-01T00:00:00+00:00"))


def test_objects_are_not_written():
    for value in (object(), print, int, lambda: 0, np.zeros(2, "V3"), {1: [object()]}):
        with pytest.raises(NotStorable):
            PLAIN.encoded(value)


def test_rows_tables_and_batches():
    known = vocabulary_for()
    table = Table([pv.Row(name="a", age=1), pv.Row(name="b", age=2)])
    back = known.decoded(known.encoded(table))
    assert (type(back), back, back[1].age) == (Table, table, 2)
    batch = Batch.of_values([table, Table()])
    kept = Kept(np.arange(2), (batch,), None, np.arange(0), np.arange(0), 0)
    again = known.decoded(known.encoded(kept))
    assert again.quantities[0].structure is LEAF
    assert again.quantities[0].values() == [table, Table()]


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200))
def test_bytes_of_others_are_refused(content):
    with contextlib.suppress(Damaged):
        vocabulary_for_fuzz.decoded(content)


@settings(max_examples=60, deadline=None)
@given(value=NESTED, data=st.data())
def test_changed_bytes_are_refused_or_are_other_values(value, data):
    content = bytearray(PLAIN.encoded([value, np.arange(3), np.array([1, None], object)]))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Damaged):
        PLAIN.decoded(bytes(content))


def test_few_bytes_cannot_claim_to_be_many_values():
    many = (1 << 40).to_bytes(8, "little")
    for content in (
        b"\1\4list" + many + b"\1\4none",
        b"\1\5array\0\1" + many + b"\3<f8",
        b"\1\5array\0\1" + many + b"\1O\1\4none",
        b"\1\3str" + many,
        b"\1\4list" * 100,
    ):
        with pytest.raises(Damaged):
            PLAIN.decoded(content)


def test_no_class_but_those_of_the_question_can_be_named():
    known = vocabulary_for()
    structure = known.encoded(Batch.of_values([1.0]).structure)
    assert known.decoded(structure) is LEAF
    named = known.encoded(dict).replace(b"builtins.dict", b"builtins.eval")
    with pytest.raises(Damaged):
        known.decoded(named)


vocabulary_for_fuzz = vocabulary_for()
