"""Checks as values: a policy together with the attack that it is about."""

import functools
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privug.arguments import check_kind
from privug.attack import Attack
from privug.observation.observations import as_observation
from privug.policy.checking import check
from privug.policy.clause_questions import SAMPLES, ExceptProbability
from privug.policy.policies import Policy
from privug.policy.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Check:
    """A policy, the attack that it is about, and how to check it; `privug check FILE` runs those of a file.

    `observe` and `except_probability` are those of `pv.policy.check`. `engine`, `samples` and `seconds` hold for this
    check where whoever runs it does not say otherwise. `policy_name` and `attack_name` are for reports.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> check = pv.policy.Check(attack, pv.policy.max_belief(at_most=0.8), name="nobody is sure")
    >>> check.run().status.value
    'violated'
    """

    attack: Attack
    policy: Policy
    observe: Any = None
    name: str = ""
    except_probability: float = 0.0
    engine: str | None = None
    samples: int | None = None
    seconds: float | None = None
    policy_name: str = ""
    attack_name: str = ""

    def __post_init__(self) -> None:
        check_kind("Check", "attack", self.attack, (Attack,))
        check_kind("Check", "policy", self.policy, (Policy,))
        for name in ("name", "policy_name", "attack_name"):
            check_kind("Check", name, getattr(self, name), (str,))
        if self.observe is not None:
            object.__setattr__(self, "observe", as_observation(self.observe))
        check_kind("Check", "except_probability", self.except_probability, (ExceptProbability,))

    def run(
        self, *, engine: str | None = None, samples: int | None = None, seed: int = 0, seconds: float | None = None
    ) -> Verdict:
        """Check the policy; options given here come before those of the check itself."""
        return check(
            self.attack,
            self.policy,
            observe=self.observe,
            engine=engine or self.engine or "auto",
            samples=samples or self.samples or SAMPLES,
            seed=seed,
            seconds=self.seconds if seconds is None else seconds,
            except_probability=self.except_probability,
        )

    @property
    def place(self) -> tuple[Path, int] | None:
        """The file and the line where the program begins; None if it is not written in Python."""
        program = self.attack.question.program
        while isinstance(program, functools.partial):
            program = program.func
        code = getattr(inspect.unwrap(program), "__code__", None)
        if code is None or not Path(code.co_filename).is_file():
            return None
        return Path(code.co_filename), code.co_firstlineno


@dataclass(frozen=True)
class Outcome:
    """A check, what was found and how long that took.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> report = pv.policy.check_all([pv.policy.Check(attack, pv.policy.max_belief(at_most=0.8), name="limit")])
    >>> report.outcomes[0].name, report.outcomes[0].verdict.status.value
    ('limit', 'violated')
    """

    check: Check
    verdict: Verdict
    took: float = 0.0

    @property
    def name(self) -> str:
        """The name of the check, or else of its attack."""
        return self.check.name or self.check.attack.name


def checks_of(names: Mapping[str, Any]) -> list[Check]:
    """Return the checks among the names of a module: its `Check`s, or else each `Policy` with each `Attack`.

    A list or tuple of checks counts, too. A check without a name of its own takes the name that it is bound to.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> names = {"count": attack, "limit": pv.policy.max_belief(at_most=0.8)}
    >>> [check.name for check in pv.policy.checks_of(names)]
    ['count/limit']
    """
    public = {name: value for name, value in names.items() if not name.startswith("__")}
    found = [check for name, value in public.items() for check in _checks_under(name, value)]
    if found:
        return found
    attacks = {name: value for name, value in public.items() if isinstance(value, Attack)}
    policies = {name: value for name, value in public.items() if isinstance(value, Policy)}
    return [paired(a, attack, p, policy) for p, policy in policies.items() for a, attack in attacks.items()]


def paired(attack_name: str, attack: Attack, policy_name: str, policy: Policy, **options: Any) -> Check:
    """Return the check of a policy about an attack, named after both."""
    name = f"{attack_name}/{policy_name}"
    return Check(attack, policy, name=name, policy_name=policy_name, attack_name=attack_name, **options)


def _checks_under(name: str, value: Any) -> Iterator[Check]:
    if isinstance(value, Check):
        yield value if value.name else replace(value, name=name)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value, 1):
            if isinstance(one, Check):
                yield one if one.name else replace(one, name=f"{name}[{number}]")
