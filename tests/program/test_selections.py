"""Releases of statistical offices as people write them, over masked arrays and filtered lists: traced, and right."""

import bisect
import heapq
import math
import statistics
from collections import Counter, defaultdict

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.graph import everything_behind
from privug.model.plates import Fold
from privug.model.structure import random_leaves

GROUPS = ["a", "b"]


def array(size=9):
    return {"a": pv.Array(pv.Normal(50, sd=20), size)}


def whole_numbers(size=9):
    return {"a": pv.Array(pv.DiscreteUniform(0, 90), size)}


def table(rows=8):
    def person(i):
        return pv.Row(pay=pv.Normal(30, sd=8), woman=pv.Bernoulli(0.4), group=pv.Choice(GROUPS))

    return {"records": pv.Records(rows, person)}


def total_above(a):
    return a[a > 60].sum()


def mean_above(a):
    return a[a > 60].mean() if (a > 60).sum() >= 3 else None


def number_above(a):
    above = a[a > 60]
    return len(above), above.size, above.shape[0]


def mean_between(a):
    mask = (a >= 18) & (a < 65)
    if mask.sum() >= 3:
        return float(np.mean(a[mask]))
    return None


def shares(a):
    return np.count_nonzero(a > 60), (a > 60).mean(), np.where(a > 60, a, 0).sum(), np.count_nonzero(a[a > 50] > 60)


def extremes(a):
    above, below = a[a > 30], a[a < 80]
    return above.min() if np.any(a > 30) else None, np.max(below) if (a < 80).any() else "n/a"


def spread(a):
    chosen = a[a > 40]
    if chosen.size < 3:
        return [None] * 5
    middle, low, high = np.median(chosen), np.quantile(chosen, 0.3), np.percentile(chosen, 90)
    return [middle, chosen.std(), np.var(chosen, ddof=1), low, high]


def arithmetic(a):
    above = a[a > 40]
    return (above - 40).sum(), (2 * above + 1).sum(), above[above > 60].sum(), np.sqrt(above).sum(), (above > 60).any()


def as_python_takes_it(a):
    above = a[a > 40]
    return sum(above), max(above, default=None), [x for x in above.tolist() if x > 60].count(0), sum(1 for x in above)


def histogram(a):
    return np.histogram(a, bins=[0, 20, 40, 60, 90])[0]


def histogram_as_list(a):
    return np.histogram(a, [0, 20, 40, 60, 90])[0].tolist()


def digitized(a):
    return [int((np.digitize(a, [20, 40, 60]) == k).sum()) for k in range(4)]


def quantiles(a):
    return np.percentile(a, 90), np.quantile(a, 0.5)


ARRAYS = [
    total_above, mean_above, number_above, mean_between, shares, extremes, spread, arithmetic, as_python_takes_it,
    histogram, histogram_as_list, digitized, quantiles,
]  # fmt: skip


def appended(records):
    xs = []
    for r in records:
        if r.woman:
            xs.append(r.pay)
    return sum(xs) / len(xs) if len(xs) >= 3 else None


def of_statistics(records):
    xs = [r.pay for r in records if r.woman]
    if len(xs) < 3:
        return None, None, None, None
    return statistics.mean(xs), statistics.fmean(xs), statistics.median(xs), statistics.stdev(xs)


def of_numpy(records):
    xs = [r.pay for r in records if r.woman]
    return {
        "n": len(xs), "mean": np.mean(xs) if xs else None, "sd": np.std(xs) if len(xs) > 1 else None,
        "max": max(xs, default=None), "median": np.median(xs) if xs else "none",
    }  # fmt: skip


def made_an_array(records):
    xs = np.array([r.pay for r in records if r.woman])
    return xs.mean() if len(xs) >= 2 else None


def two_arrays(records):
    pay, woman = np.array([r.pay for r in records]), np.array([r.woman for r in records])
    return pay[woman == 1].mean() if (woman == 1).sum() >= 3 else None


def columns(records):
    chosen = records["group"] == "a"
    return records["pay"][chosen].mean() if chosen.sum() >= 3 else None


def by_default(records):
    totals, counts = defaultdict(float), defaultdict(int)
    for r in records:
        totals[r.group] += r.pay
        counts[r.group] += 1
    return {g: totals[g] / counts[g] if counts[g] >= 3 else None for g in GROUPS}


def by_get(records):
    totals, counts = {}, {}
    for r in records:
        totals[r.group] = totals.get(r.group, 0) + r.pay
        counts[r.group] = counts.get(r.group, 0) + 1
    return {g: totals[g] / counts[g] if counts.get(g, 0) >= 3 else None for g in GROUPS}


def by_preset_keys(records):
    totals, counts = dict.fromkeys(GROUPS, 0.0), dict.fromkeys(GROUPS, 0)
    for r in records:
        totals[r.group] += r.pay
        counts[r.group] += 1
    return {g: totals[g] / counts[g] if counts[g] >= 3 else None for g in GROUPS}


def by_lists(records):
    groups = {}
    for r in records:
        groups.setdefault(r.group, []).append(r.pay)
    return {g: sum(groups[g]) / len(groups[g]) if g in groups and len(groups[g]) >= 3 else None for g in GROUPS}


def by_comprehension(records):
    sizes = {g: sum(r.group == g for r in records) for g in GROUPS}
    return {g: sum(r.pay for r in records if r.group == g) / sizes[g] if sizes[g] >= 3 else None for g in GROUPS}


def counter(records):
    counts = Counter("high" if r.pay > 30 else "low" for r in records)
    return counts["high"], counts["low"]


def counter_of_bands(records):
    counts = Counter(bisect.bisect([20, 30, 40], r.pay) for r in records)
    return [counts[k] for k in range(4)]


def bands(records):
    counts = [0] * 4
    for r in records:
        counts[bisect.bisect([20, 30, 40], r.pay)] += 1
    return counts


def third_largest(records):
    xs = [r.pay for r in records]
    return heapq.nlargest(3, xs)[-1], heapq.nsmallest(2, xs), max(xs) - min(xs)


def largest_of_some(records):
    xs = [r.pay for r in records if r.woman]
    return heapq.nlargest(2, xs)[-1] if len(xs) >= 2 else None


def range_of_some(records):
    xs = [r.pay for r in records if r.woman]
    return max(xs) - min(xs) if len(xs) >= 2 else None


def counted_in_a_list(records):
    return [r.group for r in records].count("a")


def histogram_of_rows(records):
    return np.histogram([r.pay for r in records], bins=[0, 20, 30, 40, 100])[0].tolist()


def gone_on(records):
    n, total = 0, 0.0
    for r in records:
        if not r.woman:
            continue
        n += 1
        total += r.pay
    return total / n if n else None


PLATED = [
    of_statistics, of_numpy, made_an_array, by_preset_keys, by_comprehension, third_largest, largest_of_some,
    range_of_some, gone_on, columns, two_arrays, histogram_of_rows,
]  # fmt: skip
BY_ROW = [appended, by_default, by_get, by_lists, counter, counter_of_bands, bands, counted_in_a_list]


def same(left, right):
    if isinstance(left, np.ndarray):
        left, right = left.tolist(), right.tolist()
    left = left.item() if isinstance(left, np.generic) else left
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (isinstance(left, float) and math.isclose(left, right)))


def agreed(program, given, samples=200):
    """Draw inputs and outputs of a traced program, and call it on those inputs; return the question."""
    question = Question(program, given, secret=list(given))
    assert question.case().lifting.tier == "traced", str(question.case().lifting)
    run = draw(question, None, samples=samples, seed=3)
    for inputs, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        with np.errstate(all="ignore"):
            plain = program(*inputs)
        assert same(plain, output), (plain, output, inputs)
    return question


@pytest.mark.parametrize("given", [array, whole_numbers])
@pytest.mark.parametrize("program", ARRAYS)
def test_masked_arrays_are_as_numpy_has_them(program, given):
    agreed(program, given())


def test_extremes_of_whole_numbers_stay_whole():
    def least(a):
        return int(a[a > 30].min()) if (a > 30).any() else None

    agreed(least, whole_numbers(4))


@pytest.mark.parametrize("program", [*PLATED, *BY_ROW])
def test_filtered_rows_are_as_python_has_them(program):
    agreed(program, table())


@pytest.mark.parametrize("program", PLATED)
def test_many_rows_are_traced_once(program):
    question = agreed(program, table(50), samples=10)
    nodes = everything_behind(leaf.node for leaf in random_leaves(question.case().output))
    assert len(nodes) < 150
    assert any(isinstance(node.operation, Fold) or node.shape == (50,) for node in nodes)


def test_nothing_to_average_is_an_error_as_in_a_plain_call():
    def least(a):
        return a[a > 60].min()

    question = Question(least, array(3), secret="a", exclude_errors=True)
    assert question.case().lifting.tier == "traced"
    run = draw(question, None, samples=500, seed=1)
    for inputs, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert least(inputs) == output


def test_sorted_numbers_of_python_stay_python_s():
    def middle(a, b, c):
        return a // sorted((a, b, c))[1]

    given = {name: pv.DiscreteUniform(-1, 2) for name in "abc"}
    question = Question(middle, given, secret=["a", "b", "c"], exclude_errors=True)
    assert question.case().lifting.tier == "traced"
    run = draw(question, None, samples=300, seed=1)
    for inputs, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert middle(*inputs) == output
