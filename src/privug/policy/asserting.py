"""Policies in tests: an assertion that fails with what speaks against it."""

from collections.abc import Callable
from typing import Any

from privug.attack import Attack
from privug.policy.checks import Check, Outcome
from privug.policy.policies import Policy
from privug.policy.verdict import Verdict

listeners: list[Callable[[Outcome], None]] = []
"""Who is told of every assertion, whether it holds or not: reports of test runs."""


def assert_private(
    attack: Attack,
    policy: Policy,
    *,
    observe: Any = None,
    engine: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    except_probability: float = 0.0,
    name: str = "",
    allow_undecided: bool = False,
    secrets: bool = True,
) -> Verdict:
    """Raise an AssertionError unless a policy holds; its message is the verdict with the worst outputs.

    What is undecided fails, too, unless `allow_undecided`. `secrets=False` leaves the outputs out of the message. The
    other options are those of `pv.policy.check`.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x > 1, {"x": pv.DiscreteUniform(0, 3)}, "x")
    >>> assert_private(attack, pv.policy.max_belief(at_most=0.5)).holds
    True
    """
    __tracebackhide__ = True  # pytest shows the line of the test, which is what failed
    check = Check(attack, policy, observe, name, except_probability, engine, samples, seconds)
    outcome = Outcome(check, check.run(seed=seed))
    for listener in listeners:
        listener(outcome)
    verdict = outcome.verdict
    if not verdict.holds and not (verdict.undecided and allow_undecided):
        raise AssertionError("\n".join([f"{outcome.name}: {verdict.status}", *verdict.lines(secrets=secrets)]))
    return verdict
