"""Sums over rows in corners that typical releases do not reach, against enumeration and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import privug as pv
from privug.inference.exact.rows import likelihood


def bits(*shares):
    return float(sum(special.entr(share) for share in shares)) / math.log(2)


def exact(program, prior, secret, observe=None):
    result = pv.Attack(program, prior, secret, observe=observe).run(engine="exact")
    assert result.engine in ("exact (sums)", "exact (counts)")
    return result


def test_a_text_in_place_of_a_number_that_is_certain():
    def release(ages):
        old = sum(1 for age in ages if age > 60)
        return "too few" if old < 3 else round(sum(ages) / len(ages))

    prior = {"ages": [pv.Normal(50, sd=10) for _ in range(4)]}
    result = exact(release, prior, lambda ages: ages[0] > 60, pv.equals("too few"))
    old = stats.norm.sf(1)
    few = stats.binom.cdf(2, 4, old)
    assert float(result.diagnostics.evidence) == pytest.approx(few, rel=1e-12)
    believed = old * stats.binom.cdf(1, 3, old) / few
    assert float(result.posterior.distribution()[True]) == pytest.approx(believed, rel=1e-12)


def test_numbers_without_a_common_unit():
    values, chances = [0.1234567891, math.e, math.pi], [0.2, 0.3, 0.5]
    prior = {"xs": [pv.Choice(values, p=chances) for _ in range(5)]}
    program = lambda xs: sum(xs) + pv.sample(pv.Normal(0, sd=0.5))
    result = exact(program, prior, lambda xs: xs[0], pv.between(8, 10))
    weights = dict.fromkeys(values, 0.0)
    for chosen in itertools.product(range(3), repeat=5):
        total = sum(values[k] for k in chosen)
        seen = stats.norm.cdf(10, total, 0.5) - stats.norm.cdf(8, total, 0.5)
        weights[values[chosen[0]]] += math.prod(chances[k] for k in chosen) * seen
    evidence = sum(weights.values())
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    for value, chance in result.posterior.distribution().items():
        assert float(chance) == pytest.approx(weights[value] / evidence, rel=1e-11)


def test_measured_values_behind_noise():
    data = np.random.default_rng(1).normal(50, 10, 200)
    prior = {"x": pv.Empirical(data), "noise": pv.Laplace(0, 2.0)}
    result = exact(lambda x, noise: x + noise, prior, "x", pv.between(55, 60))
    seen = np.diff(stats.laplace.cdf([55, 60], data[:, np.newaxis], 2.0), axis=1)[:, 0]
    assert float(result.diagnostics.evidence) == pytest.approx(seen.mean(), rel=1e-12)
    assert float(result.posterior.mean()) == pytest.approx(seen @ data / seen.sum(), rel=1e-12)


def test_an_output_that_sometimes_is_the_secret_s_own_number():
    """The class of a number, of which the output is that number or another one."""
    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1), "honest": pv.Bernoulli(0.5)}
    result = exact(lambda x, y, honest: x if honest else y, prior, lambda x: x < 0.3)
    told = bits(0.3, 0.7) - 0.3 * bits(0.65, 0.35) - 0.7 * bits(0.15, 0.85)
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-10)
    assert float(pv.leakage.bayes_risk(result.joint)) == pytest.approx(0.3 * 0.35 + 0.7 * 0.15, abs=1e-10)


def test_a_cut_output_has_values_with_probabilities_and_a_density_between():
    prior = {"flag": pv.Bernoulli(0.4), "x": pv.Normal(0, sd=1)}
    result = exact(lambda flag, x: np.clip(flag + x, -0.5, 1.5), prior, "flag")

    def joint(o):
        return 0.6 * stats.norm.pdf(o), 0.4 * stats.norm.pdf(o - 1)

    def share(p, q):
        return sum(own * math.log2(own / (p + q)) for own in (p, q))

    low, high = (
        [0.6 * stats.norm.cdf(-0.5), 0.4 * stats.norm.cdf(-1.5)],
        [0.6 * stats.norm.sf(1.5), 0.4 * stats.norm.sf(0.5)],
    )
    inner = integrate.quad(lambda o: share(*joint(o)), -0.5, 1.5, epsabs=1e-13)[0]
    told = bits(0.4, 0.6) + share(*low) + share(*high) + inner
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-10)


@pytest.mark.parametrize("scale", [0.02, 0.3, 5.0])
def test_a_continuous_secret_that_only_shifts_the_output(scale):
    """The information is the entropy of the output less that of what is added to the secret."""
    prior = {"x": pv.Normal(0, sd=1), "rest": pv.Uniform(0, 3)}
    program = lambda x, rest: x + rest + pv.sample(pv.Normal(0, sd=scale))
    told = pv.leakage.mutual_information(exact(program, prior, "x").joint)

    def entropy(sd):
        edges = np.unique(np.concatenate([k + sd * np.linspace(-9, 9, 37) for k in (0.0, 3.0)]))
        nodes, weights = special.roots_legendre(24)
        half = np.diff(edges)[:, np.newaxis] / 2
        y = edges[:-1, np.newaxis] + half * (1 + nodes)
        density = (special.ndtr(y / sd) - special.ndtr((y - 3) / sd)) / 3
        return float((half * weights * special.entr(density)).sum()) / math.log(2)

    assert float(told) == pytest.approx(entropy(math.hypot(1, scale)) - entropy(scale), abs=1e-9)


def ill_and_cost(records):
    ill = [row for row in records if row.ill]
    return len(ill), sum(row.cost for row in ill)


def test_counts_that_hardly_ever_are_do_not_stand_in_the_way_of_the_joint():
    """Costs say nothing about who is ill once it is known how many are."""
    rows, share = 20, 0.01
    person = pv.Row(ill=pv.Bernoulli(share), cost=pv.Normal(10, sd=2))
    attack = pv.Attack(ill_and_cost, {"records": pv.Records(rows, person)}, lambda records: records[0].ill)
    information = pv.leakage.mutual_information(attack.run(engine="exact").joint)
    counts = np.arange(rows + 1)
    others = stats.binom(rows - 1, share)
    joint = np.stack([(1 - share) * others.pmf(counts), share * others.pmf(counts - 1)])
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    assert float(information) == pytest.approx((joint[there] * np.log2(joint[there] / alone[there])).sum(), rel=1e-9)


def mean_cost(records):
    costs = [row.cost for row in records if row.ill]
    return sum(costs) / len(costs) if len(costs) >= 3 else 0


@pytest.mark.parametrize("seen", [10, 14])
def test_counts_that_are_left_out_do_not_matter(seen, monkeypatch):
    person = pv.Row(ill=pv.Bernoulli(0.1), cost=pv.Normal(10, sd=2))
    attack = pv.Attack(mean_cost, {"records": pv.Records(40, person)}, lambda records: records[0].cost)
    found = []
    for negligible in (likelihood.NEGLIGIBLE, 0.0):
        monkeypatch.setattr(likelihood, "NEGLIGIBLE", negligible)
        result = attack.run(observe=pv.near(seen, within=0.2), engine="exact")
        found.append((float(result.posterior.probability(lambda x: x > 12)), float(result.diagnostics.evidence)))
    assert found[0] == pytest.approx(found[1], rel=1e-12)


MIXED = {
    "constant": (pv.Constant(0.25), 0.3, 0.5, 0.3**2),
    "choice": (pv.Choice([0.25, 0.75]), 0.3, 1.0, 2 * 0.15**2),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_value_that_mixtures_have_with_a_probability_counts_alone(name):
    atom, share, seen, evidence = MIXED[name]
    prior = {"x": pv.Array(pv.Mixture([atom, pv.Uniform(0, 1)], [share, 1 - share]), 2)}
    result = exact(lambda x: sum(x), prior, lambda x: x[0], pv.equals(seen))
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    assert result.diagnostics.evidence.unit == ""
    assert float(result.posterior.probability(lambda x: (x == 0.25) | (x == 0.75))) == pytest.approx(1, abs=1e-12)


def test_a_mixture_seen_at_its_atom_or_elsewhere():
    prior = {"x": pv.Mixture([pv.Choice([0.25, 0.75]), pv.Uniform(0, 1)], [0.3, 0.7])}
    attack = pv.Attack(lambda x: x, prior, "x")
    assert str(attack.run(pv.equals(0.25), engine="exact").diagnostics.evidence) == "0.15 (exact)"
    assert "0.7 density" in str(attack.run(pv.equals(0.5), engine="exact").diagnostics.evidence)


@pytest.mark.parametrize("sd", [0.2, 0.01, 1e-4])
def test_narrow_noise_on_the_largest_in_tables_of_random_size(sd):
    people = pv.Records(pv.Binomial(6, 0.5) + 1, lambda i: pv.Row(age=pv.Normal(50, sd=10)))
    program = lambda people: max(one.age for one in people) + pv.sample(pv.Normal(0, sd=sd))
    result = exact(program, {"people": people}, lambda people: people[0].age, pv.equals(55.3))
    nodes, weights = special.roots_legendre(40)
    y = 55.3 + 9 * sd * nodes  # the largest, given the noisy one
    shares = 9 * sd * weights * stats.norm.pdf(y, 55.3, sd)
    below, dense = stats.norm.cdf(y, 50, 10), stats.norm.pdf(y, 50, 10)
    sizes = stats.binom(6, 0.5)
    evidence = sum(sizes.pmf(k) * shares @ ((k + 1) * dense * below**k) for k in range(7))
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-9)
    # The first one is the largest, or lies below it.
    mean_below = 50 * below - 100 * dense  # E[x; x < y]
    moment = sum(
        sizes.pmf(k) * shares @ (y * dense * below**k + k * dense * below ** max(0, k - 1) * mean_below)
        for k in range(7)
    )
    assert float(result.posterior.mean()) == pytest.approx(moment / evidence, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 1e-5, 1e-7])
def test_narrow_noise_on_a_clamped_sum(scale):
    program = lambda x: np.clip(x, 0.2, 0.8).sum() + pv.sample(pv.Laplace(0, scale))
    result = exact(program, {"x": pv.Array(pv.Uniform(0, 1), 2)}, lambda x: x[0], pv.equals(1.15))
    # One of them at 0.8 and the other one at 0.35, with density 2 * 0.2, or both between: 0.45.
    assert float(result.diagnostics.evidence) == pytest.approx(0.85, rel=1e-9 + 2 * scale)
    assert float(result.posterior.probability(lambda x: x > 0.6)) == pytest.approx(0.4 / 0.85, abs=1e-9 + 2 * scale)


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        (lambda: pv.StudentT(3, 0, 10), 7.0),
        (lambda: pv.Cauchy(0, 1), 0.7),
        (lambda: pv.LogNormal(10, sd=1), 25_000.0),
        (lambda: pv.Pareto(2.5, 1000), 1500.0),
    ],
)
def test_narrow_noise_on_the_median_of_heavy_tails(row, seen):
    reference = {7.0: stats.t(3, 0, 10), 0.7: stats.cauchy(), 25_000.0: stats.lognorm(1, scale=math.exp(10))}.get(
        seen, stats.pareto(2.5, scale=1000)
    )
    below, dense = reference.cdf(seen), reference.pdf(seen)
    program = lambda x: np.median(x) + pv.sample(pv.Normal(0, sd=1e-4 * seen))
    result = exact(program, {"x": [row() for _ in range(3)]}, lambda x: x[0], pv.equals(seen))
    assert float(result.diagnostics.evidence) == pytest.approx(6 * below * (1 - below) * dense, rel=1e-5)


def test_a_sum_over_rows_that_another_continuous_quantity_selects():
    """The mean income of those over 40: who is selected is one thing, what they add is another."""
    people = pv.Records(6, lambda i: pv.Row(age=pv.Normal(45, sd=12), income=pv.Normal(30, sd=8)))

    def release(people):
        chosen = [one.income for one in people if one.age > 40]
        return round(sum(chosen) / len(chosen)) if len(chosen) > 1 else None

    share = stats.norm.sf(40, 45, 12)
    seen = {
        k: stats.norm.cdf(31.5, 30, 8 / math.sqrt(k)) - stats.norm.cdf(30.5, 30, 8 / math.sqrt(k)) for k in range(2, 7)
    }
    evidence = sum(stats.binom.pmf(k, 6, share) * p for k, p in seen.items())
    by_income = exact(release, {"people": people}, lambda people: people[0].income, pv.equals(31))
    assert float(by_income.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    by_age = exact(release, {"people": people}, lambda people: people[0].age > 40, pv.equals(31))
    old = share * sum(stats.binom.pmf(k - 1, 5, share) * p for k, p in seen.items()) / evidence
    assert float(by_age.posterior.distribution()[True]) == pytest.approx(old, rel=1e-11)
    # One of those chosen has the mean of their incomes; everybody else's income is not told.
    means = {k: integrate.quad(lambda m, k=k: m * stats.norm.pdf(m, 30, 8 / math.sqrt(k)), 30.5, 31.5)[0] for k in seen}
    chosen = share * sum(stats.binom.pmf(k - 1, 5, share) * means[k] for k in seen)
    left = (1 - share) * sum(stats.binom.pmf(k, 5, share) * seen[k] for k in range(2, 6)) * 30
    assert float(by_income.posterior.mean()) == pytest.approx((chosen + left) / evidence, rel=1e-9)


def test_means_of_a_table_and_of_a_part_of_it():
    def mean(people):
        return round(sum(person.pay for person in people) / 20)

    def mean_of_others(people):
        return round(sum(person.pay for person in people[:19]) / 19) == 41

    table = pv.Records(20, pv.Row(pay=pv.Normal(40, sd=10)))
    attack = pv.Attack(mean, {"people": table}, lambda people: people[19].pay, assume=mean_of_others)
    found = attack.run(pv.equals(41), engine="exact").posterior
    others, own = stats.norm(40, 10 / math.sqrt(19)), stats.norm(40, 10)

    def moment(order):
        def inside(m):
            low, high = 20 * 40.5 - 19 * m, 20 * 41.5 - 19 * m
            mass = own.cdf(high) - own.cdf(low)
            return others.pdf(m) * (mass if order == 0 else 40 * mass - 100 * (own.pdf(high) - own.pdf(low)))

        return integrate.quad(inside, 40.5, 41.5, epsabs=1e-13)[0]

    assert found.mean().value == pytest.approx(moment(1) / moment(0), rel=1e-6)
