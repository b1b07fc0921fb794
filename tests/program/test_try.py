"""`try` in traced programs: on every input what Python gives, errors included; what is not known is refused."""

import itertools
import math
import statistics

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.inputs import Arguments
from privug.program.outputs import FAILED, settled
from privug.program.tracing import trace

X, Y, WORDS = range(-2, 3), range(-1, 3), ("1", "2", "many", "")
PRICES = {"1": 10, "2": 20}


def every_input():
    """All inputs: two whole numbers and a text."""
    return list(itertools.product(X, Y, WORDS))


def traced_on_every_input(program):
    """Trace a program and evaluate it on all inputs; `FAILED` where it raises."""
    inputs = [pv.DiscreteUniform(-2, 2), pv.DiscreteUniform(-1, 2), pv.Choice(list(WORDS))]
    made = trace(program, inputs, {})
    assert made.obstacle is None, made.obstacle
    structure, leaves = flatten(made.output)
    points = every_input()
    columns = [[x for x, _, _ in points], [y for _, y, _ in points], [WORDS.index(k) for _, _, k in points]]
    known = {v.node: np.array(column, v.node.dtype) for v, column in zip(inputs, columns, strict=True)}
    nodes = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
    failed = np.zeros(len(points), bool)
    with np.errstate(all="ignore"):
        arrays = Plan(nodes, list(known)).run(len(points), np.random.default_rng(0), known, failed=failed)
    values = Arguments(structure, tuple(leaves)).plain(arrays, len(points))
    return [FAILED if gone else value for gone, value in zip(failed, values, strict=True)]


def called(program, *inputs):
    try:
        with np.errstate(all="ignore"):
            return settled(program(*inputs))
    except Exception:
        return FAILED


def same(left, right):
    if left is FAILED or right is FAILED:
        return left is right
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) or isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12) or (math.isnan(left) and math.isnan(right))
    return left == right and type(left) is type(right)


TRACED = []


def traced(program):
    """A program that is to be traced, and to give what Python gives on all inputs."""
    TRACED.append(program)
    return program


# --- One operation that fails ------------------------------------------------------------------------------


@traced
def division(x, y, k):
    try:
        return x / y
    except ZeroDivisionError:
        return -1.0


@traced
def floor_division_and_remainder(x, y, k):
    try:
        return x // y, x % y
    except ZeroDivisionError:
        return 7, 8


@traced
def missing_key(x, y, k):
    try:
        return PRICES[k]
    except KeyError:
        return 0


@traced
def out_of_range(x, y, k):
    try:
        return [5, 6][x]
    except IndexError:
        return 0


@traced
def not_a_number(x, y, k):
    try:
        return int(k)
    except ValueError:
        return -1


@traced
def square_root_and_logarithm(x, y, k):
    try:
        return math.sqrt(x) + math.log(y)
    except ValueError:
        return -1.0


@traced
def too_large(x, y, k):
    try:
        return math.exp(800 * x)
    except OverflowError:
        return -1.0


@traced
def too_large_is_no_value_error(x, y, k):
    try:
        return math.exp(800 * x)
    except ValueError:
        return -1.0


@traced
def negative_power_of_zero(x, y, k):
    try:
        return float(x) ** -2
    except ArithmeticError:
        return 0.0


@traced
def largest_of_nothing(x, y, k):
    try:
        return max([v for v in (x, y) if v > 0])
    except ValueError:
        return 0


@traced
def mean_of_nothing(x, y, k):
    try:
        return statistics.mean([v for v in (x, y) if v > 0])
    except statistics.StatisticsError:
        return 0


@traced
def mean_of_nothing_is_no_division(x, y, k):
    try:
        return statistics.mean([v for v in (x, y) if v > 0])
    except ZeroDivisionError:
        return 0


@traced
def spread_of_too_few(x, y, k):
    try:
        return statistics.stdev([v for v in (x, y, 3) if v > 0])
    except ValueError:
        return 0.0


@traced
def not_in_a_list(x, y, k):
    try:
        return [0, 1, y].index(x)
    except ValueError:
        return 9


@traced
def no_next(x, y, k):
    try:
        return next(v for v in (x, y) if v > 1)
    except StopIteration:
        return 0


@traced
def not_in_a_text(x, y, k):
    try:
        return k.index("n")
    except ValueError:
        return 9


@traced
def raised_with_a_random_message(x, y, k):
    try:
        if x > y:
            raise ValueError(f"{x} is more than {y}")
        return 1
    except ValueError:
        return 2


@traced
def asserted(x, y, k):
    try:
        assert x <= y, f"{x}"
        return 1
    except AssertionError:
        return 2


@traced
def numbers_of_numpy_do_not_fail(x, y, k):
    a = np.array([x, y])
    try:
        return float(a[0] / a[1])
    except ZeroDivisionError:
        return -1.0


@traced
def numbers_of_python_do(x, y, k):
    a = np.array([x, y])
    try:
        return a.tolist()[0] / int(a[1])
    except ZeroDivisionError:
        return -1.0


# --- Which handler -------------------------------------------------------------------------------------------


@traced
def several_handlers(x, y, k):
    try:
        return int(k) / x + PRICES[k] // y
    except ZeroDivisionError:
        return -1
    except (KeyError, ValueError):
        return -2


@traced
def the_first_handler_that_fits(x, y, k):
    try:
        return x / y + PRICES[k]
    except ArithmeticError:
        return 1
    except ZeroDivisionError:
        return 2
    except LookupError:
        return 3


@traced
def bare_handler(x, y, k):
    try:
        return PRICES[k] / x
    except:  # noqa: E722
        return -1


@traced
def an_error_that_is_not_looked_at(x, y, k):
    try:
        return PRICES[k] / x
    except Exception as error:
        raise RuntimeError("no price") from error


@traced
def what_nobody_catches(x, y, k):
    try:
        return PRICES[k] / x
    except ZeroDivisionError:
        return -1


class TooSmall(Exception):
    def __init__(self, value, least):
        super().__init__(value, least)


class MuchTooSmall(TooSmall):
    pass


@traced
def own_classes_of_errors(x, y, k):
    try:
        if x < -1:
            raise MuchTooSmall(x, -1)
        if x < y:
            raise TooSmall(x, y)
    except MuchTooSmall:
        return 2
    except TooSmall:
        return 1
    return 0


# --- What happens before, after, and in spite of it -------------------------------------------------------


@traced
def what_comes_after_does_not_happen(x, y, k):
    log, total, d = [], 0, {}
    try:
        log.append(1)
        total += 1
        d["before"] = 1
        z = 6 // x
        log.append(2)
        total += z
        d["after"] = z
        z = 6 // y
        log.append(3)
        total += 100 * z
    except ZeroDivisionError:
        log.append(4)
        total += 10_000
    return total, len(log), sum(log), len(d)


@traced
def otherwise(x, y, k):
    total = 0
    try:
        z = x // y
    except ZeroDivisionError:
        total += 1
    else:
        total += 10 + z
        if z > 0:
            return total
    total += 100
    return total


@traced
def what_fails_in_else_is_not_caught(x, y, k):
    try:
        a = 6 // x
    except ZeroDivisionError:
        return -1
    else:
        return a // y


@traced
def finally_after_all(x, y, k):
    steps = []
    try:
        steps.append(6 // x)
        if y == 1:
            return len(steps), -1
        steps.append(PRICES[k])
    except KeyError:
        steps.append(5)
    finally:
        steps.append(7)
    return len(steps), sum(steps)


@traced
def finally_alone(x, y, k):
    count = 0
    try:
        try:
            count += 1
            count += 4 // x
        finally:
            count += 100
        count += 1000
    except ZeroDivisionError:
        count += 10_000
    return count


@traced
def return_in_body_and_handler(x, y, k):
    try:
        if y > 0:
            return 6 // x
        z = PRICES[k]
    except KeyError:
        z = -5
    except ZeroDivisionError:
        if y == 2:
            return -7
        z = -6
    return z + 1


# --- Parts of expressions ---------------------------------------------------------------------------------


@traced
def in_a_comprehension(x, y, k):
    try:
        return sum([6 // v for v in (x, y, 2) if v != 1])
    except ZeroDivisionError:
        return -100


@traced
def in_a_generator(x, y, k):
    try:
        return max(6 // v for v in (x, y, 2))
    except ZeroDivisionError:
        return -100


@traced
def in_a_conditional_expression(x, y, k):
    try:
        return PRICES["none"] if x > 0 else 6 // y
    except KeyError:
        return -1
    except ZeroDivisionError:
        return -2


@traced
def in_and_and_or(x, y, k):
    try:
        return (x > 0 and PRICES["none"] > 1) or (y > 0 or [][0] == 1)
    except LookupError:
        return False


# --- Errors that are raised for certain ---------------------------------------------------------------------


@traced
def always(x, y, k):
    count = 0
    try:
        count += 1
        z = PRICES["none"]
        count += z
    except KeyError:
        count += 10
    return count + x


@traced
def always_on_one_branch(x, y, k):
    count = 0
    try:
        if x > 0:
            for v in (y, y):
                count += 1
                z = {}["none"] + v
            count += 100
        else:
            z = 5
        count += z
    except KeyError:
        count += 1000
    return count


@traced
def always_after_something_rare(x, y, k):
    count = 0
    try:
        count += 6 // x
        count += 1 // 0
    except ZeroDivisionError:
        count += 10
    return count


@traced
def always_for_the_outer_one(x, y, k):
    count = 0
    try:
        try:
            count += 6 // x
            count += PRICES["none"]
        except ZeroDivisionError:
            count += 100
        count += 1000
    except KeyError:
        count += 10_000
    return count


@traced
def always_in_a_handler(x, y, k):
    try:
        try:
            return 6 // x
        except ZeroDivisionError:
            return {}["none"]
    except KeyError:
        return -9


@traced
def a_random_branch_that_raises(x, y, k):
    count = 0
    try:
        if x > 0:
            if y > 0:
                raise KeyError("both")
            count += 1
            raise ValueError
        count += 10
    except KeyError:
        count += 100
    except ValueError:
        count += 1000
    return count


# --- Nested statements ----------------------------------------------------------------------------------------


@traced
def nested(x, y, k):
    log = []
    try:
        try:
            log.append(6 // x)
            log.append(PRICES[k])
        except KeyError:
            log.append(6 // y)
        log.append(1)
    except ZeroDivisionError:
        log.append(-3)
    return len(log), sum(log)


@traced
def raised_again(x, y, k):
    count = 0
    try:
        try:
            count += PRICES[k] // x
        except (KeyError, ZeroDivisionError):
            count += 1000
            if y > 0:
                raise
    except KeyError:
        count += 2000
    except ZeroDivisionError:
        count += 4000
    return count


@traced
def raised_again_by_name(x, y, k):
    try:
        try:
            return 6 // x
        except ZeroDivisionError as error:
            if y < 1:
                raise error
            return 0
    except ArithmeticError:
        return 99


@traced
def another_error_from_the_handler(x, y, k):
    try:
        try:
            return PRICES[k]
        except KeyError:
            raise ValueError(k) from None
    except ValueError:
        return x // y


@traced
def finally_where_an_outer_one_catches(x, y, k):
    count = 0
    try:
        try:
            count += PRICES[k]
            try:
                count += 6 // x
            except KeyError:
                count += 1
            finally:
                count += 100
            count += 1000
        finally:
            count += 10_000
    except (KeyError, ZeroDivisionError):
        count += 100_000
    return count


# --- Loops ----------------------------------------------------------------------------------------------------


@traced
def in_a_loop(x, y, k):
    total, skipped = 0, 0
    for v in (x, y, x + y, x - y):
        try:
            total += 12 // v
        except ZeroDivisionError:
            skipped += 1
            continue
        total += 100
    return total, skipped


@traced
def broken_off_by_a_handler(x, y, k):
    total = 0
    for v in (1, x, y):
        try:
            if v == 2:
                break
            total += 12 // v
        except ZeroDivisionError:
            total += 1000
            break
        finally:
            total += 10_000
    else:
        total += 5
    return total


@traced
def returned_from_a_loop(x, y, k):
    for place, v in enumerate((2, x, y)):
        try:
            if 12 // v < 0:
                return place
        except ZeroDivisionError:
            return -place
    return 99


@traced
def around_a_loop(x, y, k):
    total = 0
    try:
        for v in (1, x, y):
            if v == 1:
                continue
            total += 12 // v
        total += 1000
    except ZeroDivisionError:
        total += 100
    return total


@traced
def while_it_goes_well(x, y, k):
    n = 0
    try:
        while n < 4:
            n += 1
            n += 4 // (x + n) ** 2
    except ZeroDivisionError:
        n += 100
    return n


@traced
def first_good_one(x, y, k):
    for v in (k, "2", "3"):
        try:
            found = int(v)
            break
        except ValueError:
            pass
    return found


@traced
def failures_of_several_rounds(x, y, k):
    log = []
    try:
        for v in (x, y, x + y):
            try:
                log.append(PRICES[k] // v)
            except ZeroDivisionError:
                log.append(-1)
                if v == y:
                    raise ValueError("enough") from None
    except (KeyError, ValueError):
        log.append(1000)
    return len(log), sum(log)


@traced
def changed_in_place(x, y, k):
    counts, items = {"a": 0, "1": 5}, [0, 0]
    try:
        counts["a"] += 1
        counts["1"] += PRICES[k]
        items[x] = 7
        counts["a"] += 10 // y
    except LookupError:
        counts["a"] += 100
    except ZeroDivisionError:
        items[0] += 50
    return counts["a"], counts["1"], items


@traced
def a_fall_back_of_a_fall_back(x, y, k):
    try:
        value = int(k)
    except ValueError:
        try:
            value = 6 // x
        except ZeroDivisionError:
            value = PRICES.get(k, 3)
    return value


# --- Functions --------------------------------------------------------------------------------------------------


def _ratio(a, b):
    if b < 0:
        raise ValueError("negative")
    return a / b


def _safe(a, b, default=0.0):
    try:
        return _ratio(a, b)
    except ZeroDivisionError:
        return default


def _deep(a, b):
    total = 0
    for v in (a, b):
        if v > 1:
            return total
        total += _ratio(1, v)
    return total


@traced
def failure_of_a_helper(x, y, k):
    try:
        return _ratio(x, y)
    except (ZeroDivisionError, ValueError):
        return -1.0


@traced
def helper_that_catches_some(x, y, k):
    try:
        return _safe(x, y) + _safe(y, x)
    except ValueError:
        return -1.0


@traced
def failure_deep_inside(x, y, k):
    log = [0]
    try:
        log.append(_deep(x, y))
        log.append(1)
    except ArithmeticError:
        log.append(50)
    except ValueError:
        log.append(70)
    return len(log), float(sum(log))


@traced
def lambda_that_fails(x, y, k):
    try:
        return sum(map(lambda v: 6 // v, (x, y)))  # noqa: C417
    except ZeroDivisionError:
        return -1


@traced
def a_random_condition_around_it(x, y, k):
    z = 0
    if x != 1:
        try:
            z = 6 // (x + y)
        except ZeroDivisionError:
            z = -1 if y > 0 else PRICES[k]
        z += 1
    return z


class _Counter:
    def __init__(self):
        self.good = self.bad = 0

    def add(self, a, b):
        try:
            self.good += a // b
        except ZeroDivisionError:
            self.bad += 1


@traced
def attributes(x, y, k):
    counter = _Counter()
    counter.add(x, y)
    counter.add(y, x)
    return counter.good, counter.bad


@pytest.mark.parametrize("program", TRACED, ids=lambda program: program.__name__)
def test_a_traced_program_gives_on_every_input_what_python_gives(program):
    found = traced_on_every_input(program)
    for inputs, value in zip(every_input(), found, strict=True):
        assert same(called(program, *inputs), value), (inputs, called(program, *inputs), value)


def test_there_are_many_programs():
    assert len(TRACED) >= 60


# --- What is refused --------------------------------------------------------------------------------------------


def error_as_text(x, y, k):
    try:
        return str(6 // x)
    except ZeroDivisionError as error:
        return str(error)


def return_inside_finally(x, y, k):
    try:
        return 6 // x
    finally:
        return 0  # noqa: B012, SIM107


def error_groups(x, y, k):
    try:
        return 6 // x
    except* ZeroDivisionError:
        pass


def attribute_that_is_not_there(x, y, k):
    try:
        return x.bit_count()
    except AttributeError:
        return 0


def type_that_tracing_changes(x, y, k):
    try:
        return x << 1
    except TypeError:
        return 0


def error_in_a_part_of_a_filter(x, y, k):
    try:
        return sum(PRICES["none"] for v in (x, y) if v > 0)
    except KeyError:
        return -1


def list_that_grows_while_it_fails(x, y, k):
    log = []
    try:
        log += (6 // v for v in (1, x, y))
    except ZeroDivisionError:
        log.append(0)
    return len(log)


def sorted_while_it_fails(x, y, k):
    items = [3, x, y]
    try:
        items.sort(key=lambda v: 6 // v)
    except ZeroDivisionError:
        items.append(0)
    return items[0]


REFUSED = {
    error_as_text: "a look at the error 'error' in line",
    return_inside_finally: "'return' inside 'finally' in line",
    error_groups: "'trystar' in line",
    attribute_that_is_not_there: "AttributeError (this random variable has no attribute 'bit_count') inside 'try'",
    type_that_tracing_changes: "TypeError (unsupported operand",
    error_in_a_part_of_a_filter: "KeyError in a part of an expression, inside 'try', at line",
    list_that_grows_while_it_fails: "a container that grows by a generator, inside 'try', at line",
    sorted_while_it_fails: "sort() by a key, inside 'try', at line",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_what_is_not_known_is_refused(program):
    made = trace(program, [pv.DiscreteUniform(-2, 2), pv.DiscreteUniform(-1, 2), pv.Choice(list(WORDS))], {})
    assert made.obstacle is not None
    assert made.obstacle.startswith(REFUSED[program]), made.obstacle


# --- Tables, errors that are left out, and exact answers ---------------------------------------------------------


def _rows(number):
    return pv.Records(
        number,
        lambda i: pv.Row(a=pv.DiscreteUniform(0, 3), b=pv.DiscreteUniform(0, 2), code=pv.Choice(["1", "2", "-"])),
    )


def total_of_ratios(records):
    total, bad = 0, 0
    for row in records:
        try:
            total += 12 * row.a // row.b
        except ZeroDivisionError:
            bad += 1
    return total, bad


def decoded(records):
    total = 0
    for row in records:
        try:
            code = int(row.code)
        except ValueError:
            code = 5
        total += code * row.a
    return total


def until_it_fails(records):
    total = 0
    try:
        for row in records:
            total += 12 // (row.a + row.b)
    except ZeroDivisionError:
        return -total
    return total


def mean_if_any(records):
    try:
        return statistics.mean([row.a for row in records if row.b == 0])
    except statistics.StatisticsError:
        return None


def counted_by_key(records):
    counts = {}
    for row in records:
        try:
            counts[row.code] += 1
        except KeyError:
            counts[row.code] = 1
    return counts


@pytest.mark.parametrize("program", [total_of_ratios, decoded, until_it_fails, mean_if_any, counted_by_key])
@pytest.mark.parametrize("number", [1, 3, 12])
def test_tables_of_rows_that_are_alike(program, number):
    question = Question(program, {"records": _rows(number)}, secret=["records"])
    assert question.case().lifting.tier == "traced", str(question.case().lifting)
    run = draw(question, None, samples=400, seed=3)
    for (records,), output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert same(program(records), output)


def test_rows_that_fail_one_by_one_are_computed_as_one():
    """A `try` inside a loop keeps rows that are alike together: the law of a sum over a thousand of them is exact."""
    attack = pv.Attack(decoded, prior={"records": _rows(400)}, secret=lambda records: records[0].a)
    mean = attack.run().prediction.mean()
    assert mean.exact
    assert mean.value == pytest.approx(400 * 1.5 * (1 + 2 + 5) / 3, rel=1e-9)


def test_what_nobody_catches_is_left_out():
    def program(x, y):
        try:
            return {0: 5, 1: 6}[x] // y
        except ZeroDivisionError:
            return -1

    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 2)}
    attack = pv.Attack(program, prior=prior, secret=lambda x, y: y, on_error="exclude")
    result = attack.run(pv.equals(-1))
    assert attack.lifting.tier == "traced"
    assert result.posterior.probability(lambda y: y == 0).value == pytest.approx(1)
    assert result.diagnostics.evidence.value == pytest.approx(1 / 3)
    with pytest.raises(pv.ProgramError, match="KeyError"):
        pv.Attack(program, prior=prior, secret=lambda x, y: y).run(pv.equals(-1))


def test_the_posterior_of_a_ratio_with_a_fall_back():
    """Given y > 0 the output is normal with standard deviation 1/y: its density at v is y times that of x at v y."""

    def ratio(x, y):
        try:
            return x / y
        except ZeroDivisionError:
            return 100.0

    prior = {"x": pv.Normal(0, sd=1), "y": pv.DiscreteUniform(0, 3)}
    attack = pv.Attack(ratio, prior=prior, secret=lambda x, y: y)
    assert attack.run(pv.equals(100.0)).posterior.probability(lambda y: y == 0).value == 1
    seen = attack.run(pv.equals(0.5)).posterior
    density = [y * math.exp(-((0.5 * y) ** 2) / 2) for y in range(4)]
    for y in range(4):
        found = seen.probability(lambda value, y=y: value == y)
        assert found.exact
        assert found.value == pytest.approx(density[y] / sum(density), rel=1e-9)


def test_the_posterior_of_a_mean_that_may_have_no_terms():
    """Three people, each ill with probability 0.3: `None` is published if nobody is; seeing it says who is not ill."""

    def program(people):
        try:
            return statistics.mean([age for age, ill in people if ill])
        except statistics.StatisticsError:
            return None

    people = [(pv.Choice([30, 40]), pv.Bernoulli(0.3)) for _ in range(3)]
    attack = pv.Attack(program, prior={"people": people}, secret=lambda people: people[0][1])
    nobody = attack.run(pv.equals(None))
    assert nobody.diagnostics.evidence.value == pytest.approx(0.7**3, rel=1e-9)
    assert nobody.posterior.probability(lambda ill: ill).value == 0
    thirty = attack.run(pv.equals(30))
    # All who are ill are 30: (0.7 + 0.15)^3 - 0.7^3; the first is ill and 30 with probability 0.15.
    assert thirty.diagnostics.evidence.value == pytest.approx(0.85**3 - 0.7**3, rel=1e-9)
    found = thirty.posterior.probability(lambda ill: ill)
    assert found.exact
    assert found.value == pytest.approx(0.15 * 0.85**2 / (0.85**3 - 0.7**3), rel=1e-9)
