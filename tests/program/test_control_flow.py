"""The rewriting of control flow: on random values it gives, sample by sample, what Python gives."""

import math
import warnings
from collections import Counter, defaultdict

import pytest

import privug as pv
from privug.errors import ProgramError
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.node import ancestors
from privug.program.lifting import apply


def prior():
    return {
        "x": pv.DiscreteUniform(-2, 3),
        "y": pv.DiscreteUniform(-1, 2),
        "k": pv.Choice(["a", "b", "c"]),
        "m": pv.Choice(["a", "b", "d"]),
    }


# --- Branches that would fail for samples that do not take them ---------------------------------------


def division(x, y, k, m):
    if y != 0:
        return x / y
    return 0.0


def division_in_an_expression(x, y, k, m):
    return x // y if y else -1


def guarded_by_and(x, y, k, m):
    return y != 0 and x % y == 1


def index_in_range(x, y, k, m):
    items = [10, 20, 30]
    if 0 <= x < len(items):
        return items[x]
    return -1


def logarithm(x, y, k, m):
    total = 0.0
    if x > 0:
        total += math.log(x) + math.sqrt(x)
    return total


def missing_key(x, y, k, m):
    prices = {"a": 1, "b": 2}
    if k in prices:
        return prices[k]
    return 0


# --- Mutation under a random condition ------------------------------------------------------------------


def list_elements(x, y, k, m):
    h = [0, 0, 0]
    if x > 0:
        h[0] += 1
        h[1] = y
    else:
        h[0] -= 1
    h[2] = h[0] + h[1]
    return h


def appended(x, y, k, m):
    seen = []
    if x > 0:
        seen.append(x)
    if y > 0:
        seen.append(y)
    else:
        seen.append(100)
        seen.extend([1, 2])
    return sum(seen), len(seen), max(seen), next(s + 1 for s in seen), seen[-1]


def dictionary_entries(x, y, k, m):
    d = {}
    if x > 0:
        d["x"] = x
    if y > 0:
        d["x"] = y
        d["y"] = 1
    return len(d), d.get("x", 7), "y" in d, sum(d.values())


def aliases_see_each_other(x, y, k, m):
    a, b = [], [5]
    target = a if x > 0 else b
    target.append(y)
    return len(a), len(b), sum(b), sum(target)


def alias_of_a_list(x, y, k, m):
    a = [1, 2]
    b = a
    if x > 0:
        b[0] = 10
    return a[0] + b[0]


def reset_list(x, y, k, m):
    streak, longest = [], 0
    for value in (x, y, x, y):
        if value > 0:
            streak.append(value)
        else:
            streak = []
        longest = max(longest, len(streak))
    return longest


def in_a_helper(x, y, k, m):
    def note(log, value):
        if value > 0:
            log.append(value)
            log[0] = -1

    log = [0]
    note(log, x)
    note(log, y)
    return log[0], sum(log)


def list_at_a_random_position(x, y, k, m):
    table = [[0, 0], [0, 0], [0, 0]]
    table[y][x % 2] += 1 if x > 0 else 5
    return table


def grown(x, y, k, m):
    items = [1]
    other = items
    if x > 0:
        items += [x, y]
    return sum(other), len(items)


def attribute(x, y, k, m):
    class Box:
        pass

    box = Box()
    box.value = 0
    if x > 0:
        box.value += y
    return box.value


# --- Dictionaries and sets with random keys -----------------------------------------------------------


def groups(x, y, k, m):
    d = {}
    for key, value in ((k, x), (m, y), ("a", 5)):
        d[key] = d.get(key, 0) + value
    return d["a"], len(d), max(d.values()), sorted(d.values())[0], d.get("d", -1)


def first_of_the_most_common(x, y, k, m):
    counts = Counter([k, m, k if x > 0 else "d"])
    best = max(counts, key=counts.get)
    return best, counts.most_common(1)[0], counts.most_common(2)[0][0], min(counts, key=lambda key: (counts[key], key))


def in_order_of_arrival(x, y, k, m):
    d = {}
    for key in (k, m, "c"):
        d.setdefault(key, []).append(x)
    first = ""
    for key, values in d.items():
        if len(values) > 1 and not first:
            first = key
    return first, next(key + "!" for key in d), len(d)


def nested_defaults(x, y, k, m):
    d = defaultdict(lambda: [0, 0])
    for key in (k, m):
        d[key][0] += 1
        d[key][1] += x
    return d["a"], d["d"][1]


def list_entry_set_under_a_condition(x, y, k, m):
    d = {}
    if x > 0:
        d["a"] = [1, 2]
    d.setdefault("a", []).append(y)
    return len(d["a"]), sum(d["a"])


def keys_that_are_numbers(x, y, k, m):
    d = {}
    for key in (x, y, x // 2):
        d[key] = d.get(key, 0) + 1
    return len(d), max(d, key=d.get), d.get(0, 0)


def keys_that_are_tuples(x, y, k, m):
    d = defaultdict(int)
    d[k, m] += x
    d[m, k] += y
    d["a", "b"] += 1
    return d["a", "b"], len(d)


def by_comprehension(x, y, k, m):
    d = {key: value for key, value in ((k, x), (m, y)) if value > 0}
    return sum(d.values()), len(d), d.get("a", 0), "b" in d


def sets(x, y, k, m):
    seen = set()
    again = 0
    for key in (k, m, k):
        if key in seen:
            again += 1
        if x > 0:
            seen.add(key)
    other = {k, "d"}
    return again, len(seen), len(seen & other), len(seen | other), len(other - seen), sorted(other)[0]


def list_entries_by_membership(x, y, k, m):
    d = {}
    for key, value in ((k, x), (m, y), (k, 1)):
        if key in d:
            d[key].append(value)
        else:
            d[key] = [value]
    return len(d.get("a", [])), sum(d.get("b", [])), len(d)


def lists_at_known_keys(x, y, k, m):
    d = {"a": [1], "b": [2], "c": [3]}
    d[k].append(x)
    d[k] += [y]
    return sum(d["a"]), len(d["b"]), max(d, key=lambda key: sum(d[key]))


def methods_while_everything_is_certain(x, y, k, m):
    d = {}
    d["a"], d["b"] = x, y
    d.update(c=2)
    d.pop("a")
    return d, isinstance(d, dict), isinstance(set(), set), len({**d, "e": 1})


def order_of_entries(x, y, k, m):
    d = dict(zip([k, m], [x, y], strict=True))
    items = list(d.items())
    return items[0][0], items[-1][1], sorted(d)[0], sorted(d.items(), key=lambda item: -item[1])[0]


# --- Loops ----------------------------------------------------------------------------------------------


def nested_loops(x, y, k, m):
    total = 0
    for i in range(3):
        for j in range(3):
            if j == x:
                continue
            if i * j > y + 1:
                break
            if i + j == 4 + y:
                return -total
            total += 10 * i + j
        else:
            total += 1000
            continue
        total += 100_000
    else:
        total += 7
    return total


def search(x, y, k, m):
    found = "nothing"
    for position, value in enumerate((3, 2, 1, 0)):  # noqa: B007
        if value == x:
            break
        if value == y:
            found = "y"
            break
    else:
        return "none"
    return f"{k}-{m}-{found}" if position > 1 else "early"


def nested_while(x, y, k, m):
    while x > 0:
        while y > 0:
            y -= 1
            x -= 1
        x -= 1
    return x, y


def while_with_continue(x, y, k, m):
    total = i = 0
    while i < x:
        i += 1
        if i == 2:
            continue
        total += i
    else:
        total += 100
    return total, i


def while_random(x, y, k, m):
    n, steps = abs(x) + 5, 0
    while n != 1:
        if steps > 10 + y:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    else:
        return steps
    return -n


def while_true(x, y, k, m):
    total = 0
    while True:
        total += 3
        if total > x * 4:
            break
        if total == 6:
            return "six"
    return k


def return_in_nested_loops(x, y, k, m):
    for i in range(4):
        for j in range(4):
            if i * j == x and j > y:
                return i, j
    return -1, -1


def filtered_twice(x, y, k, m):
    kept = [v for v in (x, y, x + y) if v > 0]
    again = [v * w for v in kept for w in kept if v != w]
    return len(kept), sum(again), any(v > 2 for v in kept), all(v > 1 for v in kept), sum(sorted(kept)[:1])


# --- Functions --------------------------------------------------------------------------------------------


def helper(value, low=0, *, high=2):
    if value < low:
        return low
    if value > high:
        return high
    return value


def helpers(x, y, k, m):
    return helper(x), helper(y, high=1), helper(x, -1), helper(low=1, value=y)


def countdown(n, x):
    if n == 0:
        return x
    if x < 0:
        return -n
    return countdown(n - 1, x - 1)


def recursion(x, y, k, m):
    return countdown(3, x)


def closures(x, y, k, m):
    def scaled(factor):
        return lambda value: value * factor if value > 0 else factor

    return scaled(2)(x), scaled(y)(x)


double, negate = (lambda v: v * 2 if v > 0 else v), (lambda v: -v if v > 0 else v)


def two_lambdas_on_a_line(x, y, k, m):
    return double(x), negate(x), (lambda a, b=1: a if a > b else b)(y)


def sorted_by_key(x, y, k, m):
    rows = [("x", x, k), ("y", y, m), ("z", 1, "b")]
    by_value = sorted(rows, key=lambda row: row[1], reverse=True)
    by_both = sorted(rows, key=lambda row: (row[2], -row[1]))
    return (
        [row[0] for row in by_value], [row[0] for row in by_both], max(rows, key=lambda row: row[1])[0],
        min(rows, key=lambda row: (row[2], row[1]))[0], sorted([k, m, "b"]), sorted([(k, x), (m, y)], reverse=True),
    )  # fmt: skip


def sorted_in_place(x, y, k, m):
    values = [x, y, 1]
    values.sort()
    return values, values.index(1), values.count(1)


def subscripts_are_looked_at_once(x, y, k, m):
    stack, h = [0, 1, 2], [0, 0, 0]
    h[stack.pop()] += x
    rows = [[1, 2], [3, 4]]
    first = rows[0]
    rows[0] += [x]
    return h, len(stack), sum(first)


def identity(x, y, k, m):
    best = None
    for name, value in ((k, x), (m, y)):
        if value > 0 and best is None:
            best = name
    flag = x > 0
    return best, 1 if flag is True else 2, best is not None


def first_match(x, y, k, m):
    return next((v for v in (x, y) if v > 0), -9), min(range(3), key=lambda i: (x - i) ** 2)


def classes(x, y, k, m):
    class Log:
        def __init__(self, first):
            self.items = []
            if first > 0:
                self.items.append(first)

        def add(self, value):
            if value > 0:
                self.items.append(value)

    log = Log(x)
    log.add(y)
    return sum(log.items), len(log.items)


def bound_method(x, y, k, m):
    items = []
    add = items.append
    if x > 0:
        add(1)
    return len(items)


def matched(x, y, k, m):
    match k:
        case "a" if x > 0:
            return 1
        case "a" | "b":
            return 2
        case _:
            return 3


def text(x, y, k, m):
    first, second = f"{k}-{m.upper():>3}".split("-")
    return first + second, len(k + m), k in "ab", k + k if k == "a" else m


def raising_never(x, y, k, m):
    if x > 10:
        raise ValueError(f"{x} is too much")
    assert y < 5, "never"
    return x + y


@pytest.fixture(autouse=True)
def _not_compiled():
    """What is not traced is called as it is."""
    with pv.limited(native=False):
        yield


PROGRAMS = [
    value
    for value in list(globals().values())
    if getattr(value, "__module__", None) == __name__
    and getattr(value, "__code__", None)
    and value.__code__.co_varnames[: value.__code__.co_argcount] == ("x", "y", "k", "m")
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_control_flow_gives_what_python_gives(program):
    question = Question(program, prior(), secret=["x", "y", "k", "m"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert question.case().lifting.tier == "traced", str(question.case().lifting)
        run = draw(question, None, samples=600, seed=3)
    for inputs, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert normal(program(*inputs)) == normal(output), inputs


def normal(value):
    if isinstance(value, list | tuple):
        return [normal(part) for part in value]
    if isinstance(value, dict):
        return {key: normal(part) for key, part in value.items()}
    return round(value, 9) if isinstance(value, float) else value


def test_counting_loops_come_out_as_sums():
    def count(values):
        n = 0
        for value in values:
            if value > 0.5:
                n += 1
        return n

    output = apply(count, [[pv.Uniform(0, 1) for _ in range(5)]]).output
    nodes = ancestors([output.node])
    assert output.node.operation.name == "add"
    # where(p, c + 1, c) would depend on the count so far; in c + p each term depends on one value only.
    choices = [node for node in nodes if node.dtype == bool]
    assert len(choices) == 5
    assert not any(getattr(node.operation, "name", "") == "where" for node in nodes)
    assert all(len([n for n in ancestors([choice]) if n.is_random]) == 1 for choice in choices)


# --- What is refused ------------------------------------------------------------------------------------


def refused_look_at_an_error(x, y, k, m):
    try:
        return str(y / 1)
    except ZeroDivisionError as error:
        return str(error)


def refused_random_dictionary(x, y, k, m):
    return {k: (x, y)}


def refused_list_of_random_length(x, y, k, m):
    return [v for v in (x, y) if v > 0]


def refused_choice_of_objects(x, y, k, m):
    class Box:
        def __init__(self):
            self.items = 0

        def add(self):
            self.items += 1

    a, b = Box(), Box()
    box = a if x > 0 else b
    box.add()
    return a.items


def refused_recursion(x, y, k, m):
    return 0 if x <= 0 else 1 + refused_recursion(x - 1, y, k, m)


def refused_deletion(x, y, k, m):
    d = {"a": 1}
    if x > 0:
        del d["a"]
    return len(d)


def refused_set_order(x, y, k, m):
    for value in {x, y, 7}:
        if value > 0:
            return value
    return 0


def refused_generator_read_twice(x, y, k, m):
    values = (v for v in (x, y))
    return sum(values) + sum(values)


def refused_shared_list(x, y, k, m):
    shared = [1]
    d = {}
    d.setdefault(k, shared)
    shared.append(2)
    return len(d)


def refused_merged_dictionary(x, y, k, m):
    a, b = {"n": 1}, {"n": 2}
    c = a if x > 0 else b
    c["n"] += 5
    return a["n"]


REFUSED = {
    refused_generator_read_twice: "a generator that is read twice at line",
    refused_shared_list: "setdefault() with a container that has a name at line",
    refused_merged_dictionary: "a change of one of several dictionaries at line",
    refused_look_at_an_error: "a look at the error 'error' in line",
    refused_random_dictionary: "a dictionary of random keys",
    refused_list_of_random_length: "a list of random length",
    refused_choice_of_objects: "a choice between values of different structure at line",
    refused_recursion: "recursion that ends on a random condition at line",
    refused_deletion: "del under a random condition at line",
    refused_set_order: "the order of a set of random elements at line",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_what_is_refused_says_why_and_where(program):
    question = Question(program, prior(), secret="x")
    lifting = question.case().lifting
    assert lifting.tier == "python"
    assert lifting.reason.startswith(REFUSED[program])
    if "line" in REFUSED[program]:
        first = program.__code__.co_firstlineno
        assert first < int(lifting.reason.rpartition(" ")[2]) < first + 16


# --- Errors for some inputs -------------------------------------------------------------------------------


def rarely(value):
    if value > 990:
        raise ValueError("too large")
    return value


def unused_helper(value):
    rarely(value)
    return 1


def rarely_out_of_range(value):
    h = [0, 0]
    h[value // 500] = 1
    return h[0]


def rarely_missing(value):
    ages = {}
    if value < 990:
        ages["Ann"] = 3
    return ages["Ann"]


def rarely_empty(value):
    return max([v for v in [value] if v < 990])


def rarely_endless(value):
    n = 0
    while value > 990 or n < 2:
        n += 1
    return n


@pytest.mark.parametrize(
    ("program", "error"),
    [(rarely, "too large"), (unused_helper, "too large"), (rarely_out_of_range, "out of range"),
     (rarely_missing, "Ann"), (rarely_empty, "nothing"), (rarely_endless, "more rounds")],
)  # fmt: skip
def test_errors_on_rare_inputs_are_raised_when_such_an_input_is_drawn(program, error):
    value = pv.DiscreteUniform(0, 1000)
    question = Question(program, {"value": value}, secret="value")
    assert question.case().lifting.tier == "traced", str(question.case().lifting)
    with pytest.raises(ProgramError, match=error):
        draw(question, None, samples=5000, seed=1)


def test_errors_of_one_program_are_not_those_of_another():
    value = pv.DiscreteUniform(0, 1000)

    def abandoned(value):
        rarely(value)
        return {value: 1}

    assert apply(abandoned, [value]).lifting.tier == "python"
    nodes = ancestors([apply(lambda v: v + 1, [value]).output.node])
    assert not any(type(node.operation).__name__ == "Checked" for node in nodes)


def squared_until_large(x, b):
    while x < (100 if b else 10):
        x = x * x + 1
    return x


def test_a_loop_that_squares_ends_though_bounds_double_their_digits_each_round():
    prior = {"x": pv.DiscreteUniform(0, 5), "b": pv.Bernoulli(0.25)}
    truth = Counter()
    for x in range(6):
        truth[squared_until_large(x, True)] += 0.25 / 6
        truth[squared_until_large(x, False)] += 0.75 / 6
    attack = pv.Attack(squared_until_large, prior, secret="x")
    assert attack.lifting.tier == "traced"
    found = attack.run(engine="exact").prediction.distribution()
    assert {value: share.value for value, share in found.items()} == pytest.approx(truth)
