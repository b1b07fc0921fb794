"""Values that differ only by the rounding of arithmetic are one value: the oracle is arithmetic of fractions."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import privug as pv
from privug.leakage import bayes_vulnerability, mutual_information
from privug.model.merging import Roundoff, representatives, roundoffs


def mean(xs):
    return sum(xs) / len(xs)


def enumerated(program, values, count):
    """Return the joint of the first input and the output in exact arithmetic, all inputs equally likely."""
    exact = [Fraction(repr(value)) for value in values]
    share = Fraction(1, len(values) ** count)
    joint = Counter()
    for inputs in itertools.product(exact, repeat=count):
        joint[inputs[0], program(list(inputs))] += share
    return joint


def information(joint):
    secrets, outputs = Counter(), Counter()
    for (secret, output), share in joint.items():
        secrets[secret] += share
        outputs[output] += share
    return sum(float(p) * math.log2(p / (secrets[s] * outputs[o])) for (s, o), p in joint.items())


def vulnerability(joint):
    best = {}
    for (_, output), share in joint.items():
        best[output] = max(best.get(output, 0), share)
    return float(sum(best.values()))


PRIORS = {
    "array": lambda values, count: {"xs": pv.Array(pv.Choice(values), count)},
    "list": lambda values, count: {"xs": [pv.Choice(values) for _ in range(count)]},
}


@pytest.mark.parametrize("engine", ["exact", "sample"])
@pytest.mark.parametrize("kind", [*PRIORS, "records"])
def test_the_mean_of_twelve_decimal_numbers_leaks_what_real_numbers_leak(kind, engine):
    if kind == "records":
        attack = pv.Attack(
            lambda records: sum(r.x for r in records) / len(records),
            prior={"records": pv.Records(12, lambda i: pv.Row(x=pv.Choice([0.1, 0.7])))},
            secret=lambda records: records[0].x,
        )
    else:
        attack = pv.Attack(mean, prior=PRIORS[kind]([0.1, 0.7], 12), secret=lambda xs: xs[0])
    truth = information(enumerated(mean, [0.1, 0.7], 12))
    result = attack.run(engine=engine, samples=20_000)
    assert len(result.prediction.distribution()) == 13
    assert truth in mutual_information(result.joint).widened(1.5)
    assert truth == pytest.approx(0.063007, abs=1e-6)
    assert "only by the rounding of arithmetic" in " ".join(str(result).split())


def test_bits_are_kept_apart_where_that_is_wanted():
    attack = pv.Attack(mean, prior=PRIORS["list"]([0.1, 0.7], 12), secret=lambda xs: xs[0])
    floats = Counter()
    for inputs in itertools.product([0.1, 0.7], repeat=12):
        floats[inputs[0], mean(inputs)] += Fraction(1, 2**12)
    with pv.limited(rounding="bits"):
        result = attack.run(engine="exact")
        seen = attack.run(engine="exact", observe=pv.equals(0.39999999999999997))
    # What a result was asked for holds for all that is asked of it later.
    assert mutual_information(result.joint).value == pytest.approx(information(floats), abs=1e-12)
    assert set(result.prediction.distribution()) == {output for _, output in floats}
    share = sum(p for (_, output), p in floats.items() if output == 0.39999999999999997)
    assert seen.diagnostics.evidence.value == pytest.approx(float(share), abs=1e-12)
    assert "rounding of arithmetic" not in " ".join(str(result).split())
    with pytest.raises(pv.ArgumentError, match="rounding must be"):
        pv.configure(rounding="some")


def weighted(xs):
    total = 0
    for place, x in enumerate(xs, 1):
        total = total + x * place
    return total / (len(xs) + 1)


def centred(xs):
    middle = sum(xs) / len(xs)
    return xs[0] - middle


def spread(xs):
    return sum(x * x for x in xs) / len(xs) - (sum(xs) / len(xs)) * (sum(xs) / len(xs))


def cancelling(xs):
    return (1000003 * xs[0] + xs[1]) - 1000003 * xs[0] - xs[1] + xs[2]


def ratio(xs):
    return sum(xs) / (xs[0] + 1) if len(xs) else 0


def larger(xs):
    return max(xs) - min(xs)


def chosen(xs):
    return xs[0] + xs[1] if xs[2] > xs[3] else xs[1] + xs[0] - xs[2]


PROGRAMS = [mean, weighted, centred, spread, cancelling, ratio, larger, chosen]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("kind", PRIORS)
def test_exact_answers_are_those_of_real_numbers(program, kind):
    rng = random.Random(f"{program.__name__} {kind}")
    for _ in range(6):
        values = sorted({round(rng.uniform(-2, 2), rng.choice([1, 2, 3])) for _ in range(3)})
        count = rng.choice([4, 5])
        truth = enumerated(program, values, count)
        attack = pv.Attack(program, prior=PRIORS[kind](values, count), secret=lambda xs: xs[0])
        result = attack.run(engine="exact")
        outputs = Counter()
        for (_, output), share in truth.items():
            outputs[output] += share
        found = result.prediction.distribution()
        assert len(found) == len(outputs), (program, values)
        for output, share in found.items():
            nearest = min(outputs, key=lambda other: abs(other - Fraction(output)))
            assert abs(nearest - Fraction(output)) < Fraction(1, 10**9)
            assert share.value == pytest.approx(float(outputs[nearest]), abs=1e-12)
        assert mutual_information(result.joint).value == pytest.approx(information(truth), abs=1e-9)
        assert bayes_vulnerability(result.joint).value == pytest.approx(vulnerability(truth), abs=1e-12)


@pytest.mark.parametrize("engine", ["exact", "sample"])
@pytest.mark.parametrize("program", [mean, weighted, centred, chosen], ids=lambda program: program.__name__)
def test_observations_agree_with_real_numbers(program, engine):
    """An output on the edge of what was seen counts, whichever way it was rounded."""
    values = [0.1, 0.3, 0.7]
    truth = Counter()
    for (_, output), share in enumerated(program, values, 4).items():
        truth[output] += share
    attack = pv.Attack(program, prior=PRIORS["list"](values, 4), secret=lambda xs: xs[0])
    exact = engine == "exact"
    for output in sorted(truth, key=truth.get)[-(8 if exact else 2) :]:
        edge = float(output)
        for observation, share in (
            (pv.equals(edge), truth[output]),
            (pv.between(edge, math.inf), sum(p for o, p in truth.items() if o >= output)),
            (pv.between(-math.inf, edge), sum(p for o, p in truth.items() if o <= output)),
        ):
            found = attack.run(observe=observation, engine=engine, samples=2000).diagnostics.evidence
            if exact:
                assert found.value == pytest.approx(float(share), abs=1e-12), (program, observation)
            else:
                assert float(share) in found.widened(2)


def plain(x):
    """Return a number as it is; random variables have no hash, so that this is called."""
    return float(str(x)) if hash(x) else x


def as_text(xs):
    total = 0.0
    for x in xs:
        total += plain(x)
    return total


def in_a_tuple(xs):
    return (as_text(xs), "total")


def in_a_dict(xs):
    return {"total": as_text(xs), "list": [as_text(xs)]}


@pytest.mark.parametrize("program", [as_text, in_a_tuple, in_a_dict], ids=lambda program: program.__name__)
@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_programs_that_are_called_sample_by_sample(program, engine):
    attack = pv.Attack(program, prior=PRIORS["list"]([0.1, 0.7], 8), secret=lambda xs: xs[0])
    assert attack.lifting.tier == "python"
    result = attack.run(engine=engine, samples=4000)
    # Sums depend on how many are 0.7; the rarest has a probability of 1/256.
    truth = enumerated(sum, [0.1, 0.7], 8)
    assert len({output for _, output in truth}) == 9
    assert result.prediction.batch.distinct() == 9
    assert information(truth) in mutual_information(result.joint).widened(2)


def test_large_inputs_of_programs_called_sample_by_sample_do_not_blur_small_outputs():
    """What is inside such a program is not seen: allowing for the rounding of its inputs would merge what differs."""

    def published(x, pay):
        return plain(x) * 1e-7 if pay > 0 else 0.0

    prior = {"x": pv.Choice([0.1, 0.2]), "pay": pv.Choice([1e9, 3e9])}
    result = pv.Attack(published, prior=prior, secret="x").run(engine="exact")
    assert result.lifting.tier == "python"
    assert mutual_information(result.joint).value == pytest.approx(1.0)


@pytest.mark.parametrize("sentinel", [1e18, 1e300])
def test_a_sentinel_does_not_blur_what_stands_beside_it(sentinel):
    def released(n):
        return {"0": 0.0, "1": 2.5, "2": sentinel}[str(n)]

    attack = pv.Attack(released, prior={"n": pv.DiscreteUniform(0, 2)}, secret="n")
    joint = attack.run(engine="exact").joint
    assert attack.lifting.tier == "python"
    assert pv.leakage.mutual_information(joint).value == pytest.approx(math.log2(3))


def test_secrets_and_queries_are_merged_too():
    attack = pv.Attack(
        lambda xs: xs[0] > 0.5, prior=PRIORS["list"]([0.1, 0.7], 6), secret=lambda xs: xs[0] + xs[1] + xs[2]
    )
    for engine in ("exact", "sample"):
        result = attack.run(engine=engine, observe=pv.equals(True))
        assert len(result.prior.distribution()) == 4
        assert len(result.posterior.distribution()) == 3
        assert len(result.belief(lambda xs: xs[3] + xs[4] + xs[5]).distribution()) == 4


def test_the_value_is_the_shortest_to_write():
    attack = pv.Attack(lambda a, b: a + b, prior={"a": pv.Choice([0.1, 0.2]), "b": pv.Choice([0.1, 0.2])}, secret="a")
    assert set(attack.run(engine="exact").prediction.distribution()) == {0.2, 0.30000000000000004, 0.4}
    both = pv.Attack(
        lambda a, b: a + b, prior={"a": pv.Choice([0.1, 0.0]), "b": pv.Choice([0.2, 0.3])}, secret="a"
    ).run(engine="exact")
    assert set(both.prediction.distribution()) == {0.2, 0.3, 0.4}


def test_what_was_not_rounded_is_not_merged():
    """Values that a person gave, and sums of whole numbers or of halves, are what they are."""
    close = [0.3, 0.1 + 0.2]
    attack = pv.Attack(lambda a: a, prior={"a": pv.Choice(close)}, secret="a")
    assert set(attack.run(engine="exact").prediction.distribution()) == set(close)
    halves = pv.Attack(
        lambda a, b: a + b, prior={"a": pv.Choice([2.0**32, 2.0**32 + 2**-20]), "b": pv.Choice([0.0, 0.5])}, secret="a"
    )
    assert len(halves.run(engine="exact").prediction.distribution()) == 4
    large = pv.Attack(lambda a: a * 1.0, prior={"a": pv.Choice([2.0**53, 2.0**53 + 2, 2.0**53 + 4])}, secret="a")
    assert len(large.run(engine="exact").prediction.distribution()) == 3
    assert pv.Joint.from_samples([1, 2] * 50, close * 50).output.batch.distinct() == 2


def test_sizes_that_differ_by_far_are_judged_each_by_itself():
    attack = pv.Attack(lambda a: a * 1.1, prior={"a": pv.Choice([1e-10, 2e-10, 1e10, 1e10 + 1e-5])}, secret="a")
    assert len(attack.run(engine="exact").prediction.distribution()) == 4


def test_terms_that_cancel_leave_errors_of_their_own_size():
    def published(x, y):
        return (1e9 + x + y) - 1e9 - y

    prior = {"x": pv.Choice([0.1, 0.2]), "y": pv.Choice([0.1, 0.3, 0.5, 0.7])}
    result = pv.Attack(published, prior=prior, secret="x").run(engine="exact")
    assert len(result.prediction.distribution()) == 2
    assert mutual_information(result.joint).value == pytest.approx(1.0)


def test_a_chain_of_close_numbers_swallows_nothing():
    numbers = 1.0 + np.arange(40) * 2.0**-52
    wide = Roundoff(np.array([1]), np.array([2.0**-52]))
    assert representatives(numbers, wide) is None
    pairs = np.sort(np.concatenate([np.arange(1.0, 2.0, 0.1), np.arange(1.0, 2.0, 0.1) + 2.0**-51]))
    found = representatives(pairs, wide)
    assert found is not None
    assert len(np.unique(found)) == len(pairs) / 2


def test_samples_of_a_density_are_not_merged():
    """Some of 200,000 numbers on a range of a few thousand units in the last place lie next to each other by chance."""
    attack = pv.Attack(
        lambda x, c: x + 1.0 if c else x * 1.0,
        prior={"x": pv.Uniform(1.0, 1.0 + 1e-6), "c": pv.Bernoulli(0.5)},
        secret="c",
    )
    result = attack.run(engine="sample", samples=20_000)
    with pv.limited(rounding="bits"):
        bits = attack.run(engine="sample", samples=20_000)
    assert result.prediction.batch.distinct() == bits.prediction.batch.distinct()
    assert not result.diagnostics.merged


def test_atoms_beside_a_density_are_merged():
    def published(x, a, b, c):
        return x if c else a + b

    prior = {"x": pv.Normal(0, sd=1), "a": pv.Choice([0.1, 0.0]), "b": pv.Choice([0.2, 0.3]), "c": pv.Bernoulli(0.5)}
    result = pv.Attack(published, prior=prior, secret="c").run(engine="sample", samples=4000)
    values, counts = np.unique(result.prediction.batch.numbers(), return_counts=True)
    assert values[counts > 1].tolist() == [0.2, 0.3, 0.4]


EXPRESSIONS = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / (b + 3),
    "square": lambda a, b: (a + b) ** 2,
    "cancelled": lambda a, b: (a * 1000 + b) - a * 1000,
    "nested": lambda a, b: ((a + b) * (a - b) + a / 7) / 3,
    "root": lambda a, b: (a * a + b * b + 1) ** 0.5,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_errors_are_bounded_by_the_analysis(name):
    """The bound holds for inputs that the analysis did not see, and is a few units in the last place at the most."""
    expression = EXPRESSIONS[name]
    a, b = pv.Uniform(-2, 2), pv.Uniform(-2, 2)
    bound = roundoffs([expression(a, b).node])[0]
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(-2, 2, (300, 2)).tolist():
        computed = expression(x, y)
        if name == "root":
            radicand = Fraction(x) ** 2 + Fraction(y) ** 2 + 1
            truth = Fraction(math.isqrt(int(radicand * 10**60)), 10**30)
        else:
            truth = expression(Fraction(x), Fraction(y))
        error = float(abs(Fraction(computed) - truth))
        limit = float(bound.at(np.array([computed]))[0])
        assert error <= 2 * limit
        assert limit <= 64 * 2.0**-52 * 4000
