"""The order of tables and dicts is part of the output: held against all tables of a few rows, each by a plain call."""

import itertools
import json
import math
from collections import Counter, defaultdict

import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.observation.likelihood import difference
from privug.program.calls import Opaque

COLUMNS = {"zip": ["a", "b", "c"], "income": [10, 20]}
SHARES = {"zip": [0.5, 0.3, 0.2], "income": [0.6, 0.4]}


class Called(Opaque):
    """A program that is called for each sample, whatever it is."""

    hides_randomness = False

    def __init__(self, program):
        self.program = program

    def __call__(self, table):
        return self.program(table)


def published(output):
    """Return what a reader sees of an output, in its order."""
    match output:
        case pd.DataFrame():
            return [output.index.tolist(), *((name, output[name].tolist()) for name in output.columns)]
        case pd.Series():
            return list(zip(output.index.tolist(), output.tolist(), strict=True))
        case pl.DataFrame():
            return [(series.name, series.to_list()) for series in output.get_columns()]
        case dict():
            return [(key, published(part)) for key, part in output.items()]
        case list() | tuple():
            return [published(part) for part in output]
        case set() | frozenset():
            return sorted(output)
    return output


def records(form, size):
    row = pv.Row(**{name: pv.Choice(COLUMNS[name], p=SHARES[name]) for name in COLUMNS})
    table = pv.Records(size, row)
    return table if form == "rows" else table.as_frame(form)


def tables(form, size):
    """Yield all tables with their probabilities."""
    cells = [list(zip(COLUMNS[name], SHARES[name], strict=True)) for name in COLUMNS]
    for several in itertools.product(itertools.product(*cells), repeat=size):
        rows = [dict(zip(COLUMNS, (value for value, _ in row), strict=True)) for row in several]
        chance = math.prod(share for row in several for _, share in row)
        if form == "rows":
            yield [pv.Row(**row) for row in rows], chance
        else:
            yield (pd if form == "pandas" else pl).DataFrame(rows), chance


def first_zip(table):
    return table[0].zip if isinstance(table, list) else table["zip"][0]


def first_income(table):
    return table[0].income if isinstance(table, list) else table["income"][0]


def brute_force(program, form, size, secret):
    """Return the probabilities of secrets and outputs, by what is published, and an output for each of those."""
    joint, outputs = defaultdict(float), {}
    for table, chance in tables(form, size):
        value, output = secret(table), program(table)
        text = json.dumps(published(output), default=str)
        joint[value, text] += chance
        outputs[text] = output
    return joint, outputs


def information(joint):
    of_secret, of_output = defaultdict(float), defaultdict(float)
    for (secret, text), chance in joint.items():
        of_secret[secret] += chance
        of_output[text] += chance
    return sum(p * math.log2(p / of_secret[secret] / of_output[text]) for (secret, text), p in joint.items())


def counted(rows):
    counts = {}
    for row in rows:
        counts[row.zip] = counts.get(row.zip, 0) + 1
    return counts


def grouped(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row.zip, []).append(row.income)
    return groups


def totals(rows):
    found = defaultdict(int)
    for row in sorted(rows, key=lambda row: row.income):
        found[row.zip] += row.income
    return found


def nested(rows):
    table = {"by zip": {}, "n": len(rows)}
    for row in rows:
        table["by zip"][row.zip] = 1
    return table


def ranking(df):
    total = df.groupby("zip").income.sum().sort_values(ascending=False, kind="stable")
    return total.round(-2)


PANDAS = {
    "first come": lambda df: df.groupby("zip", sort=False).income.sum(),
    "first come, frame": lambda df: df.groupby("zip", sort=False).agg(n=("income", "size"), top=("income", "max")),
    "first come, large ones": lambda df: (lambda n: n[n >= 2])(df.groupby("zip", sort=False).size()),
    "counts": lambda df: df.zip.value_counts(),
    "shares": lambda df: df.zip.value_counts(normalize=True),
    "counts, ascending": lambda df: df.zip.value_counts(ascending=True),
    "counts as they come": lambda df: df.zip.value_counts(sort=False),
    "counts of two columns": lambda df: df[["zip", "income"]].value_counts(),
    "counts as a dict": lambda df: df.zip.value_counts().to_dict(),
    "counts as pairs": lambda df: dict(df.zip.value_counts().items()),
    "sum of counts": lambda df: df.zip.value_counts() + df[df.income > 10].zip.value_counts(),
    "sorted frame": lambda df: df.sort_values("income", kind="stable")[["zip"]],
    "sorted frame without labels": lambda df: df.sort_values("income", kind="stable")[["zip"]].reset_index(drop=True),
    "labels of a sorted frame": lambda df: df.sort_values("income", kind="stable")[[]],
    "head of a sorted frame": lambda df: df.sort_values("income", ascending=False, kind="stable").zip.head(2),
    "largest": lambda df: df.nlargest(2, "income").zip,
    "largest groups": lambda df: df.groupby("zip").income.sum().nlargest(2) * 0,
    "ranking": ranking,
    "without duplicates": lambda df: df.drop_duplicates("zip").set_index("zip").income * 0,
    "unique": lambda df: df.zip.unique().tolist(),
    "merged": lambda df: df.merge(pd.DataFrame({"zip": ["c", "a"], "region": ["n", "s"]}), on="zip")
    .groupby("region", sort=False).size(),
    "crossed, first come": lambda df: df.groupby(["zip", "income"], sort=False).size().unstack(fill_value=0),
    "in a tuple": lambda df: (len(df), df.zip.value_counts()),
}  # fmt: skip
POLARS = {
    "pivot": lambda df: df.pivot("zip", index="income", values="zip", aggregate_function="len"),
    "sorted pivot": lambda df: df.pivot(
        "zip", index="income", values="zip", aggregate_function="len", sort_columns=True),
    "pivot and a column more": lambda df: df.pivot(
        "zip", index="income", values="zip", aggregate_function="len").with_columns(pl.lit(1).alias("one")),
    "pivot without a column": lambda df: df.pivot(
        "zip", index="income", values="zip", aggregate_function="len").drop("a", strict=False),
    "pivot without its index": lambda df: df.pivot(
        "zip", index="income", values="zip", aggregate_function="len").drop("income").sum(),
    "first come": lambda df: df.group_by("zip", maintain_order=True).len(),
    "rows as a dict": lambda df: dict(df.group_by("zip", maintain_order=True).len().rows()),
    "sorted": lambda df: df.sort("income", maintain_order=True).select("zip"),
    "unique": lambda df: df.unique("zip", keep="first", maintain_order=True),
}  # fmt: skip
ROWS = {
    "counted": counted,
    "grouped": grouped,
    "totals": totals,
    "nested": nested,
    "comprehension": lambda rows: {row.zip: 1 for row in rows},
    "Counter": lambda rows: Counter(row.zip for row in rows),
    "most common": lambda rows: dict(Counter(row.zip for row in rows).most_common()),
    "most common pairs": lambda rows: Counter(row.zip for row in rows).most_common(),
    "the two most common": lambda rows: dict(Counter(row.zip for row in rows).most_common(2)),
    "by keys of another": lambda rows: {name: number > 1 for name, number in counted(rows).items()},
    "from keys": lambda rows: dict.fromkeys(row.zip for row in rows),
    "one of two orders": lambda rows: {"x": 1, "y": 2} if rows[0].zip == "a" else {"y": 2, "x": 1},
    "list of dicts": lambda rows: [{row.zip: 1, "income": 0} for row in rows],
    "tuple of dicts": lambda rows: (counted(rows[:2]), counted(rows[1:])),
    "set": lambda rows: {row.zip for row in rows},
}
PROGRAMS = [
    *(("pandas", name) for name in PANDAS), *(("polars", name) for name in POLARS), *(("rows", name) for name in ROWS)
]  # fmt: skip
OF = {"pandas": PANDAS, "polars": POLARS, "rows": ROWS}


CALLED = [("pandas", "first come"), ("pandas", "labels of a sorted frame"), ("polars", "pivot"), ("rows", "nested")]


@pytest.mark.parametrize(("form", "name"), PROGRAMS)
def test_the_order_is_seen(form, name):
    compare_with_brute_force(form, name, size=3 if form == "rows" else 2)


@pytest.mark.parametrize(("form", "name"), CALLED)
def test_the_order_is_seen_of_a_program_that_is_called(form, name):
    compare_with_brute_force(form, name, size=2, called=True)


@pytest.mark.slow
@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize(("form", "name"), PROGRAMS)
def test_the_order_is_seen_in_longer_tables(form, name, called):
    compare_with_brute_force(form, name, size=3, called=called)


def compare_with_brute_force(form, name, size, called=False):
    program = OF[form][name]
    secret = first_income if "sorted" in name or name in ("largest", "ranking") else first_zip
    joint, outputs = brute_force(program, form, size, secret)
    parameter = "table" if called else program.__code__.co_varnames[0]
    attack = pv.Attack(Called(program) if called else program, {parameter: records(form, size)}, secret)
    result = attack.run(engine="exact")
    assert pv.leakage.mutual_information(result.joint).value == pytest.approx(information(joint), abs=1e-9)
    of_output = defaultdict(float)
    for (_, text), chance in joint.items():
        of_output[text] += chance
    assert len(result.prediction.distribution()) == len(of_output)
    # An output that another one equals but for its order, if there is any.
    seen = max(of_output, key=lambda text: (Counter(map(by_letters, of_output))[by_letters(text)], of_output[text]))
    after = attack.run(pv.equals(outputs[seen]), engine="exact")
    assert after.diagnostics.evidence.value == pytest.approx(of_output[seen], abs=1e-9)
    expected = {value: p / of_output[seen] for (value, text), p in joint.items() if text == seen}
    found = {value: share.value for value, share in after.posterior.distribution().items() if share.value > 0}
    assert found == {value: pytest.approx(share, abs=1e-9) for value, share in expected.items()}


def by_letters(text):
    return "".join(sorted(text))


TRACED = [
    ("pandas", "first come"), ("pandas", "counts"), ("pandas", "counts as a dict"), ("polars", "pivot"),
    ("polars", "pivot and a column more"), ("rows", "counted"), ("rows", "Counter"), ("rows", "most common"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "name"), TRACED)
def test_a_random_order_is_traced(form, name):
    program = OF[form][name]
    attack = pv.Attack(program, {program.__code__.co_varnames[0]: records(form, 3)}, first_zip)
    assert attack.lifting.tier == "traced"


def test_an_observation_entry_by_entry_sees_no_order():
    attack = pv.Attack(counted, {"rows": records("rows", 2)}, first_zip)

    def first_is_a(seen):
        return attack.run(seen).posterior.probability(lambda name: name == "a").value

    assert first_is_a(pv.equals({"a": 1, "b": 1})) == 1
    assert first_is_a(pv.equals({"b": 1, "a": 1})) == 0
    assert first_is_a({"a": pv.equals(1), "b": pv.equals(1)}) == pytest.approx(0.5)


def test_an_order_that_never_is_names_the_one_that_is():
    attack = pv.Attack(lambda x, y: {"x": x, "y": y}, {"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, "x")
    with pytest.raises(pv.PrivugError, match=r"in the order \['x', 'y'\], never \['y', 'x'\].*dict of observations"):
        attack.run(pv.equals({"y": 1, "x": 1}))
    assert attack.run({"y": pv.equals(1), "x": pv.equals(1)}).diagnostics.evidence.value == pytest.approx(1 / 4)


def of_all(rows):
    counts = counted(rows)
    return counts if len(counts) == 2 else {}


def of_all_by_name(rows):
    return dict(sorted(of_all(rows).items()))


@pytest.mark.parametrize("called", [False, True])
def test_a_policy_counts_what_the_order_tells(called):
    for program, holds in ((of_all, False), (of_all_by_name, True)):
        lifted, parameter = (Called(program), "table") if called else (program, "rows")
        attack = pv.Attack(lifted, {parameter: records("rows", 2)}, first_zip)
        assert pv.policy.check(attack, pv.policy.max_belief(at_most=0.99)).holds is holds


def test_samples_see_the_order_as_enumeration_does():
    joint, _ = brute_force(counted, "rows", 3, first_zip)
    attack = pv.Attack(counted, {"rows": records("rows", 3)}, first_zip)
    found = pv.leakage.mutual_information(attack.run(engine="sample", samples=4000, seed=1).joint)
    assert information(joint) in found.widened(2)
    called = pv.Attack(Called(counted), {"table": records("rows", 3)}, first_zip)
    again = called.run(pv.equals({"b": 1, "a": 2}), engine="sample", samples=500, seed=1)
    assert again.posterior.distribution().keys() == {"b"}


def test_the_order_is_handed_on_to_a_predicate():
    attack = pv.Attack(counted, {"rows": records("rows", 3)}, first_zip)
    seen = attack.run(pv.such_that(lambda counts: next(iter(counts.items()))[0] == "b"))
    assert seen.posterior.distribution().keys() == {"b"}
    assert seen.diagnostics.evidence.value == pytest.approx(0.3)


def test_a_dict_in_another_order_is_away_by_the_entries_that_moved():
    assert difference({"a": 1, "b": 2, "c": 3}, {"b": 2, "a": 1, "c": 3}) == 2
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 2}) == 0
