"""What can be moved in an attack: what is found, and that a moved attack is the attack written with those numbers."""

import math

import pytest

import privug as pv
from privug.cli import running_example
from privug.explorer import Variations, attack_at, varied
from privug.explorer.parameters import declared_by


def total(x, y):
    return x + y


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def names(attack):
    return list(Variations(attack).parameters)


def same(one, other):
    """Say whether two attacks give the same posterior, to the bit."""
    first, second = one.run(), other.run()
    return (first.posterior.mean(), first.posterior.std(), str(first)) == (
        second.posterior.mean(),
        second.posterior.std(),
        str(second),
    )


def normals(x_mean, x_sd, y_mean, seen):
    prior = {"x": pv.Normal(x_mean, sd=x_sd), "y": pv.Normal(y_mean, sd=1)}
    return pv.Attack(total, prior, "x", observe=pv.near(seen, within=0.5), name="sum")


def test_parameters_of_normals_are_found_and_moved():
    attack = normals(1, 2, 3, 4)
    assert names(attack) == [
        "seen: value", "seen: within", "x: Normal mean", "x: Normal sd", "y: Normal mean", "y: Normal sd",
    ]  # fmt: skip
    moved = varied(attack, {"x: Normal mean": 5, "x: Normal sd": 1.5, "y: Normal mean": -2, "seen: value": 6.0})
    assert same(moved, normals(5, 1.5, -2, 6.0))
    assert same(attack, normals(1, 2, 3, 4))  # which stays as it is


def test_nothing_moved_is_the_same_attack():
    attack = normals(1, 2, 3, 4)
    assert varied(attack, {"x: Normal mean": 1.0}) is attack


def test_inputs_that_share_a_quantity_still_do():
    level = pv.Normal(0, sd=1)
    attack = pv.Attack(total, {"x": pv.Normal(level, sd=2), "y": pv.Normal(level, sd=3)}, "x")
    moved = varied(attack, {"x: Normal mean": 5}).run()
    assert moved.prior.mean().value == pytest.approx(5, abs=1e-12)
    assert moved.prediction.mean().value == pytest.approx(10, abs=1e-12)
    assert moved.prediction.std().value == pytest.approx(math.sqrt(4 + 4 + 9), rel=1e-12)


def survey(size, mean, high):
    def person(position):
        return pv.Row(age=pv.Uniform(0, high) if position == 0 else pv.Normal(mean, sd=2))

    prior = {"records": pv.Records(size, person)}
    return pv.Attack(mean_age, prior, lambda records: records[0].age, observe=pv.near(50.0, within=0.5), name="m")


def test_rows_and_sizes_of_tables_are_moved():
    attack = survey(4, 55.0, 100.0)
    assert names(attack)[2:] == [
        "records: rows", "records[0].age: Uniform low", "records[0].age: Uniform high", "records.age: Normal mean",
        "records.age: Normal sd",
    ]  # fmt: skip
    position = {"records: rows": 7, "records.age: Normal mean": 52.0, "records[0].age: Uniform high": 90.0}
    assert same(varied(attack, position), survey(7, 52.0, 90.0))


def test_tables_of_one_row_repeated_and_of_random_size():
    def make(n, p, chance):
        rows = pv.Records(pv.Binomial(n, p), pv.Row(ill=pv.Bernoulli(chance)))
        return pv.Attack(
            lambda people: sum(person.ill for person in people), {"people": rows}, lambda people: len(people), name="n"
        )

    attack = make(6, 0.5, 0.2)
    moved = varied(attack, {"people (rows): Binomial n": 4, "people.ill: Bernoulli p": 0.4})
    assert str(moved.run(pv.equals(2))) == str(make(4, 0.5, 0.4).run(pv.equals(2)))


def test_frames_stay_frames():
    pd = pytest.importorskip("pandas")

    def mean_income(df: pd.DataFrame):
        return df.income.mean()

    attack = pv.Attack(
        mean_income, {"df": pv.Records(3, pv.Row(income=pv.DiscreteUniform(1, 6)))}, lambda df: df.income[0]
    )
    moved = varied(attack, {"df.income: DiscreteUniform high": 4}).run(pv.near(3.0, within=0.01))
    assert moved.posterior.mean().value == pytest.approx(3, abs=1e-12)


def noisy(epsilon, high, factor):
    def scaled(xs, factor=factor):
        return factor * sum(xs)

    limited = pv.mechanisms.clamped(scaled, 0.0, high)
    mechanism = pv.mechanisms.laplace(limited, sensitivity=1.0, epsilon=epsilon)
    return pv.Attack(
        mechanism, {"xs": pv.Array(pv.Bernoulli(0.3), 5)}, lambda xs: xs[0], observe=pv.equals(1.7), name="noisy"
    )


def test_numbers_of_mechanisms_and_defaults_of_programs_are_moved():
    attack = noisy(0.5, 4.0, 1.0)
    assert {"Laplace noise: epsilon", "limits: high", "program: factor", "xs: Bernoulli p"} <= set(names(attack))
    moved = varied(attack, {"Laplace noise: epsilon": 2.0, "limits: high": 3.0, "program: factor": 1.5})
    assert moved.question.program.guarantee.epsilon == 2.0
    assert same(moved, noisy(2.0, 3.0, 1.5))


WRAPPING = {
    "subsample": (lambda rate: pv.mechanisms.subsample(lambda x: sum(x), rate=rate), "rate", 0.6, 0.9, 2),
    "exponential": (
        lambda epsilon: pv.mechanisms.exponential(
            lambda x, c: sum(x) if c == "a" else 4 - sum(x), ["a", "b"], sensitivity=1, epsilon=epsilon
        ), "epsilon", 0.6, 0.9, "a",
    ),
    "response": (
        lambda truth: pv.mechanisms.randomized_response(lambda x: x[0], truth=truth, values=[0, 1]),
        "truth", 0.7, 0.9, 1,
    ),
    "then": (lambda to: pv.mechanisms.rounded(lambda x: sum(x), to=to).then(lambda y: y + 1), "to", 1.0, 2.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPING)
def test_mechanisms_that_wrap_their_program_are_made_anew(name):
    make, parameter, old, new, seen = WRAPPING[name]

    def attack(value):
        prior = {"x": [pv.Bernoulli(0.35) for _ in range(4)]}
        return pv.Attack(make(value), prior, lambda x: x[0], observe=pv.equals(seen), name="m")

    (label,) = [one for one in names(attack(old)) if one.endswith(f": {parameter}")]
    moved, written = varied(attack(old), {label: new}).run(), attack(new).run()
    assert moved.diagnostics.evidence == written.diagnostics.evidence
    assert moved.posterior.mean() == written.posterior.mean()


@pytest.mark.parametrize(
    ("observe", "position", "said"),
    [
        (pv.noisy(6, sd=1), {"seen: sd": 0}, "sd must be"),
        (pv.near(6, within=1), {"seen: within": -1}, "within must be"),
        (pv.between(2, 4), {"seen: low": 5}, "low"),
    ],
)
def test_observations_that_cannot_be_are_refused(observe, position, said):
    attack = pv.Attack(lambda x: x, {"x": pv.Normal(5, sd=2)}, "x", observe=observe)
    with pytest.raises(pv.ObservationError, match=said):
        varied(attack, position)


def test_parts_of_an_observation_are_moved():
    attack = pv.Attack(
        lambda x, y: {"sum": x + y, "x": x},
        {"x": pv.DiscreteUniform(1, 6), "y": pv.DiscreteUniform(1, 6)},
        "y",
        observe={"sum": pv.equals(7), "x": pv.between(2, 3)},
    )
    assert names(attack)[:3] == ["seen['sum']: value", "seen['x']: low", "seen['x']: high"]
    moved = varied(attack, {"seen['sum']: value": 5, "seen['x']: high": 4.0}).run()
    assert set(moved.posterior.distribution()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("position", "said"),
    [
        ({"nothing": 1.0}, "there is no parameter 'nothing'"),
        ({"x: Normal mean": math.nan}, "must be a finite number"),
        ({"x: Normal mean": "7"}, "must be a finite number"),
        ({"x: Normal sd": -1.0}, "sd must be a positive number"),
        ({"x: Normal mean": 10**400}, "must be a finite number"),
        (None, "a position needs a Mapping"),
    ],
)
def test_bad_positions_are_refused(position, said):
    with pytest.raises(pv.ArgumentError, match=said):
        varied(normals(1, 2, 3, 4), position).run()


def test_integers_stay_integers():
    with pytest.raises(pv.ArgumentError, match="records: rows must be an integer"):
        varied(survey(4, 55.0, 100.0), {"records: rows": 4.5})


def test_declared_parameters_have_their_default_outside_the_explorer():
    assert pv.parameter("epsilon", 0.1, 10, default=1, scale="log") == 1.0
    assert pv.parameter("epsilon", 0.1, 10, scale="log") == pytest.approx(1.0)
    assert pv.parameter("threshold", 0, 9) == 4
    value, found = declared_by(lambda: pv.parameter("threshold", 0, 9, unit="people"), {"threshold": 7})
    assert (value, type(value)) == (7, int)
    assert found["threshold"].integer
    assert found["threshold"].unit == "people"


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("a", 2, 1), {}, "ascending order"),
        (("a", 0, math.inf), {}, "finite ends"),
        (("a", 0, 1), {"scale": "log"}, "must be positive on a log scale"),
        (("a", 0, 1), {"scale": "square"}, "scale must be 'linear' or 'log'"),
        (("a", 0, 1), {"default": 2}, "must lie between 0 and 1"),
        ((7, 0, 1), {}, "name"),
        ((" ", 0, 1), {}, "a name is needed"),
        (("a", 0, 1), {"default": math.nan}, "the default of 'a' must be a finite number"),
    ],
)
def test_bad_declarations_are_refused(arguments, options, said):
    with pytest.raises(pv.ArgumentError, match=said):
        pv.parameter(*arguments, **options)


def test_two_declarations_of_one_name_are_refused():
    def twice():
        return pv.parameter("a", 0, 1), pv.parameter("a", 0, 2)

    with pytest.raises(pv.ArgumentError, match="two parameters are called 'a'"):
        declared_by(twice, {})


FILE = """
import privug as pv

spread = pv.parameter("spread", 0.5, 8, default=2.0)
attack = pv.Attack(lambda x: x, {"x": pv.Normal(10, sd=spread)}, "x", observe=pv.noisy(12.0, sd=1.0), name="one")
"""


def test_attacks_of_a_file_at_a_position(tmp_path):
    path = tmp_path / "survey.py"
    path.write_text(FILE, encoding="utf-8")
    moved = attack_at(path, "attack", {"spread": 4.0, "x: Normal mean": 8.0}).run()
    # The posterior of a normal mean: precision 1/16 + 1, mean (8/16 + 12) / (1/16 + 1).
    assert moved.posterior.mean().value == pytest.approx((8 / 16 + 12) / (1 / 16 + 1), rel=1e-12)
    assert moved.posterior.std().value == pytest.approx((1 / 16 + 1) ** -0.5, rel=1e-9)
    with pytest.raises(pv.ArgumentError, match="there is no attack 'other'"):
        attack_at(path, "other", {})
    with pytest.raises(pv.ArgumentError, match="there is no file"):
        attack_at(tmp_path / "none.py", "attack", {})


def test_what_was_declared_is_not_found_again(tmp_path):
    path = tmp_path / "survey.py"
    path.write_text(FILE, encoding="utf-8")
    from privug.explorer.sources import of_file

    state = of_file(path).at({}).to_dict()
    assert [one["name"] for one in state["attack"]["parameters"]] == [
        "spread", "seen: value", "seen: sd", "x: Normal mean",
    ]  # fmt: skip


def test_the_running_example_can_be_moved():
    moved = varied(running_example.bit, {"records (rows): Binomial n": 30, "records.age: Normal mean": 60.0})
    assert moved.run(engine="sample", samples=300).posterior is not None
    assert names(running_example.lot)[2] == "records: rows"


def test_what_is_seen_may_lie_between_integers():
    prior = {"x": pv.Normal(12, sd=1)}
    window = pv.Attack(lambda x: x, prior, "x", observe=pv.between(11, 13))
    assert pv.explorer.varied(window, {"seen: low": 12.9}).observe == pv.between(12.9, 13)
    exact = pv.Attack(lambda x: x, prior, "x", observe=pv.equals(12))
    assert pv.explorer.varied(exact, {"seen: value": 12.5}).observe == pv.equals(12.5)
    (seen, *_) = pv.explorer.Variations(exact).parameters.values()
    assert seen.integer
