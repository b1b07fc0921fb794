"""The question an attack asks: program, prior and secret together, one model for each size of the tables."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privug.errors import QuestionError
from privug.model.node import Node
from privug.model.variable import RandomVariable
from privug.prior.table import Records
from privug.program import lifting
from privug.program.lifting import Lifting
from privug.program.tracing import FEWEST_CHECKS, MOST_CHECKS

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """The model for one size of each table: all in terms of random variables, possibly nested."""

    inputs: Mapping[str, Any]
    secret: Any
    output: Any
    lifting: Lifting


@dataclass
class Question:
    """A program, what the attacker knows about its inputs, and the secret."""

    program: Callable[..., Any]
    prior: Mapping[str, Any]
    secret: Any
    exclude_errors: bool = False
    _cases: dict[Sizes, Case] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._check_names()
        self._check_secret()

    @property
    def random_tables(self) -> list[str]:
        """The inputs that are tables of random size."""
        return [name for name, value in self.prior.items() if isinstance(value, Records) and not value.is_fixed]

    @property
    def size_nodes(self) -> list[Node]:
        """The nodes of the random sizes."""
        sizes = [self.prior[name].size for name in self.random_tables]
        return [size.node for size in sizes if isinstance(size, RandomVariable)]

    def case(self, sizes: Sizes = ()) -> Case:
        """Return the model for given sizes of the tables of random size."""
        if sizes not in self._cases:
            self._cases[sizes] = self._build(sizes)
        return self._cases[sizes]

    def _build(self, sizes: Sizes) -> Case:
        by_name = dict(zip(self.random_tables, sizes, strict=True))
        inputs = {
            name: value.table(by_name.get(name)) if isinstance(value, Records) else value
            for name, value in self.prior.items()
        }
        # The first size is checked in full; the program is the same for the others.
        checks = FEWEST_CHECKS if self._cases else MOST_CHECKS
        lifted = lifting.apply(self.program, *self._arranged(inputs), exclude_errors=self.exclude_errors, checks=checks)
        secret = self._function_of_inputs(self.secret, inputs, "secret")
        return Case(inputs, secret, lifted.output, lifted.lifting)

    def query(self, case: Case, function: Callable[..., Any]) -> Any:
        """Apply a function of the inputs, and of `output`, to a case."""
        return self._function_of_inputs(function, {**case.inputs, "output": case.output}, "query")

    def _function_of_inputs(self, function: Any, inputs: Mapping[str, Any], what: str) -> Any:
        if isinstance(function, str):
            return inputs[function]
        if not callable(function):
            return tuple(inputs[name] for name in function)
        arguments = [inputs[name] for name in argument_names(function, inputs, what)]
        checks = FEWEST_CHECKS if self._cases else MOST_CHECKS
        label = "the secret" if what == "secret" else "the query"
        return lifting.apply(function, arguments, exclude_errors=self.exclude_errors, checks=checks, label=label).output

    def _arranged(self, inputs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arrange the inputs as the program's positional and named arguments."""
        positional: list[Any] = []
        known = {parameter.name for parameter in _parameters(self.program) or ()}
        named: dict[str, Any] = {name: value for name, value in inputs.items() if name not in known}
        for parameter in _parameters(self.program) or ():
            if parameter.name not in inputs:
                continue
            value = inputs[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY or len(positional) < _position(self.program, parameter):
                named[parameter.name] = value
            else:
                positional.append(value)
        if _parameters(self.program) is None:
            return list(inputs.values()), {}
        return positional, named

    def _check_names(self) -> None:
        if not callable(self.program) or inspect.iscoroutinefunction(self.program):
            raise QuestionError(f"program must be an ordinary function, not {self.program!r}")
        if not isinstance(self.prior, Mapping) or not all(isinstance(name, str) for name in self.prior):
            raise QuestionError(
                "prior must be a dict from the program's parameters to what the attacker knows, "
                'such as {"records": pv.Records(...)}'
            )
        parameters = _parameters(self.program)
        if parameters is None:
            return
        names = [parameter.name for parameter in parameters]
        takes_any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        for name in self.prior:
            if name not in names and not takes_any_name:
                raise QuestionError(
                    f"prior names {name!r}, which is not a parameter of the program; it has {_listed(names)}"
                )
        for parameter in parameters:
            optional = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if parameter.default is parameter.empty and not optional and parameter.name not in self.prior:
                raise QuestionError(f"prior says nothing about the program's parameter {parameter.name!r}")

    def _check_secret(self) -> None:
        if isinstance(self.secret, str):
            wanted: Sequence[str] = [self.secret]
        elif callable(self.secret):
            wanted = argument_names(self.secret, self.prior, "secret")
        elif isinstance(self.secret, list | tuple) and self.secret and all(isinstance(s, str) for s in self.secret):
            wanted = self.secret
        else:
            raise QuestionError(
                f"secret must be a function of the inputs, the name of an input or a list of names, not {self.secret!r}"
            )
        for name in wanted:
            if name not in self.prior:
                raise QuestionError(f"secret names {name!r}, but the prior has {_listed(self.prior)}")


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _position(program: Callable[..., Any], parameter: inspect.Parameter) -> int:
    return [other.name for other in _parameters(program) or ()].index(parameter.name)


def argument_names(function: Callable[..., Any], inputs: Mapping[str, Any], what: str) -> list[str]:
    """Return the inputs a function asks for by its parameters' names; the only input may have any name."""
    parameters = [p for p in _parameters(function) or () if p.default is p.empty]
    names = [parameter.name for parameter in parameters]
    unknown = [name for name in names if name not in inputs]
    if not unknown:
        return names
    own_inputs = [name for name in inputs if name != "output"]
    if len(names) == 1 and len(own_inputs) == 1:
        return own_inputs
    raise QuestionError(f"{what} asks for {unknown[0]!r}, but there is only {_listed(inputs)}")


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
