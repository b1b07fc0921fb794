"""Questions about a person in a table, against closed forms, the exact engine and counting."""

import math

import numpy as np
import pytest
import scipy.stats

import privug as pv
from privug import reidentification as reid
from privug.reidentification import match_counts
from privug.reidentification.questions import DrawnRows, IndependentRows, KnownRows

ZIPS = [f"{2000 + k}" for k in range(200)]


def others():
    return pv.Row(zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.2))


def governor(position):
    return pv.Row(zip=ZIPS[7], day=3, sex="m", ill=1) if position == 0 else others()


DISCLOSED = [
    (1000, ["zip"], 0.01824), (1000, ["day"], 0.00033), (1000, ["sex"], 0.0), (1000, ["zip", "day"], 0.96083),
    (1000, ["zip", "sex"], 0.13534), (1000, ["day", "sex"], 0.01824), (1000, ["zip", "day", "sex"], 0.98022),
    (14_000, ["zip", "day"], 0.57123), (14_000, ["zip", "day", "sex"], 0.75580),
]  # fmt: skip


@pytest.mark.parametrize(("size", "columns", "expected"), DISCLOSED)
def test_positive_disclosure_of_the_governors_diagnosis(size, columns, expected):
    by_knowledge = reid.positive_disclosure(pv.Records(size, others()), columns, "ill", person={"ill": 1})
    assert by_knowledge.exact
    assert by_knowledge.value == pytest.approx(expected, abs=0.51e-5)
    if size == 1000:
        by_row = reid.positive_disclosure(pv.Records(size, governor), columns, "ill")
        assert by_row.value == pytest.approx(by_knowledge.value, rel=1e-12)


@pytest.mark.parametrize(("columns", "expected"), [(["zip", "day"], 0.49660), (["zip", "day", "sex"], 0.70470)])
def test_the_governor_is_unique(columns, expected):
    estimate = reid.uniqueness(pv.Records(14_000, others()), columns)
    chance = 1 / (20_000 if len(columns) == 2 else 40_000)
    assert estimate.value == pytest.approx((1 - chance) ** 13_999, rel=1e-12)
    assert estimate.value == pytest.approx(expected, abs=0.51e-5)


def test_number_of_matching_rows_is_binomial():
    belief = reid.matching_rows(pv.Records(1000, others()), "zip")
    assert belief.mean().value == pytest.approx(1 + 999 / 200, abs=1e-9)
    expected = math.comb(999, 4) * (1 / 200) ** 4 * (199 / 200) ** 995
    assert belief.probability(lambda n: n == 5).value == pytest.approx(expected, rel=1e-9)


def test_five_rows_share_the_governors_zip():
    ill = reid.sharing_rows(pv.Records(1000, governor), "zip", "ill", matching=5).distribution()
    assert [ill[k].value for k in range(1, 6)] == pytest.approx([0.4096, 0.4096, 0.1536, 0.0256, 0.0016], abs=1e-12)
    assert ill[3].exact


def test_posterior_of_the_secret_is_its_share_for_rows_that_are_alike():
    belief = reid.secret_posterior(pv.Records(1000, others()), "zip", "ill", {1: 2, 0: 3})
    assert belief.distribution()[1].value == pytest.approx(0.4, abs=1e-12)


def test_posterior_of_the_secret_weighs_what_is_known_beforehand():
    """The person is ill with probability 1/2, the others with 1/5, so an ill row counts four times a healthy one."""

    def row(position):
        return pv.Row(zip=pv.Choice(range(20)), ill=pv.Bernoulli(0.5 if position == 0 else 0.2))

    belief = reid.secret_posterior(pv.Records(100, row), "zip", "ill", {1: 2, 0: 3})
    assert belief.distribution()[1].value == pytest.approx(5 / (5 + 15 / 8), abs=1e-12)


def small(position):
    """Columns that depend on one another, in a table small enough to enumerate."""
    sex = pv.Choice(["f", "m"], p=[0.3, 0.7])
    ill = pv.given(sex, {"f": pv.Bernoulli(0.1), "m": pv.Bernoulli(0.6)})
    return pv.Row(zip=pv.Choice([1, 2, 3], p=[0.5, 0.3, 0.2]), sex=sex, ill=ill)


def mixed(position):
    """Rows of several distributions, one of them known."""
    if position == 2:
        return pv.Row(zip=1, sex="m", ill=0)
    return small(position) if position else pv.Row(zip=pv.Choice([1, 2]), sex="m", ill=pv.Bernoulli(0.5))


def engine(records, person):
    rows = DrawnRows(records, person, 1000, 0)
    rows._options["engine"] = "exact"
    return rows


def values(belief):
    return {value: share.value for value, share in belief.distribution().items() if share.value > 0}


@pytest.mark.parametrize("columns", [["zip"], ["sex"], ["zip", "sex"], ["sex", "ill"]])
@pytest.mark.parametrize(("row", "person"), [(small, 0), (small, "anyone"), (mixed, 0), (mixed, "anyone")])
def test_closed_forms_agree_with_the_exact_engine(row, person, columns):
    table = pv.Records(4, row)
    closed, enumerated = IndependentRows(table, person), engine(table, person)
    for name in ("unique", "linked", "expected"):
        ours, theirs = getattr(closed, name)(columns), getattr(enumerated, name)(columns)
        assert ours.exact
        assert theirs.exact
        assert ours.value == pytest.approx(theirs.value, abs=1e-12)
    assert closed.disclosed(columns, "ill").value == pytest.approx(
        enumerated.disclosed(columns, "ill").value, abs=1e-12
    )
    assert values(closed.matching(columns)) == pytest.approx(values(enumerated.matching(columns)), abs=1e-12)
    assert values(closed.sharing(columns, "ill", None)) == pytest.approx(
        values(enumerated.sharing(columns, "ill", None)), abs=1e-12
    )


@pytest.mark.parametrize("columns", [["zip"], ["sex"], ["zip", "sex"]])
def test_conditional_closed_forms_agree_with_the_exact_engine(columns):
    table = pv.Records(4, small)
    closed, enumerated = IndependentRows(table, 0), engine(table, 0)
    assert closed.guessed(columns, "ill").value == pytest.approx(enumerated.guessed(columns, "ill").value, abs=1e-12)
    assert values(closed.sharing(columns, "ill", 2)) == pytest.approx(
        values(enumerated.sharing(columns, "ill", 2)), abs=1e-12
    )
    seen = {0: 1, 1: 2}
    assert values(closed.posterior(columns, "ill", seen)) == pytest.approx(
        values(enumerated.posterior(columns, "ill", seen)), abs=1e-12
    )


@pytest.mark.parametrize("person", [0, "anyone"])
@pytest.mark.parametrize("columns", [["zip"], ["zip", "sex"], []])
def test_expected_share_among_rows_of_several_distributions(person, columns):
    table = pv.Records(4, mixed)
    truth = engine(table, person).guessed(columns, "ill").value
    assert IndependentRows(table, person).guessed(columns, "ill").value == pytest.approx(truth, abs=1e-12)


def test_what_has_no_closed_form_for_several_distributions_is_asked_of_an_engine():
    table = pv.Records(4, mixed)
    ours = reid.sharing_rows(table, "zip", "ill", matching=2, samples=20_000, seed=3).distribution()
    truth = values(engine(table, 0).sharing(["zip"], "ill", 2))
    assert truth[2] in ours[2].widened(2)


def test_an_attacker_who_knows_all_rows_but_one():
    rng = np.random.default_rng(4)
    data = {"zip": rng.integers(0, 30, 300).tolist(), "sex": rng.choice(["f", "m"], 300).tolist()}
    data["ill"] = (rng.random(300) < 0.2).tolist()
    table = pv.Records.knows_all_but(data, 7, unknown=["ill"])
    matching = sum(z == data["zip"][7] for z in data["zip"])
    belief = reid.matching_rows(table, "zip", person=7)
    assert belief.exact
    assert belief.distribution().keys() == {matching}
    risks = reid.three_risks(table, "zip", "ill", person=7)
    ill = sum(data["ill"][k] for k in range(300) if k != 7) / 299
    known = sum(data["ill"][k] for k in range(300) if k != 7 and data["zip"][k] == data["zip"][7])
    expected = ill * (known + 1) / matching + (1 - ill) * (matching - known) / matching
    assert risks.linkability.value == pytest.approx(1 / matching, rel=1e-9)
    assert risks.inference.value == pytest.approx(expected, rel=1e-9)


def test_known_rows_agree_with_the_exact_engine():
    def row(position):
        if position == 1:
            return small(position)
        return pv.Row(zip=1 + position % 2, sex="fm"[position % 2], ill=int(position > 3))

    table = pv.Records(6, row)
    closed, enumerated = KnownRows(table, 1), engine(table, 1)
    for columns in (["zip"], ["zip", "sex"], []):
        for name in ("unique", "linked", "expected"):
            assert getattr(closed, name)(columns).value == pytest.approx(
                getattr(enumerated, name)(columns).value, abs=1e-12
            )
        for name in ("disclosed", "guessed"):
            ours, theirs = getattr(closed, name)(columns, "ill"), getattr(enumerated, name)(columns, "ill")
            assert ours.value == pytest.approx(theirs.value, abs=1e-12)
        for others in (closed, enumerated), (IndependentRows(table, 1), enumerated):
            ours, theirs = (values(rows.matching(columns)) for rows in others)
            assert ours == pytest.approx(theirs, abs=1e-12)
    assert values(closed.sharing(["zip"], "ill", 4)) == pytest.approx(values(enumerated.sharing(["zip"], "ill", 4)))
    assert values(closed.sharing(["sex"], "ill", None)) == pytest.approx(
        values(enumerated.sharing(["sex"], "ill", None))
    )
    seen = {0: 3, 1: 1}
    assert values(closed.posterior(["zip"], "ill", seen)) == pytest.approx(
        values(enumerated.posterior(["zip"], "ill", seen))
    )
    with pytest.raises(pv.ImpossibleObservation):
        closed.posterior(["zip"], "ill", {0: 9})


def test_conditional_tables_with_many_entries_are_listed_entry_by_entry():
    zip_code = pv.Choice(range(50))
    age = pv.given(zip_code, {k: pv.Binomial(80, 0.2 + k / 100) for k in range(50)})
    job = pv.given(age, {k: pv.Choice(["a", "b"], p=[k / 80, 1 - k / 80]) for k in range(81)})
    table = pv.Records(200, pv.Row(zip=zip_code, age=age, job=job))
    numbers = np.arange(81)
    shares = np.array([scipy.stats.binom.pmf(numbers, 80, 0.2 + k / 100) for k in range(50)]) / 50
    both = shares * np.stack([np.broadcast_to(numbers / 80, (50, 81)), np.broadcast_to(1 - numbers / 80, (50, 81))])
    assert reid.uniqueness(table, "age").value == pytest.approx(
        (shares.sum(0) * (1 - shares.sum(0)) ** 199).sum(), rel=1e-9
    )
    assert reid.uniqueness(table, ["zip", "age", "job"]).value == pytest.approx(
        (both * (1 - both) ** 199).sum(), rel=1e-9
    )


def test_many_wide_columns_do_not_run_over():
    together = pv.Records(
        3, lambda position: pv.Empirical([{f"c{k}": 7**k * i for k in range(6)} for i in range(2000)])
    )
    assert reid.uniqueness(together, [f"c{k}" for k in range(6)]).value == pytest.approx((1 - 1 / 2000) ** 2, rel=1e-12)


def uneven(rows):
    ranks = np.arange(1, 301)
    zips = (1 / ranks) / (1 / ranks).sum()
    jobs = np.arange(1, 41) / 820
    row = pv.Row(
        zip=pv.Choice(range(300), p=zips),
        job=pv.Choice(range(40), p=jobs),
        age=pv.Binomial(90, 0.45),
        ill=pv.Bernoulli(0.2),
    )
    return pv.Records(rows, row)


@pytest.mark.parametrize("rows", [101, 30_000, 1_000_000])
def test_transforms_agree_with_listing_all_combinations(rows, monkeypatch):
    columns = ["zip", "job", "age"]
    answers = []
    for most in (0, math.inf):  # combinations up to which all are listed
        monkeypatch.setattr(match_counts, "MOST_AT_ONCE", most)
        people = IndependentRows(uneven(rows), 0)
        estimates = [people.unique(columns), people.linked(columns), people.disclosed(columns, "ill")]
        answers.append([estimate.value for estimate in (*estimates, people.guessed(columns, "ill"))])
    assert answers[0] == pytest.approx(answers[1], abs=1e-11)


def test_transform_is_used_where_nothing_else_could():
    ranks = np.arange(1, 1001)
    p = (1 / ranks) / (1 / ranks).sum()
    columns = {f"c{k}": pv.Choice(range(1000), p=p) for k in range(4)}
    table = pv.Records(50_000, pv.Row(**columns))
    exact = reid.uniqueness(table, list(columns)).value
    rng = np.random.default_rng(1)
    chances = p[rng.choice(1000, (200_000, 4), p=p)].prod(axis=1)
    drawn = np.exp(49_999 * np.log1p(-chances))
    assert exact == pytest.approx(drawn.mean(), abs=4 * drawn.std() / math.sqrt(200_000))


def test_columns_with_densities_are_unique():
    row = pv.Row(age=pv.Normal(40, sd=10), zip=pv.Choice([1, 2]), income=pv.Normal(0, sd=1))
    table = pv.Records(50, row)
    assert reid.uniqueness(table, ["age", "zip"]).value == 1
    assert reid.matching_rows(table, "age").distribution().keys() == {1}
    assert reid.positive_disclosure(table, "zip", "income").value == pytest.approx(0.5**49, rel=1e-9)
    assert reid.sharing_rows(table, "zip", "income").distribution().keys() == {1}


def test_tables_of_random_size():
    size = pv.Binomial(20, 0.5)
    table = pv.Records(size, pv.Row(sex=pv.Choice(["f", "m"])))
    chances = [math.comb(20, n) / 2**20 for n in range(1, 21)]
    expected = sum(chance * 0.5 ** (n - 1) for n, chance in enumerate(chances, 1)) / sum(chances)
    assert reid.uniqueness(table, "sex").value == pytest.approx(expected, rel=1e-12)
    assert reid.uniqueness(table, "sex", person="anyone").value == pytest.approx(expected, rel=1e-12)
    later = sum(chances[n - 1] * 0.5 ** (n - 1) for n in range(6, 21)) / sum(chances[5:])
    assert reid.uniqueness(table, "sex", person=5).value == pytest.approx(later, rel=1e-12)


def test_rows_that_depend_on_one_another_are_sampled():
    share = pv.Choice([0.1, 0.9])

    def row(position):
        return pv.Row(sick=pv.Bernoulli(share), zip=pv.Choice([1, 2]))

    table = pv.Records(30, row)
    truth = 0.5 * (0.1 * 0.9**29 + 0.9 * 0.1**29) + 0.5 * (0.9 * 0.1**29 + 0.1 * 0.9**29)
    estimate = reid.uniqueness(table, "sick", samples=20_000, seed=5)
    assert truth in estimate.widened(2)


def test_a_template_with_a_shared_parameter_is_not_taken_for_independent():
    share = pv.Beta(1, 1)
    table = pv.Records(3, pv.Row(sick=pv.Bernoulli(share)))
    estimate = reid.uniqueness(table, "sick", samples=20_000, seed=5)
    assert 1 / 6 in estimate.widened(2)  # under independence it would be 1/4


def test_what_is_known_of_the_person_conditions_dependent_columns():
    table = pv.Records(4, small)
    ours = IndependentRows(table, {"ill": 1})
    men = 0.7 * 0.6 / (0.7 * 0.6 + 0.3 * 0.1)
    assert ours.unique(["sex"]).value == pytest.approx(men * 0.3**3 + (1 - men) * 0.7**3, rel=1e-12)
    assert ours.expected(["ill"]).value == pytest.approx(1 + 3 * 0.45, rel=1e-12)


def test_impossible_knowledge():
    with pytest.raises(pv.ImpossibleObservation, match="zip='9999'"):
        reid.uniqueness(pv.Records(10, others()), "zip", person={"zip": "9999"})
    with pytest.raises(pv.ImpossibleObservation):
        reid.sharing_rows(pv.Records(10, others()), "zip", "ill", matching=11)
    with pytest.raises(pv.ImpossibleObservation):
        reid.secret_posterior(pv.Records(10, others()), "zip", "ill", {1: 6, 0: 6})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["zap"]}, "no column 'zap'"),
        ({"columns": "zip", "person": 10}, "at most 10 rows"),
        ({"columns": "zip", "person": -1}, "0 or more"),
        ({"columns": "zip", "person": True}, "person must be"),
        ({"columns": "zip", "person": "Alice"}, "person must be"),
        ({"columns": "zip", "person": {"zap": 1}}, "no column 'zap'"),
        ({"columns": "zip", "samples": 0}, "samples must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(pv.ArgumentError, match=message):
        reid.uniqueness(pv.Records(10, others()), **arguments)


def test_a_lone_row():
    table = pv.Records(1, others())
    risks = reid.three_risks(table, ["zip"], "ill")
    assert (risks.singling_out.value, risks.linkability.value, risks.inference.value) == (1, 1, 1)
    assert reid.matching_rows(table, "zip").distribution().keys() == {1}
