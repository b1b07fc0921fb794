"""What to do with a result: the code that repeats it, and code that asks the same of a protected release."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from privug.arguments import represented
from privug.observation.observations import Between, Equals, Near, Noisy, Observation, SuchThat
from privug.observation.structured import Structured

LONGEST_CODE = 400


class Advice(NamedTuple):
    """A way to protect people, when it suits, and the code that measures what it does to this attack."""

    name: str
    when: str
    code: str


def what_to_try(questions: Mapping[str, float]) -> list[Advice]:
    """Return ways to protect people, each with code that runs as it stands on an attack of the name `attack`.

    `questions` are the attack's, each with how probable it is before anything is seen.
    """
    release = {
        "rounding": "pv.mechanisms.rounded(attack.question.program, to=5)",
        "noise": "pv.mechanisms.laplace(attack.question.program, sensitivity=1, epsilon=0.5)",
        "suppression": "pv.mechanisms.suppressed(attack.question.program, fewer_than=5)",
    }
    again = {name: _again(made) for name, made in release.items()}
    policy = "pv.policy.max_belief(at_most=0.9)"
    for claim, before in list(questions.items())[:1]:
        policy = f"pv.policy.belief(attack.questions[{claim!r}], at_most={(1 + before) / 2:.2g})"
    return [
        Advice("Rounding", "For numbers: coarser ones tell less about each person. It promises nothing in itself, so "
               "measure what is left.", again["rounding"]),
        Advice("Noise", "For numbers that may be a little off: differential privacy bounds what any attacker learns. "
               "The sensitivity is by how much one person can change the output.", again["noise"]),
        Advice("Suppression", "For counts and tables: cells of few people are not shown.", again["suppression"]),
        Advice("The smallest change that is enough", "State the limit, and let Privug look for the release that keeps "
               "it at the least cost.", f"policy = {policy}\nprint(pv.policy.enforce(attack, policy))"),
    ]  # fmt: skip


def _again(release: str) -> str:
    """Return code that asks the same about another release, and prints what it tells on average."""
    return f"release = {release}\nsafer = attack.replace(program=release, observe=None)\nprint(safer.run().leakage())"


def observation_code(observation: Observation | None) -> str:
    """Return an observation as one writes it; an ellipsis where there is no short way.

    >>> import privug as pv
    >>> print(observation_code(pv.near(55.3, within=0.005)), observation_code(Structured({"a": pv.equals(1)})))
    pv.near(55.3, within=0.005) {'a': pv.equals(1)}
    """
    code = _code(observation)
    return code if len(code) <= LONGEST_CODE else "..."


def _code(observation: Observation | None) -> str:
    match observation:
        case Equals(value=value, distance=None):
            return f"pv.equals({represented(value)})"
        case Near(value=value, within=within):
            return f"pv.near({value!r}, within={within!r})"
        case Between(low=low, high=high):
            return f"pv.between({low!r}, {high!r})"
        case Noisy(value=value, sd=sd):
            return f"pv.noisy({value!r}, sd={sd!r})"
        case SuchThat(predicate=predicate) if getattr(predicate, "__name__", "<lambda>").isidentifier():
            return f"pv.such_that({predicate.__name__})"
        case Structured(parts=parts, length=None):
            return "{" + ", ".join(f"{key!r}: {_code(part)}" for key, part in parts.items()) + "}"
        case Structured(parts=parts):
            return "[" + ", ".join(_code(part) for part in parts.values()) + "]"
        case None:
            return "None"
    return "..."


def run_code(observation: Observation | None, options: Mapping[str, Any]) -> str:
    """Return the call that gives the same result again."""
    seen = [] if observation is None else [f"observe={observation_code(observation)}"]
    arguments = ", ".join([*seen, *(f"{name}={value!r}" for name, value in options.items())])
    return f'result = attack.run({arguments})\nresult.save("report.html")'


def run_command(options: Mapping[str, Any]) -> str:
    """Return the command that runs all attacks of a file in the same way."""
    known = [f"--{name} {value}" for name, value in options.items() if name in ("engine", "samples", "seed", "budget")]
    return " ".join(["privug analyze FILE", *known, "-o report.html"])
