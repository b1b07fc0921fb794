"""Tables of random size, sampled by one model for all sizes, against plain calls, exact answers and models by size."""

import math
import statistics

import numpy as np
import pytest

import privug as pv
from privug.errors import ProgramError
from privug.inference.question import Question
from privug.inference.sampling import cuts
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.inputs import Arguments

PERSON = pv.Row(age=pv.DiscreteUniform(18, 80), sex=pv.Choice(["f", "m"], [0.3, 0.7]), ill=pv.Bernoulli(0.1))


def own_row(i):
    if i == 0:
        return pv.Row(age=pv.DiscreteUniform(0, 100), sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.5))
    return pv.Row(age=pv.DiscreteUniform(18, 80), sex=pv.Choice(["f", "m"], [0.3, 0.7]), ill=pv.Bernoulli(0.1))


def mean(records):
    return sum(r.age for r in records) / len(records)


def guarded(records):
    if not records:
        return -1.0
    return sum(r.age for r in records) / len(records)


def of_women(records):
    total = number = 0
    for r in records:
        if r.sex == "f":
            total += r.age
            number += 1
    return total / number if number else -1.0


def oldest(records):
    return max(r.age for r in records)


def youngest(records):
    return min((r.age for r in records), default=0)


def some_ill(records):
    return any(r.ill for r in records)


def all_grown_up(records):
    return all(r.age > 20 for r in records)


def small_counts_kept_back(records):
    count = sum(1 for r in records if r.ill)
    return count if count >= 2 else None


def numpy_mean(records):
    return np.mean([r.age for r in records])


def numpy_spread(records):
    return np.std([r.age for r in records]), np.max([r.age for r in records])


def first_and_length(records):
    return records[0].age, len(records)


def counted(records):
    return pv.count(records, lambda r: r.age > 60), pv.exists(records, lambda r: r.ill == 1)


def apart(records):
    middle = sum(r.age for r in records) / max(1, len(records))
    return sum((r.age - middle) ** 2 for r in records)


def is_long(records):
    return "long" if len(records) > 5 else "short"


def others(records):
    return sum(r.age for r in records[1:])


PROGRAMS = [
    mean, guarded, of_women, oldest, youngest, some_ill, all_grown_up, small_counts_kept_back, numpy_mean, numpy_spread,
    first_and_length, counted, apart, is_long,
]  # fmt: skip


def question_of(program, prior, secret=lambda records: len(records), **options) -> Question:
    return pv.Attack(program, prior, secret, **options).question


def model_of(question):
    return question.case_of_all_sizes(tuple(int(drawn.max()) for drawn in question.drawn_sizes))


def on_plain_inputs(program, question, samples=200):
    """Return outputs of the model for all sizes beside plain calls on the same inputs; None for both that fail."""
    case = model_of(question)
    assert case is not None
    inputs = Arguments(*(part if k == 0 else tuple(part) for k, part in enumerate(flatten(([], dict(case.inputs))))))
    structure, leaves = flatten(case.output)
    nodes = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
    failed = np.zeros(samples, bool)
    rng = np.random.Generator(np.random.SFC64(3))
    arrays = Plan([*inputs.nodes, *nodes]).run(samples, rng, failed=failed)
    known = len(inputs.nodes)
    outputs = list(Arguments(structure, tuple(leaves)).plain(arrays[known:], samples))
    plain = []
    for positional, named in inputs.plain(arrays[:known], samples):
        try:
            with np.errstate(all="ignore"):
                plain.append(program(*positional, **named))
        except (ZeroDivisionError, IndexError, ValueError):
            plain.append(None)
    return [None if bad else value for value, bad in zip(outputs, failed, strict=True)], plain


def same(one, other):
    if isinstance(one, tuple):
        return all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float | np.floating):
        return math.isclose(one, other, rel_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return one == other


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom", "ignore:invalid value")
@pytest.mark.parametrize("row", [PERSON, own_row], ids=["alike", "own"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_flat_evaluation_is_what_plain_calls_give(program, row):
    question = question_of(program, {"records": pv.Records(pv.Binomial(30, 0.1), row)})
    for one, other in zip(*on_plain_inputs(program, question), strict=True):
        assert same(one, other), (one, other)


def test_others_than_the_first():
    question = question_of(others, {"records": pv.Records(pv.Binomial(30, 0.1), own_row)})
    assert np.array_equal(*on_plain_inputs(others, question))


FEW = pv.Row(x=pv.DiscreteUniform(0, 2), ill=pv.Bernoulli(0.3))


def few(i):
    return pv.Row(x=pv.DiscreteUniform(0, 4), ill=pv.Bernoulli(0.6)) if i == 0 else FEW_AGAIN(i)


def FEW_AGAIN(i):
    return pv.Row(x=pv.DiscreteUniform(0, 2), ill=pv.Bernoulli(0.3))


def summed(records):
    return sum(r.x for r in records)


def longest_and_ill(records):
    return len(records), sum(1 for r in records if r.ill and r.x > 0)


def largest(records):
    return max((r.x for r in records), default=-1)


SIZES = {
    "uniform": lambda: pv.DiscreteUniform(0, 12),
    "binomial": lambda: pv.Binomial(12, 0.4),
    "two": lambda: pv.Choice([1, 10], [0.2, 0.8]),
    "one more": lambda: 1 + pv.Binomial(11, 0.3),
}


def frequencies(belief):
    return {value: estimate.value for value, estimate in belief.distribution().items()}


def assert_agree(drawn, exact, samples):
    """Compare counts with probabilities: by chi square, and no value that is impossible."""
    expected = {value: p * samples for value, p in exact.items() if p > 0}
    seen = {value: round(p * samples) for value, p in drawn.items()}
    assert seen.keys() <= expected.keys()
    rare = sum(e for e in expected.values() if e < 10)
    common = [(seen.get(v, 0), e) for v, e in expected.items() if e >= 10]
    common.append((samples - sum(s for s, _ in common), rare)) if rare > 0 else None
    statistic = sum((s - e) ** 2 / e for s, e in common)
    freedom = max(1, len(common) - 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 5, statistic


@pytest.mark.parametrize("program", [summed, longest_and_ill, largest], ids=lambda program: program.__name__)
@pytest.mark.parametrize("row", [FEW, few], ids=["alike", "own"])
@pytest.mark.parametrize("size", SIZES)
def test_frequencies_are_the_exact_probabilities(program, row, size):
    attack = pv.Attack(program, {"records": pv.Records(SIZES[size](), row)}, lambda records: len(records))
    assert model_of(attack.question) is not None
    drawn, exact = attack.run(engine="sample", samples=40_000), attack.run(engine="exact")
    assert_agree(frequencies(drawn.prediction), frequencies(exact.prediction), 40_000)
    assert_agree(frequencies(drawn.prior), frequencies(exact.prior), 40_000)


def test_an_observation_that_is_waited_for():
    attack = pv.Attack(summed, {"records": pv.Records(pv.Binomial(12, 0.4), few)}, lambda records: records[0].x)
    conditioned = pv.Attack(
        summed, {"records": pv.Records(1 + pv.Binomial(12, 0.4), few)}, lambda records: records[0].x
    )
    assert model_of(attack.question) is not None
    drawn = conditioned.run(pv.between(5, 7), engine="sample", samples=20_000)
    exact = conditioned.run(pv.between(5, 7), engine="exact")
    assert_agree(frequencies(drawn.posterior), frequencies(exact.posterior), len(drawn.posterior.batch))
    evidence = drawn.diagnostics.evidence
    assert evidence.low <= exact.diagnostics.evidence.value <= evidence.high


def test_two_tables_of_random_size():
    def together(left, right):
        return sum(r.x for r in left) - sum(r.x for r in right), len(left) > len(right)

    prior = {
        "left": pv.Records(pv.DiscreteUniform(0, 9), few),
        "right": pv.Records(pv.Binomial(9, 0.5), FEW),
    }
    attack = pv.Attack(together, prior, lambda left, right: len(left))
    assert model_of(attack.question) is not None
    drawn, exact = attack.run(engine="sample", samples=40_000), attack.run(engine="exact")
    assert_agree(frequencies(drawn.prediction), frequencies(exact.prediction), 40_000)


def test_rows_of_two_tables_of_one_size_are_not_mixed_up():
    size = pv.DiscreteUniform(0, 9)
    prior = {"left": pv.Records(size, pv.Row(x=pv.DiscreteUniform(5, 9))), "right": pv.Records(size, FEW)}

    def together(left, right):
        return len(left) == len(right), sum(r.x for r in left) >= 5 * len(right)

    run = pv.Attack(together, prior, lambda left: len(left)).run(engine="sample", samples=2_000)
    assert frequencies(run.prediction) == {(True, True): 1.0}


def test_a_size_that_depends_on_another_quantity_and_is_used_elsewhere():
    def reported(rate, visitors, records):
        return visitors - len(records), sum(1 for r in records if r.ill) * (rate > 5)

    rate = pv.DiscreteUniform(1, 10)
    visitors = pv.Poisson(rate)
    prior = {"rate": rate, "visitors": visitors, "records": pv.Records(visitors + 2, FEW)}
    attack = pv.Attack(reported, prior, "rate")
    assert model_of(attack.question) is not None
    run = attack.run(engine="sample", samples=40_000)
    assert {pair[0] for pair in frequencies(run.prediction)} == {-2}
    expected = 0.3 * sum(rate + 2 for rate in range(6, 11)) / 10
    ill = sum(p * pair[1] for pair, p in frequencies(run.prediction).items())
    assert abs(ill - expected) < 0.06


def sampled(attack, **options):
    result = attack.run(engine="sample", **options)
    return result.posterior.batch.values(), result.joint.output.batch.values()


def test_samples_depend_on_the_seed_alone():
    def attack():
        return pv.Attack(
            mean, {"records": pv.Records(1 + pv.Binomial(40, 0.3), own_row)}, lambda records: records[0].age
        )

    with pv.limited(workers=1):
        alone = sampled(attack(), samples=5_000, seed=7)
    with pv.limited(workers=3):
        assert sampled(attack(), samples=5_000, seed=7) == alone
    used = attack()
    sampled(used, samples=50_000, seed=1)
    assert sampled(used, samples=5_000, seed=7) == alone


def test_no_block_holds_more_rows_than_one_of_typical_tables():
    sizes = np.sort(np.random.default_rng(0).geometric(0.01, 5_000))
    parts = cuts([sizes], [69], 100)
    assert np.concatenate([sizes[part] for part in parts]).tolist() == sizes.tolist()
    assert max(sizes[part].sum() for part in parts) <= 69 * 100 + sizes.max()
    assert min(p.stop - p.start for p in parts) > 0


def test_errors_are_left_out_and_counted():
    attack = pv.Attack(
        mean,
        {"records": pv.Records(pv.Binomial(10, 0.2), FEW_WITH_AGE)},
        lambda records: len(records),
        on_error="exclude",
    )
    run = attack.run(engine="sample", samples=20_000)
    assert model_of(attack.question) is not None
    share = run.diagnostics.excluded / run.diagnostics.draws
    assert abs(share - 0.8**10) < 0.01
    assert 0 not in frequencies(run.prior)


FEW_WITH_AGE = pv.Row(age=pv.DiscreteUniform(18, 80))


def test_an_error_names_the_input():
    attack = pv.Attack(mean, {"records": pv.Records(pv.Binomial(10, 0.2), own_row)}, lambda records: len(records))
    with pytest.raises(ProgramError, match=r"ZeroDivisionError: .*\n  on the input records = \[\]"):
        attack.run(engine="sample", samples=5_000)


def test_a_row_that_may_not_be_there():
    def attack(**options):
        prior = {"records": pv.Records(pv.Binomial(10, 0.2), PERSON)}
        return pv.Attack(lambda records: len(records), prior, lambda records: records[0].age, **options)

    with pytest.raises(ProgramError, match="IndexError: list index out of range"):
        attack().run(engine="sample", samples=5_000)
    run = attack(on_error="exclude").run(engine="sample", samples=5_000)
    assert 0 not in frequencies(run.prediction)
    assert run.diagnostics.excluded > 0


def test_queries_see_the_rows_of_the_samples():
    attack = pv.Attack(summed, {"records": pv.Records(1 + pv.Binomial(10, 0.4), few)}, lambda records: records[0].x)
    result = attack.run(pv.between(4, 8), engine="sample", samples=3_000)
    sums = result.belief(lambda records: sum(r.x for r in records))
    assert set(frequencies(sums)) <= set(range(4, 9))
    both = result.belief(lambda records, output: sum(r.x for r in records) - output)
    assert frequencies(both) == {0: 1.0}
    text = result.belief(lambda records: "".join(str(r.x) for r in records))
    assert all(4 <= sum(map(int, word)) <= 8 for word in text.batch.values())


def test_programs_that_need_the_size_are_lifted_size_by_size():
    def middle(records):
        return statistics.median([r.x for r in records])

    attack = pv.Attack(middle, {"records": pv.Records(1 + pv.Binomial(8, 0.5), FEW)}, lambda records: len(records))
    assert model_of(attack.question) is None
    drawn, exact = attack.run(engine="sample", samples=20_000), attack.run(engine="exact")
    assert_agree(frequencies(drawn.prediction), frequencies(exact.prediction), 20_000)


def test_rows_that_appear_elsewhere_are_not_drawn_anew():
    records = pv.Records(pv.DiscreteUniform(8, 12), lambda i: pv.Row(x=pv.DiscreteUniform(0, 9)))
    first = records.table(1)[0].x
    attack = pv.Attack(lambda x, records: records[0].x - x, {"x": first, "records": records}, "x")
    assert model_of(attack.question) is None
    assert frequencies(attack.run(engine="sample", samples=1_000).prediction) == {0: 1.0}
    template = pv.Records(pv.DiscreteUniform(8, 12), pv.Row(x=pv.DiscreteUniform(0, 9)))
    attack = pv.Attack(lambda x, records: records[0].x - x, {"x": template.table(1)[0].x, "records": template}, "x")
    assert model_of(attack.question) is None


def test_rows_are_asked_for_no_further_than_there_may_be():
    ages = list(range(20, 32))

    def row(i):
        return pv.Row(age=pv.Normal(ages[i], sd=1.0) if i < 2 else pv.Normal(ages[i] * 0 + 50, sd=1.0))

    attack = pv.Attack(guarded, {"records": pv.Records(pv.Binomial(12, 0.9), row)}, lambda records: len(records))
    attack.run(engine="sample", samples=2_000)
    assert model_of(attack.question) is not None


def test_by_size_and_at_once_are_one_distribution(monkeypatch):
    def attack():
        return pv.Attack(apart, {"records": pv.Records(pv.Poisson(9), own_row)}, lambda records: len(records))

    at_once = attack().run(engine="sample", samples=20_000).prediction
    monkeypatch.setattr(Question, "case_of_all_sizes", lambda self, largest: None)
    by_size = attack().run(engine="sample", samples=20_000).prediction
    one, two = at_once.batch.numbers(), by_size.batch.numbers()
    shares = np.quantile(one, [0.05, 0.25, 0.5, 0.75, 0.95])
    assert np.allclose([(two <= q).mean() for q in shares], [(one <= q).mean() for q in shares], atol=0.02)
