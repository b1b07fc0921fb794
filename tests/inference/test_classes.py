"""Classes of secrets: rows of outputs that are equal, however long."""

import numpy as np
import pytest

from privug.inference.joint import rows_alike


def rows(lengths, values, seed):
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    column = np.concatenate([np.arange(length) for length in lengths])
    return row, column, rng.integers(1, values + 1, len(row)) / 8


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("values", [1, 2, 5])
def test_rows_are_alike_if_all_their_entries_are(seed, values):
    lengths = np.random.default_rng(seed + 100).integers(0, 4, 40)
    row, column, share = rows(lengths, values, seed)
    entries = [tuple(share[row == place]) for place in range(len(lengths))]
    classes, kept = rows_alike(row, column, share, len(lengths))
    alike = classes[:, None] == classes[None, :]
    assert np.array_equal(alike, [[left == right for right in entries] for left in entries])
    assert np.all(classes[np.array(lengths) == 0] == -1)
    shown = np.unique(row[kept])
    assert len(shown) == len(set(classes[shown])) == len(set(entries) - {()})


def test_long_rows_that_differ_early_are_told_apart_there(monkeypatch):
    looks = []
    ranked = rows_alike.__globals__["ranked"]
    monkeypatch.setitem(rows_alike.__globals__, "ranked", lambda array: looks.append(len(array)) or ranked(array))
    row, column, share = rows([5_000] * 8, 1, 0)
    share[::5_000] = np.arange(1, 9)
    assert len(set(rows_alike(row, column, share, 8)[0])) == 8
    assert len(looks) < 5  # not one for each of the 5,000 entries
