"""Programs that raise on some inputs, in all kinds of places, and others that are careful not to."""

import math
import statistics

import numpy as np

import privug as pv
from random_programs import Writer


class TooFew(Exception):
    pass


class Answering(Exception):
    """An error that is false in a condition."""

    def __bool__(self):
        return False


def early(x, y):
    if y == 0:
        raise ValueError("no y")
    return x + y


def nested(x, y):
    if x > 2:
        if y == 1:
            raise TooFew(f"only {x}")
        return x
    elif x == 0:
        raise Answering
    return y


def in_a_loop(rows):
    total = 0
    for row in rows:
        if row.age > 8:
            raise ValueError("too old")
        total += row.age
    return total


def after_breaking_off(rows):
    total = 0
    for row in rows:
        if row.age == 0:
            break
        if row.age > 7:
            raise ValueError("too old")
        total += 10 / (row.age - 2)
    return total


def helper(x):
    if x == 3:
        raise TooFew
    return 6 // x


def in_a_helper(x, y):
    return helper(x) + y if y else 0


def divides_in_one_branch(x, y):
    if x > 2:
        return x / y
    return -1


def divides_by_nothing_in_one_branch(x, y):
    return x / 0 if x == 1 else y


def divides_in_vain(x, y):
    _ = 1 / y
    return x


def divides_in_vain_in_one_branch(x, y):
    if x > 3:
        math.log(y)
    return x


def computes_in_vain_what_is_used(x, y):
    half = x / y
    _ = 1 / (half - 1)
    return half


def computes_rows_in_vain(rows):
    total = 0
    for row in rows:
        1 / row.age
        total += row.age
    return total


def key(x, y):
    return {1: 10, 2: 20}[y] + x


def own_key(x, y):
    seen = {}
    seen[x] = 1
    return seen[y]


def position(x, y):
    return [1, 4, 9][x]


def negative_position(x, y):
    return [1, 4, 9][y - x]


def position_in_one_branch(x, y):
    return [1, 4, 9][x] if x < y else x


def text_to_number(text, y):
    return int(text) + y


def text_to_number_in_one_branch(text, y):
    return float(text) if text != "x" else y


def text_to_number_in_one_branch_only(text, y):
    if y == 1:
        return int(text)
    return y


def logarithm(x, y):
    return math.log(x - 1)


def root(x, y):
    return math.sqrt(x - y)


def root_in_one_branch(x, y):
    return math.sqrt(x - y) if x > y else 0.0


def exponential(x, y):
    return math.exp(1000 * y) + x


def asserted(x, y):
    assert x > y, f"{x} is too small"
    return x - y


def two_kinds(x, y):
    if x == 0:
        raise KeyError("x")
    ratio = y / (x - 1)
    if ratio > 1:
        raise TooFew(ratio)
    return ratio


def of_empty(rows):
    old = [row.age for row in rows if row.age > 5]
    return min(old) + statistics.mean(old)


def powers(x, y):
    return float(x) ** (-y) + (10.0**x) ** (100 * y)


def power_in_one_branch(x, y):
    return (x - 2) ** 0.5 if x > 2 else y


def whole(x, y):
    return int(np.log(x)) + y


def whole_in_one_branch(x, y):
    logarithm = np.log(x)
    return round(logarithm) if x > 0 else math.floor(logarithm + 1) if y > 5 else y


def several_outputs(x, y):
    return {"ratio": x / y, "both": [x, y]}


def noisy(x, y):
    noise = pv.sample(pv.DiscreteUniform(0, 2))
    return x / noise + y


def always(x, y):
    raise ValueError("always")


def caught(x, y):
    try:
        return x / y
    except ZeroDivisionError:
        return 0.0


def caught_otherwise(x, y):
    try:
        return x // y
    except TypeError:
        return 0


def text_out(x, y):
    return str(round(x / y, 2)) + str(hash(x))[:0]


def text_traced(x, y):
    return str(round(x / y, 2))


def sums_ratios(many):
    return sum(10 / row.age for row in many)


def sums_logarithms(many):
    return sum(math.log(row.age) for row in many if row.age < 99)


def counts_ratios(many):
    return pv.count(many, lambda row: 5 / row.age > 1)


def largest_ratio(many):
    return max(int(1 / row.age * 100) for row in many)


def divides_in_a_branch_of_a_loop(many):
    total = 0
    for row in many:
        if row.age > 50:
            total += 100 // (row.age - 60)
    return total


def asserts_of_all(many):
    assert all(row.age < 99 for row in many)
    assert any(10 / row.age > 0.5 for row in many if row.age > 0)
    return len(many)


NUMBERS = {"x": pv.DiscreteUniform(0, 5), "y": pv.DiscreteUniform(0, 2)}
TEXTS = {"text": pv.Choice(["1", "20", "x", "3"]), "y": pv.DiscreteUniform(0, 2)}
MANY = {"many": pv.Records(12, pv.Row(age=pv.DiscreteUniform(0, 99)))}
ROWS = {"rows": pv.Records(3, pv.Row(age=pv.DiscreteUniform(0, 9)))}

FAILING = [
    early, nested, in_a_loop, after_breaking_off, in_a_helper, divides_in_one_branch, divides_by_nothing_in_one_branch,
    divides_in_vain, divides_in_vain_in_one_branch, computes_in_vain_what_is_used, computes_rows_in_vain, key, own_key,
    position, negative_position, text_to_number, text_to_number_in_one_branch_only, logarithm, root, exponential,
    asserted, two_kinds, of_empty, powers, whole, several_outputs,
]  # fmt: skip
OF_MANY_ROWS = [
    sums_ratios, sums_logarithms, counts_ratios, largest_ratio, divides_in_a_branch_of_a_loop, asserts_of_all,
]  # fmt: skip
GUARDED = [
    position_in_one_branch, text_to_number_in_one_branch, root_in_one_branch, power_in_one_branch, whole_in_one_branch,
]  # fmt: skip


def prior_of(program):
    names = program.__code__.co_varnames
    priors = {"many": MANY, "rows": ROWS, "text": TEXTS, "x": NUMBERS}
    return next(prior for name, prior in priors.items() if name in names)


class FailingWriter(Writer):
    """Writes random programs that raise on some inputs."""

    def source(self):
        helper = "def checked(x):\n    if x == 2:\n        raise KeyError(x)\n    return 6 // (x - 1)\n\n"
        return f"import math\n\n{helper}{super().source()}"

    def _number(self, depth):
        if depth == 0 or self._random.random() > 0.25:
            return super()._number(depth)
        inner = lambda: self._number(depth - 1)
        return self._pick(
            lambda: f"({inner()} // {inner()})",
            lambda: f"({inner()} % {inner()})",
            lambda: f"h[{inner()}]",
            lambda: f"g[{inner()} % 2]",
            lambda: f"{{0: 1, 1: 5, 2: 7}}[{inner()}]",
            lambda: f"checked({inner()})",
            lambda: f"int(math.sqrt({inner()}))",
            lambda: f"int(math.log({inner()}))",
            lambda: f"min([x for x in (a, b) if x > {inner()}])",
            lambda: f"[3, 1, 0].index({inner()})",
            lambda: f"int(2.0 ** {inner()} / {inner()})",
        )

    def _statement(self, depth):
        pad = "    " * depth
        if self._random.random() > 0.15:
            return super()._statement(depth)
        return self._pick(
            lambda: [f"{pad}assert {self._truth(1)}"],
            lambda: [f"{pad}if {self._truth(1)}:", f"{pad}    raise ValueError({self._number(1)})"],
            lambda: [f"{pad}{self._number(1)}"],
            lambda: [f"{pad}h[{self._number(1)}] = 1"],
            lambda: [f"{pad}checked({self._number(0)})"],
        )
