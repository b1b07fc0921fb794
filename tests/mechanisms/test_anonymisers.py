"""Anonymisers on plain tables of all kinds, and as programs that are analysed."""

import datetime
import math
from collections import Counter, namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import privug as pv
from privug.mechanisms import anonymisers as ano

Patient = namedtuple("Patient", ["zip", "day", "sex", "ill"])


@dataclass(frozen=True)
class Record:
    zip: str
    day: int
    sex: str
    ill: bool


def cells(rng, rows):
    for _ in range(rows):
        yield f"{2000 + rng.integers(4)}", int(rng.integers(20)), "fm"[rng.integers(2)], bool(rng.random() < 0.3)


def table(make, rows=60, seed=1):
    return [make(*line) for line in cells(np.random.default_rng(seed), rows)]


KINDS = {
    "rows": lambda *line: pv.Row(**dict(zip(Patient._fields, line, strict=True))),
    "dicts": lambda *line: dict(zip(Patient._fields, line, strict=True)),
    "named tuples": Patient,
    "data classes": Record,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_stay_of_their_kind(kind):
    people = table(KINDS[kind])
    for released in (
        ano.k_ano(people, 2, ["zip", "day", "sex"]),
        ano.mondrian(people, 5, ["day"]),
        ano.microaggregate(people, 5, "day"),
        ano.generalise(people, zip=ano.prefix(2), day=ano.bands(5)),
        ano.swap(people, "zip", 0.5),
        ano.synthesise(people),
        ano.suppress(people, 1, "zip"),
    ):
        assert len(released) == len(people)
        assert all(type(one) is type(people[0]) for one in released)
    assert people == table(KINDS[kind])  # the input is as it was


def test_dropping_and_keeping():
    people = table(KINDS["dicts"], 3)
    assert [set(row) for row in ano.drop(people, "zip", "day")] == [{"sex", "ill"}] * 3
    assert [list(row) for row in ano.keep(people, "ill", "zip")] == [["ill", "zip"]] * 3
    with pytest.raises(pv.ArgumentError, match="no column 'name'"):
        ano.drop(people, "name")
    with pytest.raises(pv.ArgumentError, match="at least one column"):
        ano.keep(people)


def test_hierarchies():
    zips = ano.Hierarchy(ano.prefix(3), ano.prefix(1), ano.everything)
    assert [zips.level(k)("2300") for k in range(4)] == ["2300", "230*", "2***", "*"]
    with pytest.raises(pv.ArgumentError, match="at most 3"):
        zips.level(4)
    assert ano.month(datetime.datetime(2020, 5, 17, 8)) == "2020-05"
    assert ano.year("2020-05-17") == "2020"
    assert ano.labels({"north": [1, 2]})(3) == 3
    assert [ano.cuts([18, 65])(age) for age in (17.9, 18, 64, 65, 90)] == [-math.inf, 18, 18, 65, 65]
    assert [ano.bands(10, start=5)(age) for age in (4, 5, 15)] == [-5, 5, 15]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ano.bands(0), "width"),
        (lambda: ano.prefix(-1), "length"),
        (lambda: ano.cuts([]), "edge"),
        (lambda: ano.month("June"), "1954-06-15"),
        (lambda: ano.Hierarchy(), "functions"),
        (lambda: ano.generalise([{"zip": 1}], zip=3), "function"),
        (lambda: ano.k_ano([{"zip": 1}], 0, "zip"), "k must be"),
        (lambda: ano.swap([{"zip": 1}], "zip", 2), "share"),
        (lambda: ano.synthesise([]), "at least one row"),
        (lambda: ano.synthesise([{"zip": 1}], model="copula"), "model"),
        (lambda: ano.synthesise([{"zip": 1, "sex": 2}], model={"zip": ["sex"]}), "before it"),
        (lambda: ano.microaggregate([{"zip": "a"}], 1, "zip"), "numbers"),
        (lambda: ano.diversity([{"zip": 1, "ill": 1}], "zip", "ill", kind="l"), "kind"),
        (lambda: ano.suppress(3, 1, "zip"), "records must be"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(pv.ArgumentError, match=message):
        make()


tables = st.lists(
    st.builds(dict, zip=st.integers(0, 3), sex=st.sampled_from("fm"), age=st.integers(0, 6)), min_size=1, max_size=40
)


@given(tables, st.integers(1, 5))
def test_what_k_ano_and_mondrian_release_is_k_anonymous(people, k):
    columns = ["zip", "sex", "age"]
    assert ano.is_k_anonymous(ano.mondrian(people, min(k, len(people)), columns), min(k, len(people)), columns)
    released = ano.k_ano(people, k, columns)
    if len(people) >= k:
        assert ano.is_k_anonymous(released, k, columns)
    for before, after in zip(people, released, strict=True):
        assert all(after[name] in (before[name], "*") for name in columns)


@given(tables, st.integers(1, 5))
def test_mondrian_boxes_hold_their_rows_and_suppression_keeps_order(people, k):
    for before, after in zip(people, ano.mondrian(people, k, ["age", "sex"]), strict=True):
        assert after["age"][0] <= before["age"] <= after["age"][1]
        assert before["sex"] in after["sex"]
    kept = ano.suppress(people, k, ["zip", "sex"])
    assert not kept or ano.is_k_anonymous(kept, k, ["zip", "sex"])
    counts = Counter((row["zip"], row["sex"]) for row in people)
    assert kept == [row for row in people if counts[row["zip"], row["sex"]] >= k]


@given(tables, st.integers(1, 5))
def test_microaggregation_keeps_means_and_makes_groups(people, k):
    released = ano.microaggregate(people, k, ["age", "zip"])
    for name in ("age", "zip"):
        assert np.mean([row[name] for row in released]) == pytest.approx(
            np.mean([row[name] for row in people]), abs=1e-9
        )
    assert ano.anonymity(released, ["age", "zip"]) >= min(k, len(people))


def test_k_ano_looks_at_larger_sets_without_what_is_masked():
    """Everyone's zip is their own: it is masked, and then sex alone distinguishes nobody."""
    people = [{"zip": k, "sex": "fm"[k % 2]} for k in range(10)]
    assert ano.k_ano(people, 2, ["zip", "sex"]) == [{"zip": "*", "sex": "fm"[k % 2]} for k in range(10)]
    pairs = [{"day": k // 2, "sex": "fm"[k % 2]} for k in range(10)]  # two a day, but of different sex
    assert ano.k_ano(pairs, 2, ["day", "sex"]) == [{"day": "*", "sex": "*"}] * 10


def test_diversity_and_closeness():
    rows = [{"zip": z, "ill": ill} for z, ill in [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (2, "a"), (2, "b")]]
    assert ano.diversity(rows, "zip", "ill") == 2
    assert ano.diversity(rows, "zip", "ill", kind="entropy") == pytest.approx(3 / 2 ** (2 / 3))
    assert ano.is_l_diverse(rows, 2, "zip", "ill")
    assert not ano.is_l_diverse(rows, 3, "zip", "ill")
    assert ano.closeness(rows, "zip", "ill") == pytest.approx(1 / 6)
    assert ano.is_t_close(rows, 1 / 6, "zip", "ill")


def test_closeness_of_salaries_as_published():
    """Li, Li and Venkatasubramanian, example 3: salaries 3k to 11k, the classes {3k, 4k, 5k} and {6k, 8k, 11k}."""
    salaries = [(1, 3), (1, 4), (1, 5), (2, 6), (2, 8), (2, 11), (3, 7), (3, 9), (3, 10)]
    rows = [{"group": group, "salary": salary} for group, salary in salaries]
    assert ano.closeness(rows, "group", "salary") == pytest.approx(0.375)
    only_second = [{"group": 2 if g == 2 else 0, "salary": s} for g, s in salaries]
    assert ano.closeness(only_second, "group", "salary") == pytest.approx(0.167, abs=0.001)


def test_swapping_keeps_what_columns_say_together():
    people = table(KINDS["dicts"], 41)
    released = ano.swap(people, ["zip", "sex"], 0.5)
    assert Counter((r["zip"], r["sex"]) for r in released) == Counter((r["zip"], r["sex"]) for r in people)
    moved = sum(after != before for before, after in zip(people, released, strict=True))
    assert 0 < moved <= 20
    assert ano.swap(people, "zip", 0) == people


def test_synthetic_rows_follow_the_model():
    people = [{"sex": "f", "name": "Eve"}] * 30 + [{"sex": "m", "name": "Bob"}] * 70

    def share(records, model):
        made = ano.synthesise(records, 50, model=model)
        return sum(row.sex == "m" for row in made), sum(row.name == {"f": "Eve", "m": "Bob"}[row.sex] for row in made)

    records = [pv.Row(**row) for row in people]
    together = pv.Attack(lambda x: share(records, "chain"), {"x": pv.Bernoulli(0.5)}, "x")
    result = together.run(samples=150, engine="sample", seed=2)
    men = result.belief(lambda output: output[0]).mean()
    assert 35 in men.widened(2)
    assert result.belief(lambda output: output[1]).distribution().keys() == {50}
    apart = pv.Attack(lambda x: share(records, "independent"), {"x": pv.Bernoulli(0.5)}, "x")
    matched = apart.run(samples=150, engine="sample", seed=2).belief(lambda output: output[1]).mean()
    assert 50 * (0.3**2 + 0.7**2) in matched.widened(2)


def person(position):
    return pv.Row(name=f"person {position}", zip=pv.Choice(["2300", "2305", "2400"]), age=pv.DiscreteUniform(20, 59))


def test_coarser_columns_are_analysed_exactly():
    """Of three zips two look alike after masking the last digits: seeing 23** leaves two of equal probability."""

    def release(records):
        return ano.generalise(ano.drop(records, "name"), zip=ano.prefix(2), age=ano.bands(20))

    attack = pv.Attack(release, {"records": pv.Records(3, person)}, secret=lambda records: records[0].zip)
    result = attack.run(observe=pv.such_that(lambda rows: rows[0].zip == "23**"), engine="exact")
    assert attack.lifting.tier == "traced"
    assert {zip_code: share.value for zip_code, share in result.posterior.distribution().items()} == {
        "2300": pytest.approx(0.5), "2305": pytest.approx(0.5),
    }  # fmt: skip
    ages = result.belief(lambda output: output[0].age).distribution()
    assert {age: share.value for age, share in ages.items()} == {20: pytest.approx(0.5), 40: pytest.approx(0.5)}


def test_seeded_swaps_are_the_same_again():
    prior = {"records": pv.Records(6, person)}
    attack = pv.Attack(
        lambda records: [row.zip for row in ano.swap(records, "zip", 1)], prior, lambda records: records[0].zip
    )
    runs = [attack.run(samples=50, engine="sample", seed=3).prediction.batch.values() for _ in range(2)]
    assert runs[0] == runs[1]


def days_without_a_lone_row(rows, days):
    """P(none of the days occurs exactly once), where one row more is known to fall on the first day."""
    left = np.zeros(rows + 1)
    left[rows] = 1.0
    numbers = np.arange(rows + 1)
    for day in range(days):
        there = scipy.stats.binom.pmf(
            numbers, numbers[:, None], 1 / (days - day)
        )  # of so many left, so many on this day
        there[:, 0 if day == 0 else 1] = 0.0
        after = np.zeros(rows + 1)
        for count in numbers:
            after[: rows + 1 - count] += left[count:] * there[count:, count]
        left = after
    return float(left[0])


def test_small_oracle_by_hand():
    """Two more rows on two days: both on the first, or both on the second: then the known one is alone."""
    assert days_without_a_lone_row(2, 2) == pytest.approx(1 / 4)
    assert days_without_a_lone_row(1, 2) == pytest.approx(1 / 2)


NO_LONE_DAY = 0.0278531034909537  # for 499 rows more and 100 days


@pytest.mark.slow
def test_oracle_of_no_lone_day():
    assert days_without_a_lone_row(499, 100) == pytest.approx(NO_LONE_DAY, rel=1e-9)


ZIPS = [f"{1000 + k}" for k in range(200)]


def patient(position):
    if position == 0:
        return pv.Row(zip=ZIPS[0], day=0, sex="m", ill=True)
    return pv.Row(
        zip=pv.Choice(ZIPS),
        day=pv.DiscreteUniform(0, 99),
        sex=pv.Choice(["f", "m"]),
        ill=pv.Choice([True, False], p=[0.2, 0.8]),
    )


def masked(records):
    released = ano.k_ano(records, 2, ["zip", "day", "sex"])
    return tuple(released[0][name] == "*" for name in ("zip", "day", "sex"))


def test_k_ano_masks_sex_in_the_runs_in_which_no_day_is_lonely():
    """Zip and day are masked one by one; only if no day occurs once do day and sex together single people out."""
    attack = pv.Attack(masked, {"records": pv.Records(500, patient)}, secret=lambda records: records[1].ill)
    result = attack.run(samples=600, engine="sample", seed=7)
    sex = result.prediction.probability(lambda columns: columns[2])
    assert NO_LONE_DAY in sex.widened(2)
    assert result.prediction.probability(lambda columns: columns[0] & columns[1]).value == 1


ANONYMISERS = {
    "k_ano": lambda people: ano.k_ano(people, 2, ["zip", "day"]),
    "mondrian": lambda people: ano.mondrian(people, 5, ["day", "zip"]),
    "microaggregate": lambda people: ano.microaggregate(people, 5, "day"),
    "generalise": lambda people: ano.generalise(people, zip=ano.prefix(2), day=ano.bands(5)),
    "cuts": lambda people: ano.generalise(people, day=ano.cuts([5, 12])),  # whole numbers and minus infinity
    "swap": lambda people: ano.swap(people, ["zip", "sex"], 0.5),
    "suppress": lambda people: ano.suppress(people, 14, "zip"),
    "drop": lambda people: ano.drop(people, "zip"),
    "keep": lambda people: ano.keep(people, "sex", "zip"),
    "synthesise": lambda people: ano.synthesise(people, 7),
}


def as_dicts(frame):
    listed = frame.to_dict("records") if hasattr(frame, "iloc") else frame.to_dicts()
    return [{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()} for row in listed]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ANONYMISERS)
def test_a_frame_in_gives_a_frame_of_the_same_library_with_the_same_rows(name, library, monkeypatch):
    people = table(KINDS["dicts"])
    frame = pytest.importorskip(library).DataFrame(people)
    drawn = lambda dist: np.random.default_rng(5).random(dist.node.shape)
    monkeypatch.setattr("privug.mechanisms.anonymisers.coarsening.sample", drawn)
    monkeypatch.setattr("privug.mechanisms.anonymisers.coarsening.sample", drawn)
    released = ANONYMISERS[name](frame)
    assert type(released) is type(frame)
    assert as_dicts(released) == ANONYMISERS[name](people)
    assert as_dicts(frame) == people  # the input is as it was
    empty = frame[:0]
    if name != "synthesise":
        assert type(ANONYMISERS[name](empty)) is type(frame)
        assert len(ANONYMISERS[name](empty)) == 0


def test_an_index_stays_with_its_rows():
    frame = pd.DataFrame({"zip": [1, 1, 2], 7: [20, 30, 40]}, index=["a", "b", "c"])
    assert list(ano.suppress(frame, 2, "zip").index) == ["a", "b"]
    assert ano.mondrian(frame, 3, "7").loc["b", 7] == (20, 40)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_anonymisers_give_frames_inside_lifted_programs_too(library):
    pytest.importorskip(library)
    row = pv.Row(zip=pv.Choice(["2300", "2400"]), day=pv.DiscreteUniform(0, 3))

    def generalised(people):
        return ano.generalise(ano.drop(people, "zip"), day=ano.bands(2))["day"].sum()

    def suppressed(people):
        return ano.suppress(people, 2, "zip")["day"].sum()

    options = {"prior": {"people": pv.Records(2, row).as_frame(library)}, "secret": lambda people: people["zip"][0]}
    assert pv.Attack(generalised, **options).run().prediction.mean().value == pytest.approx(2)
    # Both rows are kept if they have the same zip, whatever their days are.
    assert pv.Attack(suppressed, **options).run().prediction.mean().value == pytest.approx(1 / 2 * 2 * 1.5)


def test_tables_stay_tables_whose_columns_can_be_had():
    row = pv.Row(zip=pv.Choice(["2300", "2400"]), day=pv.DiscreteUniform(0, 3))
    attack = pv.Attack(
        lambda people: ano.generalise(people, day=ano.bands(2)).day.max(),
        {"people": pv.Records(2, row)},
        secret=lambda people: people[0].day,
    )
    assert attack.run().prediction.probability(lambda day: day == 2).value == pytest.approx(0.75)
