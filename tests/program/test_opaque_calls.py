"""Calls of what cannot be traced are tables where their arguments take few values, and single calls elsewhere."""

import base64
import calendar
import collections
import dataclasses
import datetime
import decimal
import fractions
import functools
import hashlib
import itertools
import json
import math
import pickle
import re
import textwrap
import zlib
from collections import Counter

import numpy as np
import pytest

import privug as pv
from privug.errors import UnsuitableEngine
from privug.model.plan import Plan
from privug.prior.family import Draw
from privug.program.lifting import apply
from privug.program.traced.listing import PossibleValues

N, M = 21, 10


def hash_of_a_sum(n, m):
    return hashlib.sha256(str(n + m).encode()).hexdigest()[:2]


def bucket(n, m):
    return int(hashlib.md5(f"{n}|{m}".encode()).hexdigest(), 16) % 5


def updated_hash(n):
    return hashlib.blake2b(bytes([n]), digest_size=2).hexdigest()


def checksum(n):
    return zlib.crc32(str(n).encode()) % 7


def as_json(n, m):
    return json.dumps({"n": n, "list": [m, n + m], "large": n > 10})


def length_of_json(n, m):
    return len(json.dumps([n, m]))


def matched(n):
    found = re.match(r"1(\d)", str(n))
    return found.group(1) if found else "none"


def substituted(n, m):
    return re.sub(r"\d", "#", f"{n}-{m}")


def found_all(n):
    return len(re.findall("1", f"{n:b}"))


def compiled_pattern(n):
    return bool(re.compile("^[02468]+$").match(f"{n}"))


def weekday(n):
    return datetime.date(2024, 1, n + 1).strftime("%A")


def parsed_date(n):
    return datetime.datetime.strptime(f"2024-01-{n + 1:02d}", "%Y-%m-%d").weekday()


def days_later(n):
    return (datetime.date(2024, 2, 20) + datetime.timedelta(days=n)).isoformat()


def days_of_a_month(m):
    first, days = calendar.monthrange(2024, m + 1)
    return 10 * first + days


def truth_in_a_text(n, m):
    return f"{n > m} of {n}"


def suppressed(n, m):
    return "n/a" if n < 3 else f"{n} of {n + m}"


def concatenated(n, m):
    return str(n) + "/" + str(m)


def formatted(n, m):
    return f"{n:>3}|{m}" + "{:<3}|".format(n)  # noqa: UP032


def percent(n):
    return "%03d items" % n  # noqa: UP031


def joined(n, m):
    return ",".join([str(n), str(m)]).upper()


def shown(n):
    return repr(n / 4)


def number_of_combinations(n, m):
    return math.comb(n, m)


def greatest_divisor(n, m):
    return math.gcd(n, m)


@functools.lru_cache
def remembered(n):
    return n * 7 % 5


def of_a_cache(n, m):
    return remembered(n) + m


def decimals(n):
    return str(decimal.Decimal(n) / 7)[:4]


def fraction(n, m):
    return str(fractions.Fraction(n, m + 1))


def encoded(n):
    return base64.b64encode(str(n).encode()).decode()


def shortened(n, m):
    return textwrap.shorten(f"number {n} {m}", 10)


def caught(n):
    try:
        return int(f"{n:x}")
    except ValueError:
        return -1


def cut_apart(n):
    return len(f"{n:03d}".split("1"))


def split_into_two(n):
    left, right = divmod(n, 4)
    return "-".join(f"{left}:{right}".split(":"))


def under_a_condition(n, m):
    if m > 4:
        return hashlib.sha1(str(n).encode()).hexdigest()[0]
    return "small"


EXACT = [
    hash_of_a_sum, bucket, updated_hash, checksum, as_json, length_of_json, matched, substituted, found_all,
    compiled_pattern, weekday, parsed_date, days_later, days_of_a_month, truth_in_a_text, suppressed,
    concatenated, formatted, percent, joined, shown, number_of_combinations, greatest_divisor, of_a_cache,
    decimals, fraction, encoded, shortened, caught, cut_apart, split_into_two, under_a_condition,
]  # fmt: skip
SIZES = {"n": N, "m": M}


def parameters(program):
    return program.__code__.co_varnames[: program.__code__.co_argcount]


@pytest.mark.parametrize("program", EXACT, ids=lambda program: program.__name__)
def test_calls_on_few_values_are_as_exact_as_any_operation(program):
    names = parameters(program)
    attack = pv.Attack(program, {name: pv.DiscreteUniform(0, SIZES[name] - 1) for name in names}, secret=names[0])
    every = list(itertools.product(*(range(SIZES[name]) for name in names)))
    truth = Counter(program(*values) for values in every)
    result = attack.run()
    assert attack.lifting.tier == "traced"
    assert result.engine.startswith("exact")
    assert {key: one.value for key, one in result.prediction.distribution().items()} == pytest.approx(
        {key: number / len(every) for key, number in truth.items()}, abs=1e-12
    )
    seen = program(*every[len(every) // 3])
    after = Counter(values[0] for values in every if program(*values) == seen)
    posterior = attack.run(pv.equals(seen)).posterior.distribution()
    assert {key: one.value for key, one in posterior.items() if one.value} == pytest.approx(
        {key: number / after.total() for key, number in after.items()}, abs=1e-12
    )


def test_a_hash_of_a_sum_over_rows_is_exact():
    def program(a, rows):
        return int(hashlib.sha256(str(a + sum(row.x for row in rows)).encode()).hexdigest(), 16) % 4

    rows = pv.Records(12, pv.Row(x=pv.DiscreteUniform(0, 9)))
    result = pv.Attack(program, {"a": pv.DiscreteUniform(0, 99), "rows": rows}, secret="a").run()
    law = np.ones(1)
    for sides in [10] * 12 + [100]:
        law = np.convolve(law, np.full(sides, 1 / sides))
    wanted = np.zeros(4)
    for total, probability in enumerate(law):
        wanted[int(hashlib.sha256(str(total).encode()).hexdigest(), 16) % 4] += probability
    assert result.engine.startswith("exact")
    assert [one.value for _, one in sorted(result.prediction.distribution().items())] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("size", [30, pv.Binomial(12, 0.5)], ids=["fixed size", "random size"])
def test_calls_in_a_loop_over_rows_keep_them_rows(size):
    def program(rows):
        return sum(int(hashlib.md5(str(row.x).encode()).hexdigest(), 16) % 3 for row in rows)

    rows = pv.Records(size, pv.Row(x=pv.DiscreteUniform(0, 9)))
    result = pv.Attack(program, {"rows": rows}, secret=lambda rows: len(rows)).run()
    digits = np.bincount([int(hashlib.md5(str(x).encode()).hexdigest(), 16) % 3 for x in range(10)], minlength=3) / 10
    powers = [np.ones(1)]
    for _ in range(30):
        powers.append(np.convolve(powers[-1], digits))
    weights = {30: 1.0} if isinstance(size, int) else {k: math.comb(12, k) / 2**12 for k in range(13)}
    wanted = np.zeros(61)
    for rows_there, weight in weights.items():
        wanted[: len(powers[rows_there])] += weight * powers[rows_there]
    assert result.engine.startswith("exact")
    found = result.prediction.distribution()
    assert [found[k].value if k in found else 0.0 for k in range(61)] == pytest.approx(wanted, abs=1e-9)


def hash_of_a_float(x, n):
    return (n, hashlib.sha256(f"{x:.6f}".encode()).hexdigest()[0])


def sevens(x, n):
    return str(x).count("7") + n


def json_of_floats(x, n):
    return len(json.dumps({"x": x, "n": n}))


def suppressed_float(x, n):
    return "n/a" if n < 3 else f"{x:.0e}"


def beginning(x):
    return repr(x)[:3]


def hash_of_a_mean(rows):
    return int(hashlib.sha256(f"{sum(row.x for row in rows) / len(rows):.4f}".encode()).hexdigest(), 16) % 3


def guarded(x, n):
    return math.comb(n, 2) if x < 0 else len(f"{x:e}".rstrip("0"))


SAMPLED = [hash_of_a_float, sevens, json_of_floats, suppressed_float, beginning, hash_of_a_mean, guarded]
PRIORS = {
    "x": lambda: pv.Normal(0, sd=1),
    "n": lambda: pv.DiscreteUniform(0, 5),
    "rows": lambda: pv.Records(30, pv.Row(x=pv.Normal(0, sd=1))),
}
SECRETS = {"x": "x", "rows": lambda rows: rows[0].x}


@pytest.mark.parametrize("program", SAMPLED, ids=lambda program: program.__name__)
def test_other_calls_are_single_quantities_for_engines_that_draw(program):
    attack = pv.Attack(
        program, {name: PRIORS[name]() for name in parameters(program)}, secret=SECRETS[parameters(program)[0]]
    )
    result = attack.run(samples=20_000)
    assert attack.lifting.tier == "traced"
    assert result.engine == "sample"
    rng = np.random.default_rng(3)
    row = pv.Row(x=0.0)
    draws = {
        "x": lambda: float(rng.normal()),
        "n": lambda: int(rng.integers(6)),
        "rows": lambda: [type(row)(x=float(value)) for value in rng.normal(size=30)],
    }
    plain = Counter(program(**{name: draws[name]() for name in parameters(program)}) for _ in range(20_000))
    found = result.prediction.distribution()
    for value, number in plain.most_common(12):
        share = number / 20_000
        assert found[value].value == pytest.approx(share, abs=6 * math.sqrt(share * (1 - share) / 10_000))


def test_exact_engines_name_the_call():
    attack = pv.Attack(hash_of_a_float, {"x": pv.Uniform(0, 1), "n": pv.DiscreteUniform(0, 1)}, secret="x")
    with pytest.raises(UnsuitableEngine, match=r"the program calls .* on more values than can be listed at line"):
        attack.run(engine="exact")


def test_a_result_with_an_opaque_call_can_be_pickled():
    attack = pv.Attack(sevens, {"x": pv.Uniform(0, 1), "n": pv.DiscreteUniform(0, 1)}, secret="n")
    result = attack.run(samples=500)
    assert pickle.loads(pickle.dumps(result)).prediction.mean().value == result.prediction.mean().value


def test_predictions_of_a_fitted_model():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeClassifier(max_depth=3, random_state=0)
    points = np.array(list(itertools.product(range(10), range(6))))
    tree.fit(points, np.where(points.sum(axis=1) % 4 > 1, "yes", "no"))

    def program(n, k):
        return tree.predict([[n, k]])[0]

    attack = pv.Attack(program, {"n": pv.DiscreteUniform(0, 9), "k": pv.DiscreteUniform(0, 5)}, secret="n")
    truth = Counter(map(str, tree.predict(points)))
    found = attack.run().prediction.distribution()
    assert attack.lifting.tier == "traced"
    assert {key: one.value for key, one in found.items()} == pytest.approx({k: v / 60 for k, v in truth.items()})


class Counting:
    """Remembers how often it was called; as a method of C, it is not traced."""

    def __init__(self):
        self.numbers = itertools.count()

    def __call__(self, value):
        return f"{next(self.numbers)}{value}"


counting = functools.partial(Counting())


def remembers(n):
    return len(counting(n))


def prints(n):
    print(n, end="")
    return n


@pytest.mark.parametrize("program", [remembers, prints], ids=lambda program: program.__name__)
def test_what_is_no_function_is_called_with_the_program(program):
    assert apply(program, [pv.DiscreteUniform(0, 9)]).lifting.tier == "python"


def test_a_call_that_changes_what_it_is_given_is_no_quantity():
    def program(n):
        held = [n, 3, 1]
        changed(held)
        return held[0]

    changed = functools.partial(_sorting.sort)
    attack = pv.Attack(program, {"n": pv.DiscreteUniform(0, 9)}, secret="n")
    assert attack.run().prediction.distribution()[1].value == pytest.approx(0.9)


class _Sorting:
    @staticmethod
    def sort(values):
        values.sort()


_sorting = _Sorting()


@pytest.mark.parametrize("seed", range(40))
def test_listed_values_hold_all_that_are_drawn(seed):
    rng = np.random.default_rng(seed)
    pool = [
        pv.DiscreteUniform(-3, 8), pv.Bernoulli(0.3), pv.Binomial(5, 0.4), pv.Choice([1, 4, 9]), pv.Choice([0.5, -1.5]),
    ]  # fmt: skip
    operations = [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // 3 + b, lambda a, b: a % 4 - b,
        lambda a, b: pv.where(a > b, a, b), lambda a, b: round(a / 4, 1) + b, lambda a, b: abs(a) + b,
        lambda a, b: np.minimum(a, b), lambda a, b: -a * b,
    ]  # fmt: skip
    for _ in range(6):
        left, right = (pool[rng.integers(len(pool))] for _ in range(2))
        pool.append(operations[rng.integers(len(operations))](left, right))
    node = pool[-1].node
    values = PossibleValues().values(node)
    if values is not None and not isinstance(node.operation, Draw):
        drawn = np.unique(Plan([node]).run(5_000, np.random.Generator(np.random.SFC64(1)))[0])
        assert set(drawn.tolist()) <= set(values.tolist())


@dataclasses.dataclass(frozen=True)
class Report:
    total: int
    parts: list


Pair = collections.namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "program",
    [
        lambda n, m: Report(n, [n, str(m)]),
        lambda n, m: Pair(str(n), [m // 2]),
        lambda n, m: {"a": Pair(n, (f"{m}",)), "b": [Report(m, [])]},
    ],
)
def test_objects_of_a_program_may_hold_lists(program):
    attack = pv.Attack(program, {"n": pv.DiscreteUniform(0, 3), "m": pv.DiscreteUniform(0, 3)}, secret="n")
    assert attack.run(pv.equals(program(2, 3))).posterior.probability(lambda n: n == 2).value == pytest.approx(1)
    assert attack.lifting.tier == "traced"


def noisy_with_a_code(x, y):
    return {"noisy": x + y, "code": int(hashlib.sha256(f"{x:.1f}".encode()).hexdigest(), 16) % 2}


def test_what_stands_beside_an_opaque_call_is_conditioned_on_as_ever():
    attack = pv.Attack(noisy_with_a_code, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=0.3)}, secret="x")
    result = attack.run(pv.equals({"noisy": 1.0, "code": 1}), samples=2000, seed=1)
    grid = np.linspace(-1, 3, 20_001)
    weights = np.exp(-(grid**2) / 2 - ((1 - grid) / 0.3) ** 2 / 2)
    weights *= [noisy_with_a_code(x, 0)["code"] for x in grid.tolist()]
    assert attack.lifting.tier == "traced"
    assert result.diagnostics.draws < 20_000  # calls of the whole program take 155,000 for an interval as narrow
    assert np.average(grid, weights=weights) in result.posterior.mean().widened(2)
