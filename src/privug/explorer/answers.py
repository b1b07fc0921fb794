"""What the page shows at a position, as plain values: beliefs, questions, leakage, joint, policies and utility."""

import contextlib
import inspect
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.attack import Attack, Result
from privug.digits import number_text
from privug.errors import PrivugError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.explorer.parameters import Parameter, Variations, protected
from privug.inference.belief import Belief
from privug.leakage.information import mutual_information
from privug.mechanisms.mechanism import Mechanism
from privug.model.node import Array, Kind
from privug.policy.declared_checks import Check
from privug.policy.verdict import Verdict
from privug.report.shapes import JointSide, cells_of, is_truth, shape_of, shown_range
from privug.report.summary import claims_of, comparisons, parts_of, sentences_of, shown_text
from privug.report.text import measure_title
from privug.studies.sweep import expected_error

Plain = dict[str, Any]
INTERVAL = 0.9
MOST_CATEGORIES = 24
MOST_PARTS = 6
MOST_POINTS = 300  # of a line
TRADEOFF_POINTS = 9
ROUGH_SAMPLES = (100, 1_000)
ROUGH_SECONDS = 0.25
"""Most time for the first of the rough answers."""


def number(estimate: Estimate) -> Plain:
    """Return an estimate as plain values, with the text that a report shows."""
    unit = f" {estimate.unit}" if estimate.unit else ""
    return {
        **estimate.to_dict(),
        "text": f"{estimate.number()}{unit}",
        "how": "exact" if estimate.exact else estimate.method,
    }


def answer(result: Result, seconds: float) -> Plain:
    """Return what a result says about the secret: sentences, questions, beliefs, and how it was obtained."""
    after = None if result.observation is None else result.posterior
    claims = claims_of(result)
    names = result.attack.question.secret
    lines = comparisons(result.prior, after, names if isinstance(names, list | tuple) else ())
    return {
        "sentences": [inert(sentence) for sentence in sentences_of(result, claims)],
        "questions": [
            {"claim": inert(claim), "before": number(old), "after": None if new is None else number(new)}
            for claim, old, new in claims
        ],
        "changes": [
            [inert(line.label), *(shown_text(one) for one in (line.before, line.after) if one is not None)]
            for line in lines
        ],
        "beliefs": list(_beliefs(result.prior, after, names)),
        "seen": "" if result.observation is None else inert(str(result.observation)),
        "evidence": None if result.diagnostics.evidence is None else number(result.diagnostics.evidence),
        "engine": result.engine,
        "exact": result.posterior.exact,
        "program": result.lifting.tier,
        "notes": [inert(remark) for remark in result.diagnostics.remarks],
        "seconds": seconds,
    }


def _beliefs(before: Belief, after: Belief | None, names: Any) -> Iterator[Plain]:
    """Yield the pictures of what is believed, one for each part of a structured secret."""
    known = names if isinstance(names, list | tuple) else ()
    parts = parts_of(before, known)
    if len(parts) < 2:
        yield _picture(before.quantity or "secret", before, after)
        return
    others = [None] * len(parts) if after is None else [part for _, part in parts_of(after, known)]
    for (name, old), new in list(zip(parts, others, strict=True))[:MOST_PARTS]:
        yield _picture(name, old, new)


def _picture(name: str, before: Belief, after: Belief | None) -> Plain:
    held = [before] if after is None else [before, after]
    if any(belief.batch.numbers() is None or is_truth(belief) or _is_yes_or_no(belief) for belief in held):
        listed, more = _categories(held)
        return {"name": inert(name), "categories": listed, "more": more}
    low, high = shown_range(held)
    lines = [_line(belief, low, high) for belief in held]
    return {"name": inert(name), "low": low, "high": high, "lines": lines}


def _is_yes_or_no(belief: Belief) -> bool:
    numbers = belief.batch.numbers()
    return belief.kind is Kind.DISCRETE and numbers is not None and bool(np.isin(numbers, (0, 1)).all())


def _line(belief: Belief, low: float, high: float) -> Plain:
    shape = shape_of(belief, low, high)
    step = max(1, len(shape.xs) // MOST_POINTS)
    inside = (shape.atoms >= low) & (shape.atoms <= high)
    ends = [float(end) for end in belief.interval(INTERVAL)]
    return {
        "x": _digits(shape.xs[::step]),
        "density": _digits(shape.heights[::step]),
        "atoms": _digits(shape.atoms[inside]),
        "masses": _digits(shape.masses[inside]),
        "interval": ends,
        "exact": belief.exact,
    }


def _digits(numbers: Array) -> list[float | None]:
    """Return numbers to a few digits, as a picture shows them; what is not finite is left out of the line."""
    return [float(f"{one:.6g}") if math.isfinite(one) else None for one in np.asarray(numbers, float)]


def _categories(held: Sequence[Belief]) -> tuple[list[Plain], int]:
    """Return the likeliest values with their probabilities, and how many others there are."""
    tables = [belief.distribution() for belief in held]
    listed = dict.fromkeys(value for table in tables for value in table)
    likeliest = sorted(
        listed, key=lambda value: -max(table[value].value if value in table else 0.0 for table in tables)
    )
    zero = Estimate.exactly(0.0)
    shown = [
        {"value": inert(str(value)), "shares": [number(table.get(value, zero)) for table in tables]}
        for value in likeliest[:MOST_CATEGORIES]
    ]
    return shown, len(likeliest) - len(shown)


def leakage(result: Result) -> Plain:
    """Return the leakage table and the joint in cells, secrets up and outputs across."""
    started = time.perf_counter()
    table = result.leakage()
    rows = [
        {"measure": inert(measure_title(row)), "meaning": inert(row.meaning), **number(row.estimate)} for row in table
    ]
    seconds = time.perf_counter() - started
    found: Plain = {"leakage": rows, "leakage_seconds": seconds, "warning": inert(table.warning or "")}
    try:
        across, up, shares = cells_of(result.joint)
    except PrivugError as error:
        return {**found, "joint": None, "why": one_line(error)}
    output, secret = result.joint.output, result.joint.secret
    joint = {
        "outputs": _side(across, output),
        "secrets": _side(up, secret),
        "shares": [_digits(row) for row in shares],
        "exact": secret.exact,
        "samples": 0 if secret.exact else len(secret.batch),
        "output": inert(output.quantity or "output"),
        "secret": inert(secret.quantity or "secret"),
    }
    return {**found, "joint": joint}


def _side(side: JointSide, belief: Belief) -> Plain:
    """Return the cells of one side: their labels, and what each holds, a value or a range."""
    if not side.numeric:
        labels = [inert(str(one)) for one in side.values]
        return {"labels": labels, "cells": labels}
    labels = [number_text(one) for one in side.values]
    numbers = belief.batch.numbers()
    if belief.kind is Kind.DISCRETE and numbers is not None and len(np.unique(numbers)) <= len(labels):
        return {"labels": labels, "cells": labels}
    ends = [number_text(one) for one in np.asarray(side.edges).tolist()]
    return {"labels": labels, "cells": [f"{low} to {high}" for low, high in itertools.pairwise(ends)]}


def verdict(check: Check, found: Verdict, seconds: float) -> Plain:
    """Return what a check of a policy found, with the worst output."""
    worst = found.evidence[0] if found.evidence else None
    return {
        "name": inert(check.policy_name or check.name),
        "status": str(found.status),
        "sentence": inert(found.sentence().removeprefix(f"{found.status}: ")),
        "seconds": seconds,
        "worst": None if worst is None else {"output": inert(_output_text(worst.output)), **number(worst.level)},
    }


def _output_text(output: Any) -> str:
    return number_text(output) if isinstance(output, float) else str(output)


def tradeoff(attack: Attack, moved: Parameter, run: Callable[[Attack], Result], noiseless: Any) -> Iterator[Plain]:
    """Yield privacy and utility at some values of a parameter: mutual information and expected error."""
    variations = Variations(attack)
    values = spaced(moved)
    present = values.index(moved.value)
    for value in sorted(values, key=lambda one: abs(values.index(one) - present)):  # what is near comes first
        try:
            result = run(variations.at({moved.name: value}))
            leak, error = mutual_information(result.joint), expected_error(result, noiseless)
        except PrivugError:  # some values are of no use: a clamp whose ends change places
            continue
        yield {"parameter": value, "leak": number(leak), "error": number(error)}


def spaced(moved: Parameter) -> list[float]:
    """Return some values of a parameter, spread over its scale, its own among them."""
    ends = moved.low, moved.high
    values = np.geomspace(*ends, TRADEOFF_POINTS) if moved.scale == "log" else np.linspace(*ends, TRADEOFF_POINTS)
    plain = {round(one) if moved.integer else float(f"{one:.6g}") for one in values.tolist()}
    return sorted(plain | {moved.value})


def protection(attack: Attack, known: Mapping[str, Parameter]) -> tuple[Parameter, Any] | None:
    """Return the parameter of a mechanism that trades privacy for utility, and the program without protection.

    `known` are the page's parameters: the ends of the same one, or of one that was declared with this value, are taken.
    """
    program: Any = attack.question.program
    if not isinstance(program, Mechanism):
        return None
    found = [one for one in Variations(attack).parameters.values() if one.group == "mechanism"]
    preferred = sorted(found, key=lambda one: not one.name.endswith((": epsilon", ": rho", ": sd")))
    while isinstance(program, Mechanism):
        program = protected(program)
    if not preferred or not _is_called_alike(program, attack.question.program):
        return None
    best = preferred[0]
    same = [known[best.name]] if best.name in known else [one for one in known.values() if one.value == best.value]
    return replace(best, low=same[0].low, high=same[0].high, scale=same[0].scale) if same else best, program


def _is_called_alike(noiseless: Any, program: Any) -> bool:
    """Say whether outputs can be compared: a function that scores candidates is none that is protected."""
    try:
        return callable(noiseless) and inspect.signature(noiseless) == inspect.signature(program)
    except (TypeError, ValueError):
        return False


def one_line(error: BaseException) -> str:
    """Return an error in one line."""
    said = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    told = isinstance(error, PrivugError)
    return inert(said if told and said else f"{type(error).__name__}: {said}" if said else type(error).__name__)


def rough(attack: Attack, options: Mapping[str, Any]) -> Iterator[Plain]:
    """Yield answers from a few samples and from more, for as long as the other is not there."""
    for samples, seconds in zip(ROUGH_SAMPLES, (ROUGH_SECONDS, options["seconds"]), strict=True):
        started = time.perf_counter()
        with contextlib.suppress(PrivugError):  # too few, in so little time
            result = attack.run(engine="sample", samples=samples, seed=options.get("seed", 0), seconds=seconds)
            yield {"rough": answer(result, time.perf_counter() - started)}


def stages(
    attack: Attack, checks: Sequence[Check], options: Mapping[str, Any], known: Mapping[str, Parameter]
) -> Iterator[Plain]:
    """Yield what there is to see at a position, what comes soonest first."""
    started = time.perf_counter()

    def run(one: Attack) -> Result:
        return one.run(**options)

    result = run(attack)
    yield {"answer": answer(result, time.perf_counter() - started)}
    yield leakage(result)
    found = []
    for check in checks:
        began = time.perf_counter()
        judged = check.run(seconds=options.get("seconds"))
        found.append(verdict(check, judged, time.perf_counter() - began))
    yield {"policies": found}
    traded = protection(attack, known)
    if traded is None:
        return
    moved, noiseless = traded
    points: list[Plain] = []
    began = time.perf_counter()
    for point in tradeoff(attack, moved, run, noiseless):
        points = sorted([*points, point], key=lambda one: one["parameter"])
        seconds = time.perf_counter() - began
        yield {"tradeoff": {"parameter": moved.name, "at": moved.value, "points": points, "seconds": seconds}}
        if seconds > options.get("seconds", math.inf) / 2:  # the points that are there have to do
            return
