"""The question an attack asks: program, prior and secret, a model for each size of tables; derived questions."""

import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from privug import settings
from privug.arguments import shown
from privug.errors import ObservationError, QuestionError
from privug.estimate import Estimate
from privug.inference.graph.affine import affine_roots
from privug.inference.graph.sizing import OfAnotherForm, at_sizes, depends_on_size
from privug.model.framed import rows_of
from privug.model.graph import is_made_alike, substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import constant
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable, RaggedTable
from privug.model.structure import flatten, random_leaves, spelled_out
from privug.model.variable import RandomVariable, as_node
from privug.observation.likelihood import Likelihood
from privug.observation.observations import Observation, all_of, looked_at, told_by
from privug.prior.choice import Constant
from privug.prior.conditional import check_prior, finite_support
from privug.prior.family import Draw, Family, possible_values
from privug.prior.table import Records, as_input, drawn_anew
from privug.program import lifting
from privug.program.lifting import Lifting, in_their_forms, lines_of, name_of
from privug.program.sql.query import Query
from privug.program.staged import Staged
from privug.program.tracing import FEWEST_CHECKS, MOST_CHECKS
from privug.runtime.critical import critical_section, without_garbage_collection
from privug.runtime.pickling import Shared

Sizes = tuple[int, ...]
Found = TypeVar("Found")

MOST_COMPARED = 40  # sizes of tables whose rows are not alike, at each of which the secret is looked at
FEWEST_TRACED = 3  # sizes of tables at which a program is traced, before other sizes follow from all of them together
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
class Question(Shared):
    """A program, what the attacker knows about its inputs, and the secret."""

    program: Callable[..., Any]
    prior: Mapping[str, Any]
    secret: Any
    exclude_errors: bool = False
    facts: tuple[Callable[..., Any], ...] = ()
    """What the attacker knows that ties inputs together: predicates on them, part of the prior."""
    _cases: dict[tuple[Sizes, bool], Case] = field(default_factory=dict, repr=False)
    _of_all_sizes: dict[Sizes, Case | None] = field(default_factory=dict, repr=False)
    _gives_traced: dict[Sizes, bool] = field(default_factory=dict, repr=False, compare=False)
    """Whether the models of all sizes up to some largest ones give what was traced at single sizes."""
    _found: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    probability_of_facts: Estimate | None = field(default=None, compare=False)
    """How likely the facts are before they are assumed, once that has been found out."""

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = dict.fromkeys(
        ("_cases", "_of_all_sizes", "_gives_traced", "_found"), dict
    )

    def __post_init__(self) -> None:
        self._check_names()
        self.prior = in_their_forms(self.program, (), self.prior)[1]
        self._check_secret()
        for fact in self.facts:
            argument_names(fact, self.prior, "assume")

    @property
    def secret_name(self) -> str:
        """What the secret is called: by its input, by its function, or as that reads; else just the secret."""
        if callable(self.secret):
            return name_of(self.secret) or "secret"
        return self.secret if isinstance(self.secret, str) else ", ".join(self.secret)

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

    def once(
        self, what: Hashable, find: Callable[[], Found], is_kept: Callable[[Found], bool] = lambda found: True
    ) -> Found:
        """Return what is found out about this question once, whatever is seen of its output."""
        if what in self._found:
            known: Found = self._found[what]
            return known
        found = find()
        if is_kept(found):
            self._found[what] = found
        return found

    @cached_property
    def secret_depends_on_size(self) -> bool:
        """Whether the secret may be another quantity for other sizes of the tables; the program is not looked at."""
        largest = {
            name: max(1, int(drawn.max())) for name, drawn in zip(self.random_tables, self.drawn_sizes, strict=True)
        }
        inputs = self._inputs_of_all_sizes(largest)
        if inputs is None:
            return self._differs(list(map(finite_support, self.size_nodes)))
        secret = self._function_of_inputs(self.secret, inputs, "secret", self._looked_at(largest))
        return depends_on_size(secret, self.size_nodes)

    def _differs(self, supports: Sequence[Sequence[int] | None]) -> bool:
        """Say whether the secret differs between any of few sizes; of many it is not known."""
        listed = [support for support in supports if support is not None]
        if len(listed) < len(supports) or math.prod(map(len, listed)) > MOST_COMPARED:
            return True
        found = []
        for sizes in itertools.product(*listed):
            inputs = self._inputs(dict(zip(self.random_tables, sizes, strict=True)), Records.plated)
            structure, leaves = flatten(self._function_of_inputs(self.secret, inputs, "secret"))
            found.append((structure, [leaf.node if isinstance(leaf, RandomVariable) else leaf for leaf in leaves]))
        return any(one != found[0] for one in found)

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
            return (
                self._as_of_all_sizes(sizes)
                or self._with_plates(by_name)
                or self._case_of(self._inputs(by_name, Records.copied_table), native)
            )

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
        found = [(fact, self._function_of_inputs(looked_at(fact), inputs, "assume")) for fact in self.facts]
        try:
            told = all_of(told_by(*one) for one in found)
        except ObservationError as error:
            raise QuestionError(str(error)) from None
        never = () if told.impossible is None else (constant(False),)
        return tuple(RandomVariable(condition) for condition in (*told.conditions, *never))

    def _with_plates(self, sizes: Mapping[str, int]) -> Case | None:
        """Return the model in which rows that are alike are held as columns, if the program can be traced like that."""
        return self._traced(self._inputs(sizes, Records.plated), None)

    def case_of_all_sizes(self, largest: Sizes) -> Case | None:
        """Return one model for tables of all sizes up to the largest, if the program can be traced for all alike.

        Which rows there are beyond those sizes is not looked at. Samples of all sizes are then evaluated together.
        """
        return None if self.facts else self._for_all_sizes(largest)  # samples are looked at by size, given facts

    def _for_all_sizes(self, largest: Sizes) -> Case | None:
        with critical_section():
            if largest not in self._of_all_sizes:
                by_name = dict(zip(self.random_tables, largest, strict=True))
                with without_garbage_collection():
                    self._of_all_sizes[largest] = self._build_for_all_sizes(by_name)
            return self._of_all_sizes[largest]

    def _as_of_all_sizes(self, sizes: Sizes) -> Case | None:
        """Return the model for some sizes as that of all sizes gives it, if it does so at sizes that were traced."""
        if len(self._cases) < FEWEST_TRACED or not sizes:
            return None
        served = [largest for largest in self._gives_traced if all(map(operator.le, sizes, largest))]
        if not served:
            if not all(self._gives_traced.values()):
                return None
            most = map(max, zip(sizes, *(known for known, _ in self._cases), strict=True))
            tables = [self.prior[name] for name in self.random_tables]
            served = [tuple(table.looked_at(one) for table, one in zip(tables, most, strict=True))]
            told = [self._is_given(served[0], known, case) for (known, _), case in self._cases.items()]
            self._gives_traced[served[0]] = True in told and False not in told
        return self._at(sizes, served[0]) if self._gives_traced[served[0]] else None

    def _is_given(self, largest: Sizes, sizes: Sizes, traced: Case) -> bool | None:
        """Say whether the model of all sizes is at some sizes what was traced; None if it has another form there."""
        found = self._at(sizes, largest)
        parts = [[one.inputs, one.secret, one.output, one.facts] for one in (found, traced) if one is not None]
        return is_made_alike(*parts) if len(parts) == 2 else None

    def _at(self, sizes: Sizes, largest: Sizes) -> Case | None:
        """Return the model of all sizes up to the largest at some sizes; None if it has another form there."""
        case = self._for_all_sizes(largest)
        if case is None:
            return None
        try:
            by_name = dict(zip(self.random_tables, sizes, strict=True))
            inputs, (secret, output, facts) = at_sizes(case.inputs, by_name, (case.secret, case.output, case.facts))
        except OfAnotherForm:
            return None
        open_facts = [RandomVariable(as_node(fact)) for fact in facts if fact is not True]
        return Case(inputs, secret, output, case.lifting, tuple(open_facts))

    def _build_for_all_sizes(self, largest: Mapping[str, int]) -> Case | None:
        inputs = self._inputs_of_all_sizes(largest)
        case = None if inputs is None else self._traced(inputs, self._looked_at(largest))
        held = [] if case is None else [leaf.node for leaf in random_leaves((case.secret, case.output))]
        kept_whole = any(node.operation.by_rows for node in held)
        return None if kept_whole or any(node.operation.opaque for node in ancestors(held)) else case

    def _inputs_of_all_sizes(self, largest: Mapping[str, int]) -> dict[str, Any] | None:
        """Return the inputs with tables of random size; None where no rows are alike, or no row is there."""
        typical = dict(zip(self.random_tables, self.typical_sizes, strict=True))
        inputs = self._inputs({}, lambda records, _: records.plated() if records.is_fixed else records)
        for name, most in largest.items():
            table = self.prior[name].ragged(most, max(1, typical[name])) if most else None
            if table is None:
                return None
            inputs[name] = as_input(self.prior[name], table)
        return inputs

    def _looked_at(self, largest: Mapping[str, int]) -> dict[Node, Array]:
        """Return the sizes at which the program is compared with plain calls: none and the largest, if possible."""
        looked: dict[Node, Array] = {}
        for name, drawn in zip(self.random_tables, self.drawn_sizes, strict=True):
            size = self.prior[name].size.node
            if size.is_random:
                ends = possible_values(size, [0, largest[name]])
                usual = np.minimum(drawn, largest[name])
                looked[size] = np.array([np.median(usual).astype(int), *ends, *usual][:MOST_CHECKS])
        return looked

    def _traced(self, inputs: Mapping[str, Any], looked_at: Mapping[Node, Array] | None) -> Case | None:
        """Return the model on tables with plates, if it can be traced and rows that are alike are nowhere else."""
        tables = {name: rows_of(value) for name, value in inputs.items()}
        plated = {name: value for name, value in tables.items() if isinstance(value, PlatedTable)}
        if not plated or not isinstance(self.program, FunctionType | Staged):
            return None
        every = {"exclude_errors": True, "checks": MOST_CHECKS, "given": looked_at}  # each size may fail in its own way
        lenient = self._lenient if looked_at is None else every
        lifted = lifting.apply_traced(self.program, *self._arranged(inputs), **lenient)
        if lifted is None:
            return None
        secret, facts = self._function_of_inputs(self.secret, inputs, "secret", looked_at), self._verdicts(inputs)
        # Rows whose cells appear elsewhere are not alike after all.
        others = (
            [inputs[name] for name in inputs if name not in plated],
            [one.size for one in tables.values() if isinstance(one, RaggedTable)],
        )
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
        return FEWEST_CHECKS if self._cases or any(self._of_all_sizes.values()) else MOST_CHECKS

    def lines(self, case: Case) -> dict[Node, int]:
        """Return the source lines of the program at which it made what is behind a case's output, if it was traced."""
        if case.lifting.tier != "traced":
            return {}
        return lines_of(self.program, *self._arranged(case.inputs), case.output)

    def query(self, case: Case, function: Callable[..., Any]) -> Any:
        """Apply a function of the inputs, and of `output`, to a case."""
        found = self._function_of_inputs(function, {**case.inputs, "output": case.output}, "query")
        return Constant(None) if found is None else found  # None without a node stands for no query at all

    def _function_of_inputs(
        self, function: Any, inputs: Mapping[str, Any], what: str, looked_at: Mapping[Node, Array] | None = None
    ) -> Any:
        if isinstance(function, str):
            return rows_of(inputs[function])
        if not callable(function):
            return tuple(rows_of(inputs[name]) for name in function)
        arguments = [inputs[name] for name in argument_names(function, inputs, what)]
        if isinstance(self.program, Query):  # frames are how its tables are asked, not how they are spoken of
            arguments = [rows_of(value) for value in arguments]
        label = LABELS.get(what, "the query")
        # A query is asked about inputs on which the program did not fail: its own errors are errors.
        lenient = (self.exclude_errors and what == "secret") or looked_at is not None
        options: Any = {"exclude_errors": lenient, "checks": self._checks if looked_at is None else MOST_CHECKS}
        if any(isinstance(rows_of(value), PlatedTable) for value in arguments):
            lifted = lifting.apply_traced(function, arguments, **options, given=looked_at)
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


@dataclass
class DerivedQuestion(Question):
    """A question about another one, the whole."""

    whole: Question = field(kw_only=True)


@dataclass
class QuestionOfFacts(DerivedQuestion):
    """Whether all facts of another question hold, as if that were the output of its program."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfFacts":
        """Return the question about another one's facts."""
        return cls(question.program, question.prior, question.secret, whole=question)

    def case_of_all_sizes(self, largest: Sizes) -> Case | None:
        """Return nothing: facts are looked at size by size."""
        return None

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output says whether all facts hold, and nothing is secret."""
        case = self.whole.case(sizes, samples)
        verdicts = map(RandomVariable, case.likelihood_of_facts().conditions)
        return Case(case.inputs, 0, functools.reduce(operator.and_, verdicts, True), Lifting("traced"))


@dataclass
class QuestionOfSecret(DerivedQuestion):
    """What another question's secret is before anything is seen, as if that were the output of its program."""

    sized: bool = field(kw_only=True)
    """Whether the secret may depend on the sizes of the tables."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfSecret":
        """Return the question about another one's secret."""
        sized = bool(question.size_nodes) and (bool(question.facts) or question.secret_depends_on_size)
        parts = question.program, question.prior, question.secret
        return cls(*parts, facts=question.facts, whole=question, sized=sized)

    @property
    def random_tables(self) -> list[str]:
        """No tables, where the secret is the same whatever their sizes."""
        return self.whole.random_tables if self.sized else []

    def case_of_all_sizes(self, largest: Sizes) -> Case | None:
        """Return nothing: secrets are looked at size by size."""
        return None

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output is the secret; the program is not run."""
        case = self.whole.case(sizes if self.sized else self.whole.typical_sizes, samples)
        return Case(case.inputs, case.secret, case.secret, Lifting("traced"), case.facts)


@dataclass(frozen=True)
class AddedNoise:
    """A number of a family with known parameters, times a factor, that is added to what is left of the output."""

    family: Family
    parameters: tuple[float, ...]
    factor: float
    root: Node

    def log_density(self, distance: Array) -> Array:
        """Return the log density, but for a constant, at a distance from where the output would be without noise."""
        parameters = [np.array([number]) for number in self.parameters]
        with np.errstate(divide="ignore"):
            return self.family.log_density(np.ravel(distance) / self.factor, parameters).reshape(np.shape(distance))

    def ends(self) -> list[float]:
        """Return the distances between which there is a density."""
        low, high = (float(end) * self.factor for end in self.family.ends_of(self.parameters))
        return sorted([low, high])


def added_noise(question: Question, kind: Kind = Kind.CONTINUOUS) -> AddedNoise | None:
    """Return the noise of a log-concave family that is added to a finite quantity to make the output, if there is such.

    The secret and the facts must not depend on it, and everything else must be discrete.
    """
    if question.random_tables:
        return None
    case = question.case()
    if not isinstance(case.output, RandomVariable) or case.output.node.shape != ():
        return None
    others = [leaf.node for leaf in random_leaves((case.secret, case.facts))]
    for root, slope in affine_roots(case.output.node, kind).items():
        noise = _as_noise(root, slope)
        if noise is None or root in ancestors(others):
            continue
        location = substitute([case.output.node], {root: _nothing(root)})
        if all(node.kind is Kind.DISCRETE for node in ancestors([*location, *others]) if node.is_random):
            return noise
    return None


def _as_noise(root: Node, slope: Any) -> AddedNoise | None:
    operation = root.operation
    known = isinstance(slope, int | float | np.number) and float(slope) != 0
    if not known or not isinstance(operation, Draw) or not operation.family.log_concave or root.shape != ():
        return None
    if not all(isinstance(parent.operation, ConstantValue) for parent in root.parents):
        return None
    return AddedNoise(operation.family, _numbers(root.parents), float(slope), root)


def _nothing(root: Node) -> Node:
    return constant(0 if root.dtype.kind == "i" else 0.0)


def _numbers(parameters: Sequence[Node]) -> tuple[float, ...]:
    return tuple(float(p.operation.array.reshape(-1)[0]) for p in parameters if isinstance(p.operation, ConstantValue))


@dataclass
class QuestionOfLocation(DerivedQuestion):
    """What the output of another question's program is without the noise added to it."""

    noise: AddedNoise = field(kw_only=True)

    @classmethod
    def of(cls, question: Question, noise: AddedNoise) -> "QuestionOfLocation":
        """Return the question about another one's output without its noise."""
        return cls(question.program, question.prior, question.secret, facts=question.facts, whole=question, noise=noise)

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the noise is zero."""
        case = self.whole.case(sizes, samples)
        location = substitute([case.output.node], {self.noise.root: _nothing(self.noise.root)})[0]
        return Case(case.inputs, case.secret, RandomVariable(location), Lifting("traced"), case.facts)
