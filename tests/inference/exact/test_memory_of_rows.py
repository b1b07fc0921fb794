"""What is known of rows from one observation serves the next, and changes no bit of what that gives."""

import pytest

import privug as pv
from privug.inference.exact.rows import cells


def mean(records):
    return sum(row.age for row in records) / len(records)


def clamped(xs):
    return sum(min(max(x, 0.0), 100.0) for x in xs) / 8


def first(records):
    return records[0].age


def person(position):
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else pv.Normal(55.2, sd=3.5))


def sizes():
    return pv.Attack(mean, {"records": pv.Records(pv.DiscreteUniform(3, 9), person)}, first)


def with_noise():
    noisy = pv.mechanisms.laplace(clamped, sensitivity=12.5, epsilon=1.0)
    return pv.Attack(noisy, {"xs": pv.Array(pv.Normal(50, sd=20), 8)}, lambda xs: xs[0])


def with_atoms():
    return pv.Attack(clamped, {"xs": pv.Array(pv.Normal(5, sd=20), 8)}, lambda xs: xs[0])


def oldest():
    return pv.Attack(lambda xs: max(xs), {"xs": pv.Array(pv.Uniform(0, 100), 5)}, lambda xs: xs[0])


def shared():
    prior = {"rate": pv.Bernoulli(0.5), "xs": pv.Array(pv.Normal(0, sd=1), 6)}
    return pv.Attack(lambda rate, xs: sum(xs) + 3 * rate * xs[0], prior, lambda rate, xs: xs[0])


SEEN = {
    sizes: (pv.near(55.3, within=0.005), pv.near(70.0, within=2), pv.equals(54.0)),
    with_noise: (pv.near(52.0, within=0.5), pv.near(49.0, within=5), pv.noisy(60.0, sd=3)),
    with_atoms: (pv.near(9.0, within=0.1), pv.equals(0.0), pv.equals(11.0), pv.such_that(lambda y: y < 3)),
    oldest: (pv.near(90.0, within=1), pv.equals(75.0), pv.such_that(lambda y: y < 40)),
    shared: (pv.near(1.0, within=0.1), pv.near(-2.0, within=1), pv.equals(4.0)),
}


def numbers(attack, seen):
    result = attack.run(seen, engine="exact")
    ends = result.posterior.interval(0.9)
    return result.diagnostics.evidence.value, result.posterior.mean().value, ends.low.value, ends.high.value


@pytest.mark.parametrize("make", SEEN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("most", [10_000, 0])
def test_what_was_asked_before_changes_nothing(make, most, monkeypatch):
    monkeypatch.setattr(cells, "MOST_REMEMBERED", most)
    alone = [numbers(make(), seen) for seen in SEEN[make]]
    for order in (1, -1):
        attack = make()
        assert [numbers(attack, seen) for seen in SEEN[make][::order]] == alone[::order]
    assert attack.run(engine="exact").prior.mean().value == make().run(engine="exact").prior.mean().value


def test_what_is_remembered_does_not_grow_with_what_is_seen():
    attack, held = with_noise(), set()
    for number in range(12):
        attack.run(pv.near(40.0 + number, within=0.5), engine="exact")
        memory = attack.question.once("rows", list)[0]
        held.add((len(memory.cells), len(memory.powers), len(memory.laws)))
    assert len(held) == 1
