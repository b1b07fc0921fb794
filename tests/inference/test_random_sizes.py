"""Tables of random size whose size matters: to the secret, to the output, or to what is assumed. By closed forms."""

import math
import warnings

import pytest

import privug as pv

HEADS = pv.Row(b=pv.Bernoulli(0.5))


def binomial(n, p, k):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def total(rows):
    return sum(r.b for r in rows)


def is_odd(rows):
    return len(rows) % 2


def has_ten(rows):
    return len(rows) >= 10


def has_three(rows):
    return len(rows) == 3


def first_of_even(rows):
    return rows[0].b if len(rows) % 2 == 0 and len(rows) else 0


SECRETS = [
    (pv.DiscreteUniform(1, 5), is_odd, {1: 0.6, 0: 0.4}),
    (pv.DiscreteUniform(0, 4), has_three, {True: 0.2, False: 0.8}),
    (1 + pv.Binomial(2, 0.3), is_odd, {1: 0.58, 0: 0.42}),
    (1 + pv.Binomial(2, 0.3), first_of_even, {1: 0.21, 0: 0.79}),
    (pv.DiscreteUniform(10, 20), is_odd, {0: 6 / 11, 1: 5 / 11}),
    (pv.Choice([3, 10], p=[0.997, 0.003]), has_ten, {True: 0.003, False: 0.997}),
    (pv.Binomial(12, 0.3), has_ten, {True: sum(binomial(12, 0.3, k) for k in (10, 11, 12))}),
    (1 + pv.Binomial(12, 0.3), lambda rows: rows[0].b, {0: 0.5, 1: 0.5}),
    (1 + pv.Binomial(12, 0.3), lambda rows: rows[-1].b, {0: 0.5, 1: 0.5}),
]


@pytest.mark.parametrize(("size", "secret", "truth"), SECRETS)
def test_the_prior_of_a_secret_that_depends_on_the_size(size, secret, truth):
    with warnings.catch_warnings(action="error"):
        result = pv.Attack(total, {"rows": pv.Records(size, HEADS)}, secret).run(pv.equals(2), engine="exact")
    found = result.prior.distribution()
    for value, share in truth.items():
        assert found[value].value == pytest.approx(share, abs=1e-12)


def test_rows_that_are_not_alike_are_looked_at_size_by_size():
    rows = pv.Records(pv.DiscreteUniform(1, 4), lambda i: pv.Row(b=pv.Bernoulli(0.1 * (i + 1))))
    for secret, truth in ((is_odd, 0.5), (lambda rows: rows[0].b, 0.1), (first_of_even, 0.05)):
        prior = pv.Attack(total, {"rows": rows}, secret).run(pv.equals(1)).prior
        assert prior.distribution()[1].value == pytest.approx(truth, abs=1e-12)


def like_the_first(rows):
    return sum(1 for r in rows if r.a == rows[0].a)


def chance_of_alike(n, p, k):
    return p * binomial(n - 1, p, k - 1) + (1 - p) * binomial(n - 1, 1 - p, k - 1)


@pytest.mark.parametrize(
    ("sizes", "p", "seen"),
    [
        ([1, 9], 1 / 3, 1),
        ([5, 9], 0.2, 1),
        ([5, 9], 0.2, 5),
        ([3, 6, 9, 12, 15], 0.2, 5),
        ([8, 9], 1 / 3, 3),
        ([40], 0.3, 25),
    ],
)
def test_rows_compared_with_one_of_them(sizes, p, seen):
    truth = sum(chance_of_alike(n, p, seen) for n in sizes if n >= seen) / len(sizes)
    size = pv.Choice(sizes) if len(sizes) > 1 else sizes[0]
    for secret in (lambda rows: len(rows), lambda rows: rows[0].a, lambda rows: sum(r.a for r in rows)):
        attack = pv.Attack(like_the_first, {"rows": pv.Records(size, pv.Row(a=pv.Bernoulli(p)))}, secret)
        assert attack.run(pv.equals(seen), engine="exact").diagnostics.evidence.value == pytest.approx(truth, rel=1e-12)


def test_ages_compared_with_one_of_them():
    def older(rows):
        return sum(1 for r in rows if r.age > rows[0].age)

    rows = pv.Records(pv.Choice([10, 20]), pv.Row(age=pv.Normal(40, sd=9)))
    for seen, truth in ((3, 0.075), (15, 0.025)):  # every rank is as likely
        evidence = pv.Attack(older, {"rows": rows}, lambda rows: rows[0].age).run(pv.equals(seen)).diagnostics.evidence
        assert evidence.value == pytest.approx(truth, rel=1e-9)


def test_a_fact_may_rule_out_a_size():
    def rate(rows):
        return sum(r.b for r in rows) / len(rows) if len(rows) > 0 else 0.0

    prior = {"rows": pv.Records(pv.DiscreteUniform(3, 4), HEADS)}
    attack = pv.Attack(rate, prior, lambda rows: len(rows), assume=lambda rows: len(rows) % 2 == 0)
    for engine in ("exact", "auto"):
        prediction = attack.run(engine=engine).prediction.distribution()
        assert {rate: share.value for rate, share in prediction.items()} == pytest.approx(
            {k / 4: binomial(4, 0.5, k) for k in range(5)}
        )


def test_an_output_that_is_the_size_itself_or_none():
    def published(rows):
        return len(rows) if len(rows) > 4 else None

    prior = {"rows": pv.Records(pv.Choice([2, 4, 9, 11]), HEADS)}
    result = pv.Attack(published, prior, lambda rows: len(rows)).run(pv.equals(9))
    assert result.posterior.distribution()[9].value == 1
    assert result.diagnostics.evidence.value == 0.25


def test_an_output_may_be_a_boolean_at_one_size_and_an_integer_at_another():
    def published(rows):
        return any(r.b for r in rows) if len(rows) == 1 else sum(range(len(rows)))

    prior = {"rows": pv.Records(pv.Choice([1, 2]), pv.Row(b=pv.Bernoulli(0.7)))}
    for seen in (1, True):  # which are equal
        result = pv.Attack(published, prior, lambda rows: len(rows)).run(pv.equals(seen), engine="exact")
        assert result.diagnostics.evidence.value == pytest.approx(0.85, abs=1e-12)
        assert result.posterior.distribution()[1].value == pytest.approx(0.35 / 0.85, abs=1e-12)
