"""What lifting means: a small language, and two ways to run its programs on a distribution of inputs.

A program is a term. `as_a_whole` computes the term on each possible input and adds up the probabilities of equal
outputs. `part_by_part` turns every construct of the term into `unit` and `bind`. Both give the same distribution.
Probabilities are fractions, so "the same" means equal. docs/explanation/semantics.md explains this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Generic, TypeAlias, TypeVar, assert_never

A = TypeVar("A")
B = TypeVar("B")
Outcome = TypeVar("Outcome", covariant=True)
Part = TypeVar("Part", covariant=True)


@dataclass(frozen=True)
class Distribution(Generic[Outcome]):
    """Finitely many outcomes, each with its probability."""

    probabilities: Mapping[Outcome, Fraction]

    def __post_init__(self) -> None:
        shares = self.probabilities.values()
        if sum(shares) != 1 or min(shares) <= 0:
            raise ValueError("the probabilities must be positive fractions that sum to one")

    def probability(self, holds: Callable[[Outcome], bool]) -> Fraction:
        """Return the probability that the outcome satisfies a predicate."""
        return sum((share for outcome, share in self.probabilities.items() if holds(outcome)), Fraction(0))


def uniform(outcomes: Iterable[A]) -> Distribution[A]:
    """Return the distribution of an outcome picked at random from a list."""
    counts = Counter(outcomes)
    return Distribution({outcome: Fraction(count, counts.total()) for outcome, count in counts.items()})


def unit(value: A) -> Distribution[A]:
    """Return the distribution that is certain of one value."""
    return Distribution({value: Fraction(1)})


def bind(distribution: Distribution[A], kernel: Callable[[A], Distribution[B]]) -> Distribution[B]:
    """Draw a value, then draw from the distribution that the kernel gives for it; forget the value."""
    totals: dict[B, Fraction] = {}
    for value, weight in distribution.probabilities.items():
        for outcome, share in kernel(value).probabilities.items():
            totals[outcome] = totals.get(outcome, Fraction(0)) + weight * share
    return Distribution(totals)


def lift(function: Callable[[A], B]) -> Callable[[Distribution[A]], Distribution[B]]:
    """Turn a function on values into a function on distributions."""
    return lambda distribution: bind(distribution, lambda value: unit(function(value)))


@dataclass(frozen=True)
class Variable:
    """A name: the value it stands for comes from an abstraction around it or from the environment."""

    name: str


@dataclass(frozen=True)
class Abstraction:
    """A function of one parameter."""

    name: str
    body: Term


@dataclass(frozen=True)
class Application:
    """A function and what it is applied to."""

    function: Term
    argument: Term


@dataclass(frozen=True)
class Construct(Generic[Part]):
    """A constructor and its parts, such as `Pair[x, y]`. If the parts are values, so is the whole."""

    constructor: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Case:
    """A function that looks at its argument.

    Built by the constructor, the argument is taken apart and `matched` applied to its parts; else the answer is
    `otherwise`, which does not see the argument.
    """

    constructor: str
    matched: Term
    otherwise: Term


Term: TypeAlias = "Variable | Abstraction | Application | Construct[Term] | Case"
Datum: TypeAlias = "Construct[Datum]"  # a term, and a value, without functions inside
Environment: TypeAlias = tuple[tuple[str, Datum], ...]


class Stuck(Exception):
    """A term that is no value and cannot go on: a name without a value, or something applied that is no function."""


def function(*names: str, body: Term) -> Term:
    """Write a function of several parameters: it takes them one after the other."""
    return reduce(lambda inner, name: Abstraction(name, inner), reversed(names), body)


def apply(operator: Term, *arguments: Term) -> Term:
    """Write the application to several arguments."""
    return reduce(Application, arguments, operator)


# First semantics: a term computes one value for each environment.


def substitute(term: Term, name: str, value: Term) -> Term:
    """Put a closed value in for a name; closed, so that no abstraction on the way can capture anything."""
    match term:
        case Variable(other):
            return value if other == name else term
        case Abstraction(other, body):
            return term if other == name else Abstraction(other, substitute(body, name, value))
        case Application(operator, argument):
            return Application(substitute(operator, name, value), substitute(argument, name, value))
        case Construct(constructor, parts):
            return Construct(constructor, tuple(substitute(part, name, value) for part in parts))
        case Case(constructor, matched, otherwise):
            return Case(constructor, substitute(matched, name, value), substitute(otherwise, name, value))
        case _:
            assert_never(term)


def step(term: Term) -> Term | None:
    """Return a closed term after one step of computation; None if it is a value already."""
    match term:
        case Abstraction() | Case():
            return None
        case Construct(constructor, parts):
            for place, part in enumerate(parts):
                if (after := step(part)) is not None:
                    return Construct(constructor, (*parts[:place], after, *parts[place + 1 :]))
            return None
        case Application(operator, argument):
            if (after := step(operator)) is not None:
                return Application(after, argument)
            if (after := step(argument)) is not None:
                return Application(operator, after)
            return contract(operator, argument)
        case Variable(name):
            raise Stuck(f"{name} has no value")
        case _:
            assert_never(term)


def contract(operator: Term, argument: Term) -> Term:
    """Carry out the application of one value to another."""
    match operator:
        case Abstraction(name, body):
            return substitute(body, name, argument)
        case Case(constructor, matched, otherwise):
            match argument:
                case Construct(found, parts) if found == constructor:
                    return apply(matched, *parts)
                case _:
                    return otherwise
        case Construct() | Variable() | Application():
            raise Stuck(f"{operator} is not a function")
        case _:
            assert_never(operator)


def compute(term: Term, environment: Environment) -> Term:
    """Run a term to its value: first every free name gets its value, then step follows step."""
    for name, value in environment:
        term = substitute(term, name, value)
    while (after := step(term)) is not None:
        term = after
    return term


def as_a_whole(term: Term, prior: Distribution[Environment]) -> Distribution[Term]:
    """Lift the computation of the term: the program is a black box that maps environments to values."""
    return lift(partial(compute, term))(prior)


# Second semantics: a term is a distribution, made of the distributions of its parts.

Value: TypeAlias = "Construct[Value] | Callable[[Value], Distribution[Value]]"


def embed(term: Term, environment: Mapping[str, Distribution[Value]]) -> Distribution[Value]:
    """Translate each construct into the monad; a function takes a value and gives a distribution."""
    match term:
        case Variable(name):
            if name not in environment:
                raise Stuck(f"{name} has no value")
            return environment[name]
        case Abstraction(name, body):
            return unit(lambda value: embed(body, {**environment, name: unit(value)}))
        case Application(operator, argument):
            return bind(
                embed(operator, environment),
                lambda called: bind(embed(argument, environment), lambda value: call(called, value)),
            )
        case Construct(constructor, parts):
            values = in_order([embed(part, environment) for part in parts])
            return bind(values, lambda drawn: unit(Construct(constructor, drawn)))
        case Case():
            return unit(lambda value: embed_case(term, value, environment))
        case _:
            assert_never(term)


def embed_case(term: Case, value: Value, environment: Mapping[str, Distribution[Value]]) -> Distribution[Value]:
    """Apply a case to a value: where it matches, hand over the parts one after the other."""
    if not isinstance(value, Construct) or value.constructor != term.constructor:
        return embed(term.otherwise, environment)
    start = embed(term.matched, environment)
    return reduce(lambda so_far, part: bind(so_far, lambda called: call(called, part)), value.parts, start)


def call(operator: Value, value: Value) -> Distribution[Value]:
    """Call what must be a function."""
    if isinstance(operator, Construct):
        raise Stuck(f"{operator} is not a function")
    return operator(value)


def in_order(distributions: Iterable[Distribution[A]]) -> Distribution[tuple[A, ...]]:
    """Draw from each distribution, first to last, and keep all that was drawn."""
    so_far: Distribution[tuple[A, ...]] = unit(())
    for distribution in distributions:
        so_far = bind(so_far, partial(_extended, distribution))
    return so_far


def _extended(distribution: Distribution[A], drawn: tuple[A, ...]) -> Distribution[tuple[A, ...]]:
    return bind(distribution, lambda value: unit((*drawn, value)))


def part_by_part(term: Term, prior: Distribution[Environment]) -> Distribution[Value]:
    """Draw the environment once, so that each name has one value, and embed the term in it."""
    return bind(prior, lambda environment: embed(term, {name: unit(value) for name, value in environment}))


# The mean of two numbers, from nothing but the five constructs.


def numeral(count: int) -> Datum:
    """Write a natural number: `Zero[]`, or `Next` of the one before."""
    return Construct("Next", (numeral(count - 1),)) if count else Construct("Zero")


def number(value: object) -> Fraction:
    """Read a numeral, or a ratio of two."""
    match value:
        case Construct("Zero", ()):
            return Fraction(0)
        case Construct("Next", (before,)):
            return number(before) + 1
        case Construct("Ratio", (above, below)):
            return number(above) / number(below)
        case _:
            raise ValueError(f"{value} is not a number")


f, m, n, again, x, y = map(Variable, ("f", "m", "n", "again", "x", "y"))
LOOP = function("x", body=Application(f, function("n", body=apply(x, x, n))))
RECURSION = function("f", body=Application(LOOP, LOOP))
SUCCESSOR_OF_THE_REST = function("m", body=Construct("Next", (apply(again, m, n),)))
ADDITION = function("again", "m", "n", body=Application(Case("Next", SUCCESSOR_OF_THE_REST, n), m))
ADD = Application(RECURSION, ADDITION)
MEAN = function("x", "y", body=Construct("Ratio", (apply(ADD, x, y), numeral(2))))
TWO_NUMBERS = uniform((("x", numeral(a)), ("y", numeral(b))) for a in range(3) for b in range(3))


if __name__ == "__main__":
    whole = lift(number)(as_a_whole(apply(MEAN, x, y), TWO_NUMBERS))
    parts = lift(number)(part_by_part(apply(MEAN, x, y), TWO_NUMBERS))
    print("(x + y) / 2 with x and y uniform on 0, 1, 2\n\noutput  as a whole  part by part")
    for output in sorted(whole.probabilities):
        print(f"{output!s:6}  {whole.probabilities[output]!s:10}  {parts.probabilities[output]}")
