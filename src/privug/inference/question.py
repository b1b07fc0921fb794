"""The question an attack asks: program, prior and secret together, one model for each size of the tables."""

import functools
import inspect
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from privug import settings
from privug.arguments import shown
from privug.errors import ObservationError, QuestionError
from privug.estimate import Estimate
from privug.model.critical import critical_section
from privug.model.framed import rows_of
from privug.model.garbage import without_garbage_collection
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.operations import Index, constant
from privug.model.pickling import Portable
from privug.model.plan import Plan
from privug.model.plated_table import PlatedTable
from privug.model.structure import flatten, random_leaves, spelled_out
from privug.model.variable import RandomVariable
from privug.observation.likelihood import Likelihood
from privug.observation.observations import Observation, all_of, judged
from privug.prior.family import Draw
from privug.prior.given import check_prior
from privug.prior.table import Records, as_input, drawn_anew
from privug.program import lifting
from privug.program.forms import in_their_forms
from privug.program.lifting import Lifting
from privug.program.origins import lines_of
from privug.program.staged import Staged
from privug.program.tracing import FEWEST_CHECKS, MOST_CHECKS

Sizes = tuple[int, ...]

LABELS = {"secret": "the secret", "assume": "what is assumed"}


@dataclass(frozen=True)
class Case:
    """The model for one size of each table: all in terms of random variables, possibly nested."""

    inputs: Mapping[str, Any]
    secret: Any
    output: Any
    lifting: Lifting
    facts: tuple[RandomVariable, ...] = ()
    """Whether each of the facts holds that the attacker assumes, as far as that is uncertain."""

    def likelihood(self, observation: Observation | None) -> Likelihood:
        """Return what the facts and an observation say together about each sample."""
        seen = Likelihood() if observation is None else observation.likelihood(self.output)
        return self.likelihood_of_facts() & seen

    def likelihood_of_facts(self) -> Likelihood:
        """Return what the facts say about each sample: they hold or not."""
        return Likelihood(conditions=tuple(fact.node for fact in self.facts))


@dataclass
class Question(Portable):
    """A program, what the attacker knows about its inputs, and the secret."""

    program: Callable[..., Any]
    prior: Mapping[str, Any]
    secret: Any
    exclude_errors: bool = False
    facts: tuple[Callable[..., Any], ...] = ()
    """What the attacker knows that ties inputs together: predicates on them, part of the prior."""
    _cases: dict[tuple[Sizes, bool], Case] = field(default_factory=dict, repr=False)
    probability_of_facts: Estimate | None = None
    """How likely the facts are before they are assumed, once that has been found out."""

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = {"_cases": dict}

    def __post_init__(self) -> None:
        self._check_names()
        self.prior = in_their_forms(self.program, (), self.prior)[1]
        self._check_secret()
        for fact in self.facts:
            argument_names(fact, self.prior, "assume")

    @property
    def random_tables(self) -> list[str]:
        """The inputs that are tables of random size."""
        return [name for name, value in self.prior.items() if isinstance(value, Records) and not value.is_fixed]

    @property
    def size_nodes(self) -> list[Node]:
        """The nodes of the random sizes."""
        sizes = [self.prior[name].size for name in self.random_tables]
        return [size.node for size in sizes if isinstance(size, RandomVariable)]

    @cached_property
    def drawn_sizes(self) -> Array:
        """Some sizes of each of the tables of random size, drawn from the prior."""
        return np.array(Plan(self.size_nodes).run(101, np.random.Generator(np.random.SFC64(0))))

    @cached_property
    def typical_sizes(self) -> Sizes:
        """Sizes of the tables of random size that lie in the middle."""
        return tuple(int(np.sort(array)[50]) for array in self.drawn_sizes)

    def secret_at(self, sizes: Sizes) -> Any:
        """Return the secret for given sizes of the tables of random size, without a look at the program."""
        inputs = self._inputs(dict(zip(self.random_tables, sizes, strict=True)), Records.plated)
        return self._function_of_inputs(self.secret, inputs, "secret")

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model for given sizes of the tables of random size.

        `samples` is how many are wanted of all sizes: where it pays for so many, the program is compiled.
        """
        native = settings.current().native
        return self._case(sizes, self._pays_for(samples) if native == "auto" else native)

    def _case(self, sizes: Sizes, native: bool) -> Case:
        with critical_section():  # threads that ask the same question share its model
            if (sizes, native) not in self._cases:
                self._cases[sizes, native] = self._build(sizes, native)
            return self._cases[sizes, native]

    def lifting(self, samples: int = 0) -> Lifting:
        """Say how the program is lifted for so many samples; with tables of random size, at typical sizes."""
        how = self.case(self.typical_sizes, samples).lifting
        if how.tier != "python" or how.not_compiled is not None or not samples:
            return how
        if settings.current().native is False:
            return replace(how, not_compiled="pv.configure(native=False) forbids it")
        worth = self._worth_compiling
        return replace(how, not_compiled=worth if isinstance(worth, str) else f"that pays from {worth:,} samples on")

    def _pays_for(self, samples: int) -> bool:
        worth = self._worth_compiling if samples else ""
        return not isinstance(worth, str) and samples >= worth

    @cached_property
    def _worth_compiling(self) -> int | str:
        """From how many samples on compiling the program pays, or why it is not to be compiled."""
        case = self._case(self.typical_sizes, False)
        if case.lifting.tier != "python" or case.lifting.not_compiled is not None:
            return case.lifting.not_compiled or "it is not called sample by sample"
        return lifting.worth_compiling(self.program, *self._arranged(case.inputs))

    def _build(self, sizes: Sizes, native: bool) -> Case:
        by_name = dict(zip(self.random_tables, sizes, strict=True))
        with without_garbage_collection():  # tables and traces are thousands of objects, all of which stay
            return self._with_plates(by_name) or self._case_of(self._inputs(by_name, Records.copied_table), native)

    def _inputs(self, sizes: Mapping[str, int], made: Callable[[Records, int | None], Any]) -> dict[str, Any]:
        return {
            name: as_input(value, made(value, sizes.get(name))) if isinstance(value, Records) else value
            for name, value in self.prior.items()
        }

    def _case_of(self, inputs: Mapping[str, Any], native: bool) -> Case:
        options: Any = {"exclude_errors": self.exclude_errors, "checks": self._checks, "native": native}
        arguments = self._arranged(inputs)
        # On inputs that contradict a fact the program may fail: that does not speak against tracing it.
        traced = lifting.apply_traced(self.program, *arguments, **self._lenient) if self.facts else None
        lifted = traced or lifting.apply(self.program, *arguments, **options)
        secret = self._function_of_inputs(self.secret, inputs, "secret")
        return Case(inputs, secret, lifted.output, lifted.lifting, self._verdicts(inputs))

    def _verdicts(self, inputs: Mapping[str, Any]) -> tuple[RandomVariable, ...]:
        """Return the facts that do not hold for sure; one that never holds leaves no sample over."""
        verdicts = [self._function_of_inputs(fact, inputs, "assume") for fact in self.facts]
        try:
            told = all_of(judged(verdict, "assume: a fact", "a fact is false for every input") for verdict in verdicts)
        except ObservationError as error:
            raise QuestionError(str(error)) from None
        never = () if told.impossible is None else (constant(False),)
        return tuple(RandomVariable(condition) for condition in (*told.conditions, *never))

    def _with_plates(self, sizes: Mapping[str, int]) -> Case | None:
        """Return the model in which rows that are alike are held as columns, if the program can be traced like that."""
        inputs = self._inputs(sizes, Records.plated)
        tables = {name: rows_of(value) for name, value in inputs.items()}
        plated = {name: value for name, value in tables.items() if isinstance(value, PlatedTable)}
        if not plated or not isinstance(self.program, FunctionType | Staged):
            return None
        lifted = lifting.apply_traced(self.program, *self._arranged(inputs), **self._lenient)
        if lifted is None:
            return None
        secret, facts = self._function_of_inputs(self.secret, inputs, "secret"), self._verdicts(inputs)
        # Rows whose cells appear elsewhere are not alike after all.
        others = [inputs[name] for name in inputs if name not in plated]
        elsewhere = random_leaves((secret, facts, lifted.output, others, [table.cells() for table in plated.values()]))
        replaced = drawn_anew([self.prior[name] for name in plated])
        if replaced is None or any(id(node) in replaced for node in ancestors([one.node for one in elsewhere])):
            return None
        return Case(inputs, secret, lifted.output, lifted.lifting, facts)

    @property
    def _lenient(self) -> Any:
        return {"exclude_errors": self.exclude_errors or bool(self.facts), "checks": self._checks}

    @property
    def _checks(self) -> int:
        """How many plain calls to compare with: the first size in full; the program is the same for the others."""
        return FEWEST_CHECKS if self._cases else MOST_CHECKS

    def lines(self, case: Case) -> dict[Node, int]:
        """Return the source lines of the program at which it made what is behind a case's output, if it was traced."""
        if case.lifting.tier != "traced":
            return {}
        return lines_of(self.program, *self._arranged(case.inputs), case.output)

    def query(self, case: Case, function: Callable[..., Any]) -> Any:
        """Apply a function of the inputs, and of `output`, to a case."""
        return self._function_of_inputs(function, {**case.inputs, "output": case.output}, "query")

    def _function_of_inputs(self, function: Any, inputs: Mapping[str, Any], what: str) -> Any:
        if isinstance(function, str):
            return rows_of(inputs[function])
        if not callable(function):
            return tuple(rows_of(inputs[name]) for name in function)
        arguments = [inputs[name] for name in argument_names(function, inputs, what)]
        label = LABELS.get(what, "the query")
        # A query is asked about inputs on which the program did not fail: its own errors are errors.
        options: Any = {"exclude_errors": self.exclude_errors and what == "secret", "checks": self._checks}
        if any(isinstance(rows_of(value), PlatedTable) for value in arguments):
            lifted = lifting.apply_traced(function, arguments, **options)
            if lifted is not None:
                return lifted.output
            arguments = [spelled_out(value) for value in arguments]
        return lifting.apply(function, arguments, label=label, **options).output

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
            raise QuestionError(f"program must be an ordinary function, not {shown(self.program)}")
        if not isinstance(self.prior, Mapping) or not all(isinstance(name, str) for name in self.prior):
            raise QuestionError(
                "prior must be a dict from the program's parameters to what the attacker knows, "
                'such as {"records": pv.Records(...)}'
            )
        for name, value in self.prior.items():
            check_prior(name, value)
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
                "secret must be a function of the inputs, the name of an input or a list of names, "
                f"not {shown(self.secret)}"
            )
        for name in wanted:
            if name not in self.prior:
                raise QuestionError(f"secret names {name!r}, but the prior has {_listed(self.prior)}")


@dataclass
class _DerivedQuestion(Question):
    """A question about another one, the whole."""

    whole: Question = field(kw_only=True)


@dataclass
class QuestionOfFacts(_DerivedQuestion):
    """Whether all facts of another question hold, as if that were the output of its program."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfFacts":
        """Return the question about another one's facts."""
        return cls(question.program, question.prior, question.secret, whole=question)

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output says whether all facts hold, and nothing is secret."""
        case = self.whole.case(sizes, samples)
        verdicts = map(RandomVariable, case.likelihood_of_facts().conditions)
        return Case(case.inputs, 0, functools.reduce(operator.and_, verdicts, True), Lifting("traced"))


@dataclass
class QuestionOfSecret(_DerivedQuestion):
    """What another question's secret is before anything is seen, as if that were the output of its program."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfSecret | None":
        """Return the question about another one's secret; none if that may depend on the sizes of its tables."""
        if question.size_nodes and (question.facts or not _is_one_secret(question)):
            return None
        return cls(question.program, question.prior, question.secret, facts=question.facts, whole=question)

    @property
    def random_tables(self) -> list[str]:
        """No tables: whatever their sizes, the secret is the same."""
        return []

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output is the secret; the program is not run."""
        case = self.whole.case(self.whole.typical_sizes, samples)
        return Case(case.inputs, case.secret, case.secret, Lifting("traced"), case.facts)


def _is_one_secret(question: Question) -> bool:
    """Say whether the secret is the same quantity for small, typical and large sizes of the tables, or one like it."""
    drawn = np.sort(question.drawn_sizes, axis=1)
    sizes = {tuple(map(int, drawn[:, place])) for place in (0, drawn.shape[1] // 2, -1)}
    found = [flatten(question.secret_at(one)) for one in sizes]
    known = [[leaf for leaf in leaves if not isinstance(leaf, RandomVariable)] for _, leaves in found]
    alike = [_likeness([leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]) for _, leaves in found]
    return all(
        (structure, plain, likeness) == (found[0][0], known[0], alike[0])
        for (structure, _), plain, likeness in zip(found, known, alike, strict=True)
    )


def _likeness(nodes: Sequence[Node]) -> tuple[Hashable, ...]:
    """Return what is equal for the same quantities, or for as many that are drawn from the same families."""
    found: list[Hashable] = []
    drawn: list[tuple[Node, str]] = []
    for node in nodes:
        column = node.parents[0] if isinstance(node.operation, Index) else node
        operation, parameters = column.operation, [parent.operation for parent in column.parents]
        known = [p.array for p in parameters if isinstance(p, ConstantValue) and p.array.size == 1]
        if not isinstance(operation, Draw) or len(known) < len(parameters):
            found.append(node)
            continue
        drawn.append((column, "" if column is node else str(node.operation)))
        # Which of several are the same matters too.
        found.append((operation.family, tuple(array.tobytes() for array in known), drawn.index(drawn[-1])))
    return tuple(found)


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
