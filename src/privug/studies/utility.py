"""What protection costs: how far the protected outputs are from those of the program without protection."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privug.arguments import check_kind, kinds_checked, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.leakage.divergence import kl_divergence
from privug.model.batch import Batch
from privug.model.variable import RandomVariable
from privug.program.logic import where


@kinds_checked
def expected_error(result: Result, noiseless: Callable[..., Any], *, samples: int = 10_000, seed: int = 0) -> Estimate:
    """Expected error: by how much the output differs from that of the program without protection, on average.

    E|output - noiseless output| over the inputs that the attacker holds for possible and the noise, before any
    observation; in the unit of the output, from 0 on. Of an output of several parts (a tuple, a dict) it is the mean of
    their errors, and of a label the probability that it differs. Exact where the difference is; on samples unbiased.

    >>> import privug as pv
    >>> noisy = pv.Attack(lambda x: x + pv.sample(pv.Laplace(0, 2)), prior={"x": pv.Uniform(0, 100)}, secret="x")
    >>> round(float(expected_error(noisy.run(), lambda x: x)), 9)
    2.0
    """
    check_kind("expected_error", "result", result, (Result,))
    difference = _difference(result.attack.question.program, noiseless)
    belief = _on(result, difference).run(samples=samples, seed=seed).prediction
    numbers = belief.batch.numbers()
    if numbers is None:
        raise ArgumentError("expected_error: the outputs must be numbers or labels, or tuples or dicts of such")
    if belief.curve is not None:
        error = belief.curve.expectation(np.abs, (0.0,))
        width = belief.error * float(np.abs(numbers).max())
        return Estimate(error, max(0.0, error - width), error + width, method=belief.method, exact=True)
    absolute = Belief(Batch.of_values(np.abs(numbers)), belief.weights, belief.exact, error=belief.error)
    return absolute.mean()


@kinds_checked
def output_divergence(
    result: Result, noiseless: Callable[..., Any], *, samples: int = 10_000, seed: int = 0
) -> Estimate:
    """Output divergence: the information lost when the protected output is used in place of the other.

    D(noiseless output || output) = sum q(o) log2(q(o) / p(o)), or the integral over densities, in bits from 0 on,
    before any observation. In this direction, because noise reaches outputs that are impossible without it: the other
    way it is infinite. It is infinite this way too where protection rules out outputs, as rounding does; the method
    then says why, and `expected_error` is the number to look at. Exact where both outputs are. On samples it errs as
    `pv.leakage.kl_divergence` does. Burnham and Anderson, Model Selection and Multimodel Inference, page 51.

    >>> import privug as pv
    >>> noisy = pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=3)), prior={"x": pv.Normal(0, sd=4)}, secret="x")
    >>> print(output_divergence(noisy.run(), lambda x: x))
    0.0622 bit (exact)
    """
    check_kind("output_divergence", "result", result, (Result,))
    plain = _on(result, noiseless).run(samples=samples, seed=seed)
    return kl_divergence(plain.prediction, result.prediction)


def _on(result: Result, program: Callable[..., Any]) -> Attack:
    """Return the attack of a result on another program, whose output is asked for and nothing else."""
    return result.attack.replace(program=program, observe=None, questions=None)


def _difference(program: Callable[..., Any], noiseless: Callable[..., Any]) -> Callable[..., Any]:
    """Return the program that computes by how much two programs differ on the same inputs."""
    if not callable(noiseless):
        raise ArgumentError(f"utility: the program without protection must be a function, not {shown(noiseless)}")

    def difference(*arguments: Any, **named: Any) -> Any:
        return _distance(program(*arguments, **named), noiseless(*arguments, **named))

    difference.__signature__ = inspect.signature(program)  # type: ignore[attr-defined]
    return difference


def _distance(output: Any, other: Any) -> Any:
    """Return by how much an output differs from another one; for single numbers with its sign."""
    if isinstance(output, Mapping):
        output, other = list(output.values()), [other[name] for name in output]
    if isinstance(output, list | tuple):
        parts = [abs(_distance(one, counterpart)) for one, counterpart in zip(output, other, strict=True)]
        return sum(parts) / len(parts)
    is_label = isinstance(output, str) or (isinstance(output, RandomVariable) and output.node.levels is not None)
    return where(output == other, 0, 1) if is_label else output - other
