"""The traced tier: call the program once on random variables, and check the graph it built against plain calls."""

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from privug.errors import PriorError, ProgramError
from privug.model.batch import Column
from privug.model.node import Array, Node, ancestors
from privug.model.operations import SampleFailure, constant
from privug.model.plan import Plan
from privug.model.structure import Structure, flatten
from privug.model.variable import RandomVariable, path_condition, refusals
from privug.prior.choice import value_weights
from privug.program.calls import Arguments, settled
from privug.program.drawing import recorded, replayed
from privug.program.traced.calling import rewritten
from privug.program.traced.masks import without_masks

MOST_CHECKS = 32
FEWEST_CHECKS = 3
CHECKED_CELLS = 20_000  # checks times cells of an input, so that checking a huge table stays quick
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Trace:
    """What tracing gave: the output in terms of random variables, or the reason why there is none."""

    output: Any = None
    draws: tuple[tuple[RandomVariable, RandomVariable | None], ...] = ()
    """What the program drew, in order, and under which random condition."""
    obstacle: str | None = None


def trace(program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> Trace:
    """Call the program on random variables."""
    noted: list[str] = []
    draws: list[tuple[RandomVariable, RandomVariable | None]] = []
    tokens = refusals.set(noted), recorded.set(draws), path_condition.set(None)
    try:
        output = without_masks(settled(rewritten(program)(*positional, **named)))
    except PriorError:
        raise
    except Exception as error:
        what = noted[0] if noted else f"{type(error).__name__}: {error}"
        return Trace(obstacle=f"{what}{_place(program, error)}")
    finally:
        refusals.reset(tokens[0])
        recorded.reset(tokens[1])
        path_condition.reset(tokens[2])
    if noted:
        return Trace(obstacle=noted[0])
    return Trace(output, tuple(draws))


def _place(program: Callable[..., Any], error: Exception) -> str:
    code = getattr(program, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename
    ]
    return f" at line {lines[-1]}" if lines else ""


def difference_from_plain_calls(
    program: Callable[..., Any], arguments: Arguments, traced: Trace, checks: int = MOST_CHECKS
) -> str | None:
    """Compare the traced program with plain calls on random inputs; return what differs, if anything."""
    checks = max(FEWEST_CHECKS, min(checks, CHECKED_CELLS // max(1, len(arguments.leaves))))
    rng = np.random.Generator(np.random.SFC64(0))
    known = _rare_values(arguments.nodes, checks, rng)
    if known and checks == FEWEST_CHECKS:  # one look for all
        return _difference(program, arguments, traced, checks, known, rng)
    return _difference(program, arguments, traced, checks, {}, rng) or (
        _difference(program, arguments, traced, checks, known, rng) if known else None
    )


def _rare_values(nodes: Sequence[Node], checks: int, rng: np.random.Generator) -> dict[Node, Array]:
    """Return values for discrete roots that take the rare ones as often as the likely ones."""
    chosen: dict[Node, Array] = {}
    for root in ancestors(nodes):
        weights = value_weights(root)
        if weights is not None and len(weights[0]) > 1:
            possible = weights[0][weights[1] > 0]
            chosen[root] = possible[rng.integers(len(possible), size=(checks, *root.shape))]
    return chosen


def _difference(
    program: Callable[..., Any],
    arguments: Arguments,
    traced: Trace,
    checks: int,
    given: Mapping[Node, Array],
    rng: np.random.Generator,
) -> str | None:
    structure, leaves = flatten(traced.output)
    outputs = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
    draws = [draw.node for draw, _ in traced.draws]
    conditions = [constant(True) if condition is None else condition.node for _, condition in traced.draws]
    inputs = arguments.nodes
    try:
        arrays = Plan([*inputs, *draws, *conditions, *outputs], list(given)).run(checks, rng, given)
    except (SampleFailure, ProgramError) as failure:
        cause = failure.cause if isinstance(failure, SampleFailure) else failure
        return f"it fails on some inputs ({type(cause).__name__}: {cause})"
    parts = iter(arrays)
    known = [next(parts) for _ in inputs]
    values = [Column(next(parts), node.levels).decoded() for node in draws]
    made = [next(parts) for _ in conditions]
    predicted = _values(structure, leaves, list(parts), checks)
    drawn = [[column[k] for column, there in zip(values, made, strict=True) if there[k]] for k in range(checks)]
    return difference_in_calls(program, arguments.plain(known, checks), drawn, predicted)


def _values(structure: Structure, leaves: Sequence[Any], arrays: Sequence[Array], samples: int) -> list[Any]:
    return list(Arguments(structure, tuple(leaves)).plain(arrays, samples))


def difference_in_calls(
    program: Callable[..., Any], calls: Iterable[Any], drawn: Sequence[list[Any]], predicted: Sequence[Any]
) -> str | None:
    """Compare predicted outputs with plain calls, whose draws are replayed; return what differs, if anything."""
    scale = max((_magnitude(value) for value in predicted), default=0.0)
    for position, (positional, named) in enumerate(calls):
        token = replayed.set(drawn[position][::-1])
        try:
            with np.errstate(all="ignore"):
                plain = settled(program(*positional, **named))
        except Exception as error:
            return f"it fails on some inputs ({type(error).__name__}: {error})"
        finally:
            left = replayed.get()
            replayed.reset(token)
        if left:
            return "it made fewer draws in a plain call than while it was traced"
        if not _same(plain, predicted[position], scale):
            return f"a plain call gave {shortened(plain)}, the traced program {shortened(predicted[position])}"
    return None


def shortened(value: Any, limit: int = 200) -> str:
    """Return the representation of a value, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def _magnitude(value: Any) -> float:
    sizes = [0.0]
    for leaf in flatten(value)[1]:
        if isinstance(leaf, int | float | np.ndarray) and np.asarray(leaf).dtype.kind in "bif":
            finite = np.abs(np.asarray(leaf, float))
            sizes.append(float(np.max(finite[np.isfinite(finite)], initial=0.0)))
    return max(sizes)


def _same(left: Any, right: Any, scale: float) -> bool:
    """Compare two values, numbers up to rounding relative to the largest output seen."""
    left, right = _simplified(left), _simplified(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b, scale) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key], scale) for key in left)
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers or isinstance(left, Enum) or isinstance(right, Enum):
        return type(left) is type(right) and bool(left == right)
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return (math.isnan(left) and math.isnan(right)) or math.isclose(
        left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale
    )


def _simplified(value: Any) -> Any:
    """Forget container types that a program's reader would not tell apart."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else value.item()
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def evaluate_on(outputs: Sequence[Node], known: Mapping[Node, Array], samples: int) -> list[Array]:
    """Evaluate nodes that depend only on quantities whose values are known."""
    return Plan(outputs, list(known)).run(samples, np.random.Generator(np.random.SFC64(0)), known)
