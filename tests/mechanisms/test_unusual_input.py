"""Mechanisms, audits and tables on input that nobody meant to give: a clear refusal, or the right number."""

import math

import numpy as np
import pandas
import pytest

import privug as pv
from privug.errors import ArgumentError, PrivugError
from privug.mechanisms import Guarantee, anonymisers

NAN = float("nan")


def identity(x):
    return x


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Guarantee(None),
        lambda: Guarantee(10**400),
        lambda: Guarantee(1).repeated(10**400),
        lambda: pv.mechanisms.laplace(identity, sensitivity=1, epsilon=10**400),
        lambda: pv.mechanisms.laplace(identity, sensitivity=1, epsilon=np.complex128(1)),
        lambda: pv.mechanisms.gaussian(identity, sensitivity=1, rho=1e308),
        lambda: pv.mechanisms.gaussian(identity, sensitivity=1, epsilon=1e308, delta=1e-5),
        lambda: pv.mechanisms.subsample(identity, rate=0.5)(None),
        lambda: pv.mechanisms.swapped(identity, column="a", rate=0.5)(3),
        lambda: pv.mechanisms.from_factory(lambda: sum, parameters=None),
        lambda: pv.mechanisms.randomized_response(identity, values=[[1], [2]], epsilon=1),
        lambda: pv.mechanisms.audit(identity, [(0, 1)], guarantee=5),
        lambda: anonymisers.anonymity([{"zip": [1]}], "zip"),
        lambda: anonymisers.k_ano([{"zip": [1]}], 2, ["zip"]),
        lambda: anonymisers.mondrian([{"zip": [1]}], 1, ["zip"]),
        lambda: anonymisers.synthesise([{"zip": [1]}]),
        lambda: anonymisers.diversity([{"zip": 1, "ill": 1}, {"zip": 2}], "zip", "ill"),
        lambda: anonymisers.keep([{"zip": 1}], *[5]),
        lambda: anonymisers.anonymity([{"zip": 1}], 5),
        lambda: anonymisers.anonymity(pv.Records(2, pv.Row(zip=pv.Bernoulli(0.5))), "zip"),
    ],
)
def test_it_is_refused_in_words(refused):
    with pytest.raises(PrivugError):
        refused()


def test_a_frame_with_two_columns_of_one_name_is_refused():
    frame = pandas.DataFrame([["a", 2], ["b", 4]], columns=["zip", "zip"])
    with pytest.raises(ArgumentError, match="a name of its own"):
        anonymisers.is_k_anonymous(frame, 2, "zip")


def test_a_group_of_any_size_adds_up_as_the_sum_does():
    promise = Guarantee(0.1, 1e-6)
    assert promise.group(30).delta == pytest.approx(1e-6 * sum(math.exp(0.1 * k) for k in range(30)), rel=1e-12)
    assert Guarantee(0.0, 1e-6).group(30).delta == pytest.approx(30e-6, rel=1e-12)
    assert promise.group(10**9).delta == 1.0


def test_rounding_to_next_to_nothing_changes_nothing():
    assert pv.mechanisms.rounded(identity, to=1e-300)(0.0) == 0.0
    assert pv.mechanisms.rounded(identity, to=1e-320)(0.0) == 0.0


def test_noise_hides_nothing_that_is_infinite():
    found = pv.mechanisms.audit(pv.mechanisms.laplace(identity, sensitivity=1, epsilon=1), [(0.0, math.inf)])
    assert found.broken
    assert math.isinf(found.measured.value)
    normal = pv.mechanisms.gaussian(identity, sensitivity=1, epsilon=1, delta=1e-5)
    assert pv.mechanisms.audit(normal, [(0.0, math.inf)]).broken


@pytest.mark.parametrize("engine", ["auto", "sample"])
@pytest.mark.parametrize(
    "program",
    [
        pv.mechanisms.laplace(identity, sensitivity=1, epsilon=1),
        pv.mechanisms.gaussian(identity, sensitivity=1, epsilon=1, delta=1e-5),
        identity,
        lambda x: x * pv.sample(pv.Normal(0, sd=1)),
        lambda x: (1, np.array([x, 0.0])),
    ],
)
def test_outputs_that_are_not_a_number_are_undefined(program, engine):
    for pair in [(0.0, NAN), (NAN, NAN)]:
        with pytest.raises(pv.ProgramError, match=r"the output for nan is NaN, .* is undefined"):
            pv.mechanisms.audit(program, [pair], guarantee=Guarantee(1.0), engine=engine)


def positive_or_none(x):
    noisy = x + pv.sample(pv.DiscreteLaplace(1.0))
    return noisy if noisy > 0 else None


@pytest.mark.parametrize("engine", ["auto", "sample"])
def test_a_number_or_none_is_audited(engine):
    # P(None | x) = P(noise <= -x) and P(n | x) is proportional to exp(-|n - x|): the worst ratio for 1 and 2 is e.
    found = pv.mechanisms.audit(positive_or_none, [(1, 2)], guarantee=Guarantee(1.0), engine=engine, samples=20_000)
    assert not found.broken
    assert found.measured.low <= 1.0 + 1e-9
    assert found.measured.low > 0.8
    broken = pv.mechanisms.audit(positive_or_none, [(1, 3)], guarantee=Guarantee(1.0), engine=engine, samples=20_000)
    assert broken.broken
    assert broken.measured.low <= 2.0 + 1e-9


def test_outputs_of_different_sizes_are_told_apart():
    mechanism = pv.mechanisms.laplace(identity, sensitivity=1, epsilon=1)
    found = pv.mechanisms.audit(mechanism, [(np.zeros(2), np.zeros(3))])
    assert math.isinf(found.measured.value)


def test_rho_is_the_largest_over_all_orders():
    rare, rarer = 1e-3, 1e-9

    def release(x):
        return pv.sample(pv.Bernoulli(rare if x else rarer))

    found = pv.mechanisms.audit(release, [(True, False)], guarantee=Guarantee(rho=3.6))
    orders = 1 + np.geomspace(1e-3, 1e3, 200_001)
    sums = np.logaddexp(
        orders * math.log(rare) + (1 - orders) * math.log(rarer),
        orders * math.log1p(-rare) + (1 - orders) * math.log1p(-rarer),
    )
    assert found.measured.value == pytest.approx(np.max(sums / (orders - 1) / orders), rel=1e-8)
    assert found.broken


def test_missing_cells_look_the_same_in_every_row():
    rows = [{"zip": float("nan"), "ill": k} for k in (1, 2)]
    assert anonymisers.anonymity(rows, "zip") == 2
    assert len(anonymisers.suppress(rows, 2, "zip")) == 2
    assert anonymisers.diversity(rows, "zip", "ill") == 2
    public = [{"name": "Alice", "zip": float("nan")}]
    assert pv.reidentification.link(rows, public, "zip", "ill")["Alice"].matching == 2


@pytest.mark.parametrize("records", [[{"zip": 1, "ill": 1}], pv.Records(2, pv.Row(zip=pv.Bernoulli(0.5)))])
def test_columns_are_names(records):
    with pytest.raises(ArgumentError, match="list of names"):
        pv.reidentification.uniqueness(records, 5)


def test_a_person_of_a_plain_table_is_not_random():
    with pytest.raises(ArgumentError, match="must be known"):
        pv.reidentification.uniqueness([{"zip": 1}], "zip", person={"zip": pv.Bernoulli(0.5)})
