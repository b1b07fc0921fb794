"""Bad input to every public name: a PrivugError that says what to do, or an answer; nothing else, and nothing hangs.

Names, methods and parameters are found by introspection. Each parameter is given each of a catalogue of bad values
while the others are valid. A new name or parameter needs a valid example in the tables below, or the test fails.
"""

import inspect
import math
import re
import signal
import sys
import warnings
from functools import cache
from itertools import islice

import numpy as np
import pytest

import privug as pv
from oracles.families import ROWS as FAMILIES
from privug import settings

SECONDS = 20
MODULES = {
    "": pv,
    "leakage.": pv.leakage,
    "mechanisms.": pv.mechanisms,
    "anonymisers.": pv.mechanisms.anonymisers,
    "reidentification.": pv.reidentification,
}
# What functions return, or Belief.of and Joint.from_samples; nobody makes them by hand.
RETURNED = {
    "Belief",
    "Calibration",
    "ComparisonMatrix",
    "Joint",
    "Observation",
    "RandomVariable",
    "Result",
    "Sweep",
    "Tallies",
    "leakage.Convergence",
    "leakage.Evidence",
    "leakage.LeakageRow",
    "leakage.LeakageTable",
    "leakage.PointwiseLeakage",
    "leakage.Refinement",
    "mechanisms.Audit",
    "mechanisms.Finding",
    "reidentification.Link",
    "reidentification.LinkedTable",
    "reidentification.QuasiIdentifier",
    "reidentification.QuasiIdentifiers",
    "reidentification.Risks",
    "reidentification.UniqueRow",
    "reidentification.UniqueRows",
}


def odd(x):
    return x % 2


def identity(x):
    return x


def average(records):
    return sum(row.age for row in records) / len(records)


ROWS = [pv.Row(age=a, sex=s, ill=i) for a, s, i in [(1, "f", "y"), (2, "m", "n"), (2, "m", "y"), (4, "f", "n")]]
PUBLIC = [{"name": "Ann", "age": 1}, {"name": "Bob", "age": 2}]


@cache
def attack():
    return pv.Attack(odd, {"x": pv.DiscreteUniform(0, 5)}, "x", questions={"small": lambda x: x < 2})


@cache
def result():
    return attack().run(pv.equals(1))


@cache
def tallies():
    return attack().tally(draws=1_000)


@cache
def sampled():
    rng = np.random.default_rng(0)
    secret = rng.integers(0, 3, 200)
    return pv.Joint.from_samples(secret, secret + rng.integers(0, 2, 200))


def joint():
    return pv.Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])


def channel():
    return pv.leakage.Channel(np.array([[0.8, 0.2], [0.3, 0.7]]))


def released(epsilon):
    program = pv.mechanisms.randomized_response(identity, epsilon=epsilon)
    return pv.Attack(program, {"x": pv.Bernoulli(0.5)}, "x")


# Valid values by the name of a parameter; those of one function come first.
EXAMPLES = {
    "form": lambda: "columns",
    "program": lambda: odd,
    "prior": lambda: result().prior,
    "posterior": lambda: result().posterior,
    "belief": lambda: result().posterior,
    "about": lambda: result().joint,
    "joint": joint,
    "channel": channel,
    "refined": channel,
    "records": lambda: list(ROWS),
    "columns": lambda: ["age"],
    "secret": lambda: "ill",
    "result": result,
    "noiseless": lambda: odd,
    "predicate": lambda: lambda x: x == 1,
    "function": lambda: lambda x: x,
    "value": lambda: 3,
    "low": lambda: 0,
    "high": lambda: 5,
    "p": lambda: 0.5,
    "rate": lambda: 0.5,
    "epsilon": lambda: 1.0,
    "delta": lambda: 1e-6,
    "sensitivity": lambda: 1.0,
    "k": lambda: 2,
    "data": lambda: [1.0, 2.0, 3.0],
    "confidence": lambda: 0.95,
    "samples": lambda: 200,
    "seed": lambda: 1,
    "secrets": lambda: 3,
    "outputs": lambda: 3,
    "gain": pv.leakage.identity,
    "x": lambda: pv.Bernoulli(0.5),
    "rows": lambda: list(ROWS),
    "distribution": lambda: pv.Bernoulli(0.5),
    "size": lambda: 2,
    "level": lambda: 0.05,
    "k_": lambda: 3,
    "person": lambda: 0,
}
OWN = {
    **{row.name: {name: lambda value=value: value for name, value in row.arguments.items()} for row in FAMILIES},
    "Dirichlet": {"weights": lambda: [1.0, 2.0]},
    "Multinomial": {"n": lambda: 5, "p": lambda: [0.25, 0.75]},
    "Attack": {"prior": lambda: {"x": pv.DiscreteUniform(0, 5)}, "secret": lambda: "x"},
    "Array": {},
    "Choice": {"values": lambda: ["a", "b"]},
    "Estimate": {"value": lambda: 2.0},
    "External": {"command": lambda: ["true"]},
    "Mixture": {"components": lambda: [pv.Normal(0, sd=1), pv.Normal(1, sd=1)]},
    "MvNormal": {"mean": lambda: [0.0, 0.0], "cov": lambda: [[1.0, 0.0], [0.0, 1.0]]},
    "Records": {"row": lambda: pv.Row(age=pv.Uniform(0, 1))},
    "calibrate": {
        "attack_for": lambda: released,
        "measure": lambda: "mutual_information",
        "at_most": lambda: 0.1,
        "epsilon": lambda: (0.1, 2.0),
    },
    "compare": {
        "attackers": lambda: {"a": {"x": pv.Bernoulli(0.5)}},
        "programs": lambda: {"p": identity},
        "secret": lambda: "x",
    },
    "fit": {"family": lambda: pv.Normal},
    "given": {"table": lambda: {0: 1, 1: pv.Normal(0, sd=1)}},
    "near": {"within": lambda: 1.0},
    "noisy": {"sd": lambda: 1.0},
    "read_columns": {"path": lambda: __file__.replace(".py", ".none")},
    "side_by_side": {"title": lambda: "t", "results": lambda: [result()]},
    "sql": {"query": lambda: "SELECT COUNT(*) FROM people"},
    "sweep": {"attack_for": lambda: released, "measures": lambda: ["bayes_risk"]},
    "where": {"condition": lambda: pv.Bernoulli(0.5), "yes": lambda: 1, "no": lambda: 2},
    "leakage.Channel": {"matrix": lambda: np.array([[0.8, 0.2], [0.3, 0.7]]), "secrets": tuple, "outputs": tuple},
    "leakage.distance": {"scale": lambda: 1.0},
    "leakage.guess_or_abstain": {"penalty": lambda: 0.5},
    "leakage.renyi_entropy": {"order": lambda: 2.0},
    "leakage.samples_to_detect": {"bits": lambda: 0.1},
    "leakage.differential_entropy": {"belief": lambda: pv.Belief.of(np.random.default_rng(0).normal(size=300))},
    "leakage.cohens_d": {},
    "leakage.tries": {"count": lambda: 2},
    "leakage.convergence": {"joint": sampled},
    "leakage.estimate_bayes_risk": {"joint": sampled},
    "leakage.evidence_of_leak": {"joint": sampled},
    "leakage.epsilon": {},
    "mechanisms.Mechanism": {
        "release": lambda: identity,
        "guarantee": lambda: pv.mechanisms.Guarantee(1.0),
        "words": lambda: "w",
    },
    "mechanisms.audit": {
        "mechanism": lambda: pv.mechanisms.randomized_response(identity, epsilon=1.0),
        "neighbours": lambda: [(False, True)],
    },
    "mechanisms.discrete_gaussian": {"rho": lambda: 0.5, "epsilon": lambda: None, "delta": lambda: None},
    "mechanisms.gaussian": {"rho": lambda: 0.5, "epsilon": lambda: None, "delta": lambda: None},
    "mechanisms.exponential": {"score": lambda: lambda x, c: -abs(x - c), "candidates": lambda: [0, 1]},
    "mechanisms.from_factory": {"factory": lambda: lambda: odd},
    "mechanisms.report_noisy_max": {"program": lambda: lambda x: [x, 1 - x]},
    "mechanisms.randomized_response": {"epsilon": lambda: 1.0},
    "Hierarchy.level": {"number": lambda: 1},
    "mechanisms.rounded": {"to": lambda: 5.0},
    "mechanisms.sparse_vector": {"threshold": lambda: 1.0, "program": lambda: lambda x: [x, 1 - x]},
    "mechanisms.subsample": {"program": lambda: average},
    "mechanisms.suppressed": {"fewer_than": lambda: 3},
    "mechanisms.swapped": {"program": lambda: average, "column": lambda: "age"},
    "anonymisers.bands": {"width": lambda: 10},
    "anonymisers.cuts": {"edges": lambda: [1, 2]},
    "anonymisers.is_l_diverse": {"l": lambda: 2},
    "anonymisers.is_t_close": {"t": lambda: 0.5},
    "anonymisers.labels": {"groups": lambda: {"low": [1, 2]}},
    "anonymisers.prefix": {"length": lambda: 2},
    "anonymisers.swap": {"share": lambda: 0.5},
    "anonymisers.month": {"value": lambda: "1990-02-01"},
    "anonymisers.year": {"value": lambda: "1990-02-01"},
    "reidentification.link": {"released": lambda: list(ROWS), "public": lambda: list(PUBLIC)},
    "reidentification.secret_posterior": {"seen": lambda: {"y": 1}},
    "Belief.of": {"values": lambda: [1, 2, 3]},
    "Belief.probability_of": {"values": lambda: [1, 3]},
    "Belief.quantile": {"level": lambda: 0.5},
    "Belief.samples": {"n": lambda: 5},
    "Joint.from_channel": {
        "prior": lambda: [0.5, 0.5],
        "matrix": lambda: [[1, 0], [0, 1]],
        "secrets": lambda: None,
        "outputs": lambda: None,
    },
    "Joint.from_samples": {"secrets": lambda: [0, 1, 1], "outputs": lambda: [0, 1, 0]},
    "Result.belief": {"query": lambda: lambda x: x},
    "Tallies.merge": {"other": lambda: attack().tally(draws=1_000, seed=1)},
    "Tallies.probability": {"claim": lambda: "small"},
    "Result.save": {"path": lambda: "/nowhere/report.html"},
    "save_report": {"path": lambda: "/nowhere/report.txt", "results": lambda: [result()]},
    "Belief.named": {"quantity": lambda: "age"},
    "Joint.named": {"secret": lambda: "age", "output": lambda: "mean"},
    "Estimate.undefined": {"method": lambda: "it does not exist"},
    "Estimate.widened": {"factor": lambda: 2.0},
    "Estimate.divided_by": {"whole": lambda: pv.Estimate(2.0, 1.0, 3.0)},
    "parameter": {"name": lambda: "epsilon", "low": lambda: 0.1, "high": lambda: 10},
    "Records.from_frame": {"data": lambda: {"a": [1, 2, 3]}, "columns": lambda: None},
    "Records.knows_all_but": {"data": lambda: {"a": [1, 2, 1]}, "row": lambda: 0, "columns": lambda: None},
    "Channel.joint": {"prior": lambda: [0.5, 0.5]},
    "Guarantee.group": {},
    "Guarantee.repeated": {"times": lambda: 2},
    "Guarantee.worst_case": {"prior": lambda: 0.5},
}
# Arguments of `**parameters`, of `*arguments`.
FURTHER = {
    "Row": {"age": lambda: 1},
    "explain": {"x": lambda: pv.Bernoulli(0.5)},
    "sweep": {"epsilon": lambda: [1.0]},
    "calibrate": {"epsilon": lambda: (0.1, 2.0)},
    "anonymisers.generalise": {"age": lambda: pv.mechanisms.anonymisers.bands(2)},
}
LISTED = {
    "mechanisms.together": lambda: pv.mechanisms.randomized_response(identity, epsilon=1.0),
    "anonymisers.Hierarchy": lambda: pv.mechanisms.anonymisers.bands(2),
    "anonymisers.drop": lambda: "age",
    "anonymisers.keep": lambda: "age",
    "QuasiIdentifiers.of": lambda: "age",
    "QuasiIdentifiers.unique_rows": lambda: "age",
}
INSTANCES = {
    "Attack": attack,
    "Result": result,
    "Belief": lambda: result().posterior,
    "Tallies": tallies,
    "Joint": joint,
    "Estimate": lambda: pv.Estimate(2.0, 1.0, 3.0),
    "Records": lambda: pv.Records(2, pv.Row(age=pv.Uniform(0, 1))),
    "Guarantee": lambda: pv.mechanisms.Guarantee(1.0, 1e-6),
    "Channel": channel,
    "Mechanism": lambda: pv.mechanisms.randomized_response(identity, epsilon=1.0),
    "QuasiIdentifiers": lambda: pv.reidentification.quasi_identifiers(list(ROWS), person=0),
    "Hierarchy": lambda: pv.mechanisms.anonymisers.Hierarchy(pv.mechanisms.anonymisers.bands(2)),
    "Sweep": lambda: pv.sweep(released, epsilon=[1.0], measures=["bayes_risk"]),
    "ComparisonMatrix": lambda: pv.compare(
        attackers={"a": {"x": pv.Bernoulli(0.5)}}, programs={"p": identity}, secret="x"
    ),
}
# Methods of Python's own sequences, and those that need a library or that only the library itself calls.
NOT_FUZZED = {
    "Attack.to_pymc",
    "Belief.listed",
    "Belief.of_curve",
    "Records.alike",
    "Records.copied_table",
    "Records.drawn_anew",
    "Records.looked_at",
    "Records.ragged",
    "Records.plated",
    "Records.replaced",
    "Records.row_at",
    "Records.table",
    "QuasiIdentifiers.count",
    "QuasiIdentifiers.index",
    "Result.to_arviz",
    "Belief.batch",
}


def targets():
    """Return every public function, class and method with the name that tables know it by."""
    found = {}
    for prefix, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            is_error = inspect.isclass(value) and issubclass(value, BaseException | Warning)
            if callable(value) and not is_error and prefix + name not in RETURNED:
                found[prefix + name] = lambda value=value: value
    for name, instance in INSTANCES.items():
        kind = next(getattr(m, name) for m in MODULES.values() if hasattr(m, name))
        for method, _ in inspect.getmembers(kind, callable):
            if not method.startswith("_") and f"{name}.{method}" not in NOT_FUZZED:
                found[f"{name}.{method}"] = lambda instance=instance, method=method: getattr(instance(), method)
    return found


TARGETS = targets()


class Unspeakable:
    """An object that cannot even be shown."""

    def __repr__(self):
        raise RuntimeError("there is no text for this")

    __str__ = __repr__


BAD = {
    "None": lambda: None,
    "empty text": lambda: "",
    "odd text": lambda: "x\x00\ud800",
    "minus one": lambda: -1,
    "nan": lambda: math.nan,
    "infinite": lambda: math.inf,
    "huge": lambda: 10**5000,
    "empty list": list,
    "object": Unspeakable,
    "zero": lambda: 0,
    "large": lambda: 10**400,
    "minus infinite": lambda: -math.inf,
    "true": lambda: True,
    "complex": lambda: 1 + 2j,
    "bytes": lambda: b"x",
    "empty dict": dict,
    "dict": lambda: {"a": 1},
    "list of text": lambda: ["a", None],
    "list of nan": lambda: [math.nan, 1.0],
    "function": lambda: lambda: None,
    "class": lambda: int,
    "random": lambda: pv.Uniform(0, 1),
    "array": lambda: np.zeros((2, 3)),
    "tiny": lambda: 5e-324,
    "set": lambda: {1},
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
    "dict of tuples": lambda: {(1, 2): 3, None: 4},
    "nested list": lambda: [["a"], [None, [1]]],
    "large list": lambda: [10**400, 1],
}
FEW = 9


def parameters(name):
    """Return the parameters that can be given by name, and whether more may be given."""
    signature = inspect.signature(TARGETS[name]())
    return [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def valid(name):
    """Return valid arguments: of those that have no default, and of those that the tables know for this name."""
    own = OWN.get(name, {})
    arguments = {}
    for parameter in parameters(name):
        example = own.get(
            parameter.name, EXAMPLES.get(parameter.name) if parameter.default is parameter.empty else None
        )
        if example is None and parameter.default is parameter.empty:
            raise AssertionError(f"{name}: add a valid example of {parameter.name!r} to the tables of this file")
        if example is not None:
            arguments[parameter.name] = example()
    arguments |= {key: example() for key, example in FURTHER.get(name, {}).items()}
    listed = [LISTED[name]()] if name in LISTED else []
    if name in ("calibrate", "sweep"):
        arguments |= {"samples": 200} if name == "sweep" else {}
    return listed, arguments


def called(name, listed, arguments):
    """Call a target; positional-only arguments and those before listed ones are given by position."""
    function = TARGETS[name]()
    if listed and any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values()):
        before = [
            arguments.pop(p.name) for p in parameters(name) if p.kind is p.POSITIONAL_OR_KEYWORD and p.name in arguments
        ]
        return function(*before, *listed, **arguments)
    return function(**arguments)


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path, monkeypatch):
    """Pictures go into a directory of their own, and settings back to what they were."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "_default", settings._default)


class TooLong(BaseException):
    """A call took longer than it may."""


def too_long(*_):
    raise TooLong


def problem(name, listed, arguments):
    """Return what is wrong with how a call ends, if anything."""
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(), pv.limited(workers=1, progress=False):
            warnings.simplefilter("ignore")
            outcome = called(name, listed, arguments)
            if inspect.isgenerator(outcome):
                list(islice(outcome, 3))
            if hasattr(outcome, "__enter__"):
                with outcome:
                    pass
            text = str(outcome)
    except pv.PrivugError:
        return None
    except TooLong:
        return f"took longer than {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    is_number = isinstance(outcome, pv.Estimate | float | np.floating)
    # A moment that does not exist is not-a-number within an interval without an end.
    is_nan = is_number and math.isnan(float(outcome)) and getattr(outcome, "high", 0) != math.inf
    return f"answers {text[:100]}" if is_nan else None


# Known gaps with their reasons: these calls end with an error of Python's own.
GAPS = {
    call: reason
    for reason, calls in {
        "what a function in a program raises is the program's own error, which on_error='exclude' leaves out": [
            "count(predicate=class)",
            "count(predicate=function)",
            "exists(predicate=class)",
            "exists(predicate=function)",
            "forall(predicate=class)",
            "forall(predicate=function)",
            "forall(then=class)",
            "forall(then=function)",
            "mechanisms.subsample(program=class)",
            "mechanisms.swapped(program=class)",
        ],
        "Python itself does not print whole numbers of more than 4300 digits": [
            "sample(distribution=huge)",
        ],
        "a plain value is returned as it is": [
            "sample(distribution=nan)",
            "sample(distribution=object)",
        ],
    }.items()
    for call in calls
}
MAY_REFUSE = {"read_columns", "Result.save", "save_report"}


@pytest.mark.parametrize("name", TARGETS)
def test_the_valid_example_is_valid(name):
    listed, arguments = valid(name)
    if name not in MAY_REFUSE:
        called(name, listed, arguments)


def problems(name, bad):
    found = []
    listed, _ = valid(name)
    positions = [p.name for p in parameters(name)] + list(FURTHER.get(name, {}))
    for label, value in bad.items():
        for position in dict.fromkeys(positions):
            wrong = problem(name, listed, {**valid(name)[1], position: value()})
            if wrong is not None:
                found.append(f"{name}({position}={label}): {wrong}")
        if listed:
            wrong = problem(name, [value()], valid(name)[1])
            if wrong is not None:
                found.append(f"{name}(*{label}): {wrong}")
    return found


def call_of(text):
    return text.partition(": ")[0]


@pytest.mark.parametrize("name", TARGETS)
def test_a_bad_value_is_refused_or_answered(name):
    found = problems(name, dict(islice(BAD.items(), FEW)))
    assert [text for text in found if call_of(text) not in GAPS] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_every_bad_value_is_refused_or_answered(name):
    found = problems(name, BAD)
    assert [text for text in found if call_of(text) not in GAPS] == []
    known = {call for call in GAPS if call.startswith(f"{name}(")}
    assert known <= set(map(call_of, found)), "a gap that is mended is taken out of the table"


def failing(*arguments, **named):
    raise ZeroDivisionError("division by zero")


def echo(text=None):
    """Return a command that answers each line by itself, or by a text."""
    said = "line.strip()" if text is None else text
    return pv.External([sys.executable, "-c", f"import sys\nfor line in sys.stdin: print({said}, flush=True)"])


def nested(depth):
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


def run(program, prior=None, **options):
    return pv.Attack(program, {"x": pv.Bernoulli(0.5) if prior is None else prior}, "x").run(**options)


def swept(**options):
    return pv.sweep(released, **{"epsilon": [1.0], **options})


def calibrated(**options):
    return pv.calibrate(released, **{"epsilon": (0.1, 2.0), **options})


def compared(**options):
    some = {"attackers": {"a": {"x": pv.Bernoulli(0.5)}}, "programs": {"p": identity}, "secret": "x"}
    return pv.compare(**{**some, **options})


def precise(measure):
    return attack().run(engine="sample", precision=0.1, measure=measure)


def coarse():
    return pv.mechanisms.anonymisers


MASKED = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
DIVIDED = "failed with ZeroDivisionError: division by zero"
# Calls that are wrong in ways of their own: what is said of each.
REFUSED = {
    "a measure that is no function": (lambda: swept(measures={"a": 3}), "measures must map names to functions"),
    "a measure without a name": (lambda: swept(measures={1: len}), "measures must map names to functions"),
    "a measure that returns None": (lambda: swept(measures={"a": lambda _: None}), "'a' must return an estimate"),
    "a measure that returns what cannot be shown": (
        lambda: swept(measures={"a": lambda _: Unspeakable()}),
        "'a' must return an estimate or a number, not <Unspeakable>",
    ),
    "a measure that returns a list": (lambda: swept(measures={"a": lambda _: [1]}), "'a' must return an estimate"),
    "a measure beyond the floats": (lambda: swept(measures={"a": lambda _: 10**400}), "'a' must return an estimate"),
    "a measure that fails": (lambda: swept(measures={"a": failing}), f"'a' {DIVIDED}"),
    "a measure of nothing": (lambda: swept(measures={"a": lambda: 1}), "'a' failed with TypeError"),
    "a class as a measure": (lambda: swept(measures={"a": int}), "'a' failed with TypeError"),
    "a sweep over NaN": (lambda: swept(epsilon=[1.0, math.nan]), "epsilon holds NaN, for which every number is undef"),
    "a sweep over NumPy's NaN": (lambda: swept(epsilon=np.array([math.nan])), "epsilon holds NaN"),
    "an attack_for that fails": (lambda: pv.sweep(failing, epsilon=[1.0]), f"attack_for {DIVIDED}"),
    "an attack_for that returns what cannot be shown": (
        lambda: pv.sweep(lambda epsilon: Unspeakable(), epsilon=[1.0]),
        "must return a pv.Attack, not <Unspeakable>",
    ),
    "an observe that fails": (lambda: swept(observe=failing), f"observe {DIVIDED}"),
    "an observe of nothing": (lambda: swept(observe=lambda: 1), "observe failed with TypeError"),
    "a sweep of too many samples": (
        lambda: swept(samples=10**15),
        "samples must be an integer up to 1,000,000,000",
    ),
    "a limit on what is no function": (
        lambda: calibrated(measure=3, at_most=1),
        "measure must be a text or a function",
    ),
    "a limit on what fails": (lambda: calibrated(measure=failing, at_most=1), DIVIDED),
    "a limit on None": (lambda: calibrated(measure=lambda _: None, at_most=1), "must return an estimate"),
    "a limit on NaN": (lambda: calibrated(measure=lambda _: math.nan, at_most=1), "undefined: it returned NaN"),
    "a random limit": (lambda: calibrated(measure="bayes_risk", at_most=pv.Uniform(0, 1)), "needs one plain value"),
    "a predicate that fails": (lambda: calibrated(holds=failing), f"holds {DIVIDED}"),
    "a predicate that returns None": (lambda: calibrated(holds=lambda _: None), "holds must return True or False"),
    "a predicate that returns an array": (lambda: calibrated(holds=lambda _: np.ones(2)), "must return True or False"),
    "a range beyond the floats": (
        lambda: calibrated(measure="bayes_risk", at_most=1, epsilon=(0.1, 10**400)),
        "epsilon must be a range such as",
    ),
    "an attacker called 1": (lambda: compared(attackers={1: {"x": pv.Bernoulli(0.5)}}), "must be a dict from names"),
    "an attacker called None": (lambda: compared(attackers={None: {}}), "attackers must be a dict from names"),
    "a program called 2": (lambda: compared(programs={2: identity}), "programs must be a dict from names"),
    "an observation of no program": (lambda: compared(observe={"p": 1, 3: 4}), "and no other: 3"),
    "a measure of cells that fails": (lambda: compared(measures={"a": failing}), f"'a' {DIVIDED}"),
    "precision of what is no function": (lambda: precise(3), "measure must be a function, not 3"),
    "precision of a text": (lambda: precise("bits"), "measure must be a function"),
    "precision of None": (lambda: precise(lambda _: None), "measure must return an estimate"),
    "precision of a plain number": (lambda: precise(lambda _: 1.0), "whose interval is to become small"),
    "precision of what fails": (lambda: precise(failing), f"measure {DIVIDED}"),
    "precision of a class": (lambda: precise(int), "measure failed with TypeError"),
    "too many samples": (lambda: attack().run(samples=10**15), "samples must be a whole number, from 1 to"),
    "too many samples of neighbours": (
        lambda: pv.mechanisms.audit(identity, [(0, 1)], guarantee=pv.mechanisms.Guarantee(1.0), samples=10**15),
        "samples must be an integer up to",
    ),
    "a gain that fails": (lambda: pv.leakage.g_vulnerability(joint(), failing), f"gain: .* {DIVIDED}"),
    "a gain of text": (lambda: pv.leakage.g_vulnerability(joint(), lambda g, s: "a"), "worth a finite number"),
    "a gain of lists": (lambda: pv.leakage.g_leakage(joint(), lambda g, s: [1, 2]), "worth a finite number"),
    "a gain beyond the floats": (lambda: pv.leakage.g_leakage(joint(), lambda g, s: 10**400), "worth a finite number"),
    "a complex gain": (lambda: pv.leakage.g_vulnerability(joint(), lambda g, s: 1j), "worth a finite number"),
    "a class as a gain": (lambda: pv.leakage.g_vulnerability(joint(), int), "failed with TypeError"),
    "a metric that fails": (
        lambda: pv.leakage.g_vulnerability(joint(), pv.leakage.distance(1, failing)),
        f"gain: .* {DIVIDED}",
    ),
    "a metric of None": (
        lambda: pv.leakage.g_vulnerability(joint(), pv.leakage.distance(1, lambda a, b: None)),
        "failed with TypeError",
    ),
    "a property that fails": (
        lambda: pv.leakage.g_vulnerability(joint(), pv.leakage.property_of(failing)),
        f"property_of: .* {DIVIDED}",
    ),
    "a matrix of lists of secrets": (
        lambda: pv.leakage.g_vulnerability(joint(), [[1, 0], [0, 1]], secrets=[[1], [2]]),
        "secrets must be values",
    ),
    "a batched program that fails": (lambda: run(pv.batched(lambda x: failing())), f"batched program {DIVIDED}"),
    "rows that fail": (lambda: list(pv.Records(3, failing)), rf"Records: row\(0\) {DIVIDED}"),
    "rows of a table of random size that fail": (
        lambda: pv.Attack(len, {"obj": pv.Records(pv.Poisson(2), failing)}, lambda obj: len(obj)).run(),
        rf"Records: row\(0\) {DIVIDED}",
    ),
    "an array that fails": (lambda: pv.Array(lambda place: failing(), 3), f"Array: .* {DIVIDED}"),
    "a bind that fails": (lambda: pv.bind(pv.Bernoulli(0.5), failing), f"bind: .* called with 0, {DIVIDED}"),
    "a bind of a constant that fails": (lambda: pv.bind(7, failing), f"bind: .* called with 7, {DIVIDED}"),
    "a bind of a density that fails": (lambda: pv.bind(pv.Uniform(0, 1), failing), f"bind: .* {DIVIDED}"),
    "a fit of values that are none": (lambda: pv.fit(pv.Choice, [1, 2], values=3), "values must be a list"),
    "a fit of lists": (lambda: pv.fit(pv.Choice, [1, 2], values=[[1], 2]), "values failed with TypeError"),
    "a fit of too many trials": (lambda: pv.fit(pv.Binomial, [1, 2], n=10**400), "needs n=, a whole number"),
    "a command with half a quotation": (lambda: pv.External("java 'Mean"), "ValueError: No closing quotation"),
    "a command that ends in a backslash": (lambda: pv.External("java \\"), "ValueError: No escaped character"),
    "a command with a null byte": (lambda: pv.External(["a\x00b"])(x=1), "cannot be started: embedded null byte"),
    "a command without UTF-8": (lambda: pv.External(["\ud800"])(x=1), "cannot be started"),
    "a command of what cannot be shown": (lambda: pv.External([Unspeakable()]), "must be a list of words"),
    "an endless timeout": (lambda: pv.External(["true"], timeout=math.inf), "timeout must be a positive number"),
    "NaN as JSON": (lambda: echo()(x=math.nan), "as JSON failed with ValueError"),
    "an infinite number as JSON": (lambda: run(echo(), pv.Choice([1.0, math.inf]), samples=50), "as JSON failed with"),
    "keys that are tuples as JSON": (lambda: echo()(x={(1, 2): 3}), "as JSON failed with TypeError: keys must be"),
    "what cannot be shown as JSON": (lambda: echo()(x=Unspeakable()), "<Unspeakable> cannot be written as JSON"),
    "deeply nested JSON": (lambda: echo()(x=nested(100_000)), "as JSON failed with RecursionError"),
    "a huge number as JSON": (lambda: echo()(x=10**5000), "as JSON failed with ValueError"),
    "an answer that is nested deeply": (lambda: echo("'[' * 99999 + ']' * 99999")(x=1), "it is nested too deeply"),
    "columns in lists": (lambda: pv.reidentification.three_risks(list(ROWS), [["a"]], "ill"), "a list of names"),
    "a column that cannot be shown": (
        lambda: pv.reidentification.three_risks(list(ROWS), [Unspeakable()], "ill"),
        "no column <Unspeakable>",
    ),
    "columns that are numbers": (
        lambda: pv.reidentification.three_risks([{1: 2, "b": 1}], ["a"], "b"),
        "there is no column 'a'; the table has 1, b",
    ),
    "bands of text": (lambda: coarse().bands(10)("abc"), "bands: a number is needed, not 'abc'"),
    "bands of None": (lambda: coarse().bands(10)(None), "bands: a number is needed, not None"),
    "bands of a column of text": (
        lambda: coarse().generalise(list(ROWS), sex=coarse().bands(2)),
        "bands: a number is needed, not 'f'",
    ),
    "bands beyond the floats": (lambda: coarse().bands(0.5)(10**400), "bands: a number is needed"),
    "cuts of text": (lambda: coarse().cuts([1, 2])("abc"), "cuts: a number is needed, not 'abc'"),
    "labels of lists": (lambda: coarse().labels({"low": [[1], 2]}), "group 'low' must be a list of values"),
    "a random year": (lambda: coarse().year(pv.Uniform(0, 1)), "a date or a text such as 1954-06-15"),
    "a variance beyond the floats": (lambda: pv.Normal(0, var=10**400), "Normal: var must be a number"),
    "a rate beyond the floats": (lambda: pv.Exponential(rate=10**400), "must be a number"),
    "masked parameters": (lambda: pv.Normal(MASKED, sd=1), "masked"),
    "a masked parameter": (lambda: pv.Normal(np.ma.masked, sd=1), "masked"),
    "masked samples": (lambda: pv.Belief.of(MASKED), "has masked cells; write array.compressed"),
    "masked pairs": (lambda: pv.Joint.from_samples(MASKED, [1, 2, 3]), "has masked cells"),
    "masked data": (lambda: pv.Empirical(MASKED), "has masked cells"),
    "a masked column": (lambda: pv.Records.from_frame({"a": MASKED}), "column 'a' has 1 missing values"),
    "a masked number to add": (lambda: pv.Uniform(0, 1) + MASKED, "has masked cells"),
    "a number of a random variable in text": (lambda: f"{pv.Uniform(0, 1):.2f}", "needs one plain value"),
    "a whole number of one in text": (lambda: f"{pv.Bernoulli(0.5):d}", "needs one plain value"),
    "an input that cannot be shown": (lambda: run(identity, Unspeakable()), "<Unspeakable>, which equals nothing"),
    "an output that cannot be shown": (lambda: run(lambda x: Unspeakable()), "<Unspeakable>, which equals nothing"),
    "a failure on what cannot be shown": (
        lambda: run(lambda x: 1 // 0, pv.Choice([Unspeakable(), Unspeakable()])),
        "on the input x = <Unspeakable>",
    ),
    "an observation that cannot be shown": (
        lambda: attack().run(pv.equals(Unspeakable())),
        "the output is a number, never <Unspeakable>",
    ),
    "a cell that cannot be shown": (lambda: pv.Records.from_frame({"a": [Unspeakable()]}), "holds <Unspeakable>"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_wrong_call_is_refused_in_words(call):
    function, words = REFUSED[call]
    with pv.limited(workers=1, progress=False), pytest.raises(pv.PrivugError) as caught:
        function()
    assert re.search(words, str(caught.value)), str(caught.value)


def test_what_cannot_be_shown_is_shown_by_its_class():
    choice = run(identity, pv.Choice([Unspeakable(), Unspeakable()]))
    assert "<Unspeakable>" in choice.summary()
    assert str(pv.Row(a=Unspeakable(), b=10**5000)) == "Row(a=<Unspeakable>, b=<int>)"
    assert "<Unspeakable>" in str(pv.sweep(lambda epsilon: released(1.0), epsilon=[Unspeakable()]))


def test_sets_of_several_kinds_are_written_as_json():
    assert echo()(x={1, "a"}) == {"x": ["a", 1]}
    assert echo()(x={3, 1, 2}) == {"x": [1, 2, 3]}


def test_what_is_out_of_place_may_be_excluded():
    for coarser, cells in ((coarse().bands(10), [None, 31, 25]), (coarse().month, [None, "1990-01-05", "1991-02-05"])):
        found = pv.Attack(coarser, {"value": pv.Choice(cells)}, "value", on_error="exclude").run()
        shares = {value: share.value for value, share in found.prediction.distribution().items()}
        assert shares == {coarser(cell): 0.5 for cell in cells[1:]}


def test_a_query_that_returns_none_is_certain_of_none():
    for engine in ("exact", "sample"):
        found = attack().run(pv.equals(1), engine=engine, samples=100).belief(lambda x: None).distribution()
        assert {value: share.value for value, share in found.items()} == {None: 1.0}


def test_a_fitted_choice_of_unknown_probabilities_can_be_asked_about():
    fitted = pv.fit(pv.Choice, ["a", "b", "b"])
    found = run(identity, fitted, samples=2_000, seed=1).posterior.distribution()
    assert 1.5 / 4 in found["a"]  # the mean of the Dirichlet distribution with Jeffreys' halves
