"""Arrays and tables of random quantities."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from privug.arguments import check_takes, naming, refuse_code, shown
from privug.digits import how_many
from privug.errors import ArgumentError, PriorError
from privug.model.framed import Framed, check_form, dtype_of
from privug.model.graph import substitute
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.plated_tables import RaggedTable
from privug.model.table import Row, Table, row_maker
from privug.model.variable import RandomVariable, stack_values
from privug.prior.conditional import Choose, finite_support
from privug.prior.family import Draw, draw_node, is_distribution, possible_values, replicate
from privug.prior.learning import all_but_one, population_table
from privug.prior.plating import Likeness, copies, nodes_of, ragged_copies
from privug.runtime.pickling import Portable

LARGEST_SIZE = 10**9

MOST_ROWS = 1_000_000
MOST_COPIES = 100_000  # of a row, each with quantities of its own: some seconds to make
"""Of a table whose rows are objects of their own, about a kilobyte and ten microseconds each."""


def Array(distribution: Any, size: int | tuple[int, ...]) -> RandomVariable:
    """Independent quantities of one distribution as an array, or `size` quantities from a function of the position.

    >>> import privug as pv
    >>> pv.Array(pv.Normal(55, sd=1), 200).mean()
    <RandomVariable: continuous float64>
    """
    shape = size if isinstance(size, tuple) else (size,)
    if not shape or any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in shape):
        raise PriorError(f"Array: size must be a positive whole number or a tuple of them, not {shown(size)}")
    if math.prod(map(int, shape)) > LARGEST_SIZE:
        raise PriorError(f"Array: size must be of at most {LARGEST_SIZE:,} elements, not {shown(size)}")
    if is_distribution(distribution):
        return replicate(distribution, shape)
    if callable(distribution):
        _check_function("Array: the function of the position", distribution)
        if len(shape) > 1:
            raise PriorError("Array: with a function of the position, size must be one whole number")
        with naming("Array: the function of the position", PriorError):
            cells = [distribution(position) for position in range(shape[0])]
        try:
            return RandomVariable(stack_values(cells))
        except (ArgumentError, TypeError) as error:
            raise PriorError(f"Array: the function of the position: {error}") from None
    raise PriorError(
        "Array: distribution must be a distribution such as pv.Normal(0, sd=1), "
        "or a function from the position to a quantity"
    )


class Records(Portable):
    """A table of rows: what the attacker knows about each row, and how many there are.

    `row` is a function from the row's position to a `Row`, or one `Row` of distributions of
    which every row is an independent copy. `size` may be random: the rows are then the first `size` ones.

    >>> import privug as pv
    >>> table = pv.Records(3, pv.Row(age=pv.Normal(40, sd=10)))
    >>> len(table), sum(row.age for row in table) / 3
    (3, <RandomVariable: continuous float64>)
    """

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = {"_likeness": Likeness}

    def __init__(self, size: Any, row: Callable[[int], Any] | Row) -> None:
        if callable(row):
            _check_function("Records: row", row)
        elif not isinstance(row, Row):
            raise PriorError(
                f"Records: row must be a function from a position to a pv.Row, or a pv.Row, not {shown(row)}"
            )
        self.size: int | RandomVariable = _checked_size(size)
        self._row = row
        self._rows: list[Row] = []
        self._likeness = Likeness()
        self._form: str | None = None

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        size: Any = None,
        model: str = "independent",
        target: Row | Mapping[str, Any] | None = None,
        position: int = 0,
        columns: Sequence[str] | None = None,
        labels: Sequence[str] = (),
        missing: str = "refuse",
        smoothing: float = 0.0,
        values: Mapping[str, Sequence[Any]] | None = None,
        families: Mapping[str, Any] | None = None,
        uncertainty: bool = False,
    ) -> "Records":
        """Return the table of an attacker who knows the population only: rows like those of a data set.

        `data` is a pandas or polars frame, a dict of columns, a list of rows, or the path of a CSV or Parquet file.
        `model` says how rows are drawn: "independent" columns; whole "rows" of the data (bootstrap); a "tree" of
        conditional tables, in which every column depends on one other (Chow and Liu, 1968); or a Gaussian "copula" of
        numbers. `size` is how many rows there are, as many as in the data unless given. The row at `position` is the
        `target`: columns named there have the value or the distribution given, others are drawn given known values.

        `smoothing` adds so many observations of each value, also of those listed in `values`, to what was seen.
        `families` fits families such as pv.Normal to columns, with `uncertainty` about their parameters if asked for.
        `columns` and `labels` choose columns, and say which hold names though they look like numbers. Rows with missing
        cells are refused, or left out if `missing="drop"`; "keep" takes a missing cell as a value, None.

        >>> import privug as pv
        >>> table = pv.Records.from_frame({"age": [30, 40, 50], "ill": [False, True, True]}, target={"age": 40})
        >>> table[0].age, table[1].age
        (40, <RandomVariable: discrete int64>)
        """
        wanted, everyone, own = population_table(
            data, size=size, model=model, target=target, position=position, columns=columns, labels=labels,
            missing=missing, smoothing=smoothing, values=values, families=families, uncertainty=uncertainty,
        )  # fmt: skip
        if own is None and isinstance(everyone, Row):
            return cls(wanted, everyone)
        another = partial(_copied, everyone) if isinstance(everyone, Row) else everyone
        return cls(wanted, lambda place: own if own is not None and place == position else another())

    @classmethod
    def knows_all_but(
        cls,
        data: Any,
        row: int,
        *,
        unknown: Sequence[str] | None = None,
        model: str = "independent",
        columns: Sequence[str] | None = None,
        labels: Sequence[str] = (),
        missing: str = "refuse",
        smoothing: float = 0.0,
        values: Mapping[str, Sequence[Any]] | None = None,
        families: Mapping[str, Any] | None = None,
        uncertainty: bool = False,
    ) -> "Records":
        """Return the table of an attacker who knows every row of a data set but one, or the `unknown` columns of it.

        What is unknown is drawn as in the other rows, never from the row itself, by a model as in `from_frame`. This is
        the strongest attacker short of knowing the secret; differential privacy is a promise against this one.

        >>> import privug as pv
        >>> people = {"age": [30, 40, 50], "ill": [False, True, True]}
        >>> table = pv.Records.knows_all_but(people, 2, unknown=["ill"])
        >>> table[1], table[2].age, table[2].ill
        (Row(age=40, ill=True), 50, <RandomVariable: discrete bool>)
        """
        return cls(
            *all_but_one(
                data, row, unknown=unknown, model=model, columns=columns, labels=labels, missing=missing,
                smoothing=smoothing, values=values, families=families, uncertainty=uncertainty,
            )
        )  # fmt: skip

    @property
    def is_fixed(self) -> bool:
        """Whether the number of rows is known."""
        return isinstance(self.size, int)

    def table(self, size: int | None = None) -> Table:
        """Return the rows as a table of random variables; `size` is needed if it is random."""
        if size is None:
            if not isinstance(self.size, int):
                raise PriorError("this table has a random number of rows: give it to pv.Attack or pv.lift")
            size = self.size
        if size < 0:
            raise PriorError(f"Records: size must not be negative, but is {size}")
        if size > MOST_ROWS:
            raise PriorError(
                f"Records: {size:,} rows are too many to be looked at one by one (the limit is {MOST_ROWS:,}). "
                "Describe rows that are alike by one pv.Row, as in pv.Records(size, pv.Row(age=...)), and let the "
                "program be one that can be traced: sums, counts and loops take any number of those"
            )
        if size:
            self.row_at(size - 1)
        return Table(self._rows[:size])

    def as_frame(self, form: str) -> "Records":
        """Return the same table, to be handed to the program as a data frame.

        `form` is "pandas" or "polars" for a frame of that library, "columns" for a dict of NumPy arrays, or
        "structured" for a structured array of NumPy. A parameter annotated with a frame's type needs none of this.

        >>> import privug as pv
        >>> table = pv.Records(3, pv.Row(age=pv.DiscreteUniform(18, 90))).as_frame("columns")
        >>> pv.explain(lambda people: people["age"].max(), people=table).tier
        'traced'
        """
        check_form(form)
        made = Records.__new__(Records)
        vars(made).update(vars(self), _form=form)
        return made

    def replaced(self, size: Any, row: Callable[[int], Any] | Row) -> "Records":
        """Return a table of other rows that is handed to the program in the same form."""
        made = Records(size, row)
        made._form = self._form
        return made

    def row_at(self, position: int) -> Row:
        """Return one row, whatever the size is; the rows before it are made too."""
        while len(self._rows) <= position:
            self._rows.append(self._checked_row(len(self._rows)))
        return self._rows[position]

    def copied_table(self, size: int | None = None) -> Table:
        """Return the rows as quantities of their own, for a program that cannot take whole columns of those alike."""
        rows = self.size if size is None else size
        if self.template is not None and isinstance(rows, int) and rows > MOST_COPIES:
            raise PriorError(
                f"Records: {rows:,} rows are too many for a program that cannot be traced on whole columns and takes "
                f"rows one by one (the limit is {MOST_COPIES:,}): sums, counts, extremes and loops that only add up "
                "take any number of rows; for this one, give a table of fewer"
            )
        return self.table(size)

    def plated(self, size: int | None = None) -> Table:
        """Return the same rows, those that are independent copies of one another as plates."""
        wanted = size if size is not None else self.size
        assert isinstance(wanted, int)
        if isinstance(self._row, Row) and not self._rows:
            shared = set(ancestors(nodes_of(self._row))) - _template_roots(self._row)
            return copies(self._row, wanted, shared) or self.table(wanted)
        table = self.table(wanted)
        self._likeness.look_at(self._rows)
        return self._likeness.table(wanted) or table

    def looked_at(self, drawn: int) -> int:
        """Return up to which size to look at rows if one was drawn: an eighth more, if so many rows are possible."""
        assert isinstance(self.size, RandomVariable)
        step = 1 << max(0, drawn.bit_length() - 4)
        more = -(-drawn // step) * step
        return more if more <= MOST_ROWS and possible_values(self.size.node, [more]) else drawn

    def ragged(self, largest: int, typical: int) -> RaggedTable | None:
        """Return the same rows for all sizes up to the largest at once; None if no rows are alike, or too few."""
        assert isinstance(self.size, RandomVariable)
        node = self.size.node
        support = finite_support(node) if node.bound is not None and node.bound <= MOST_COPIES else None
        least = int(min(support)) if support else 0
        if isinstance(self._row, Row):
            if self._rows:  # somebody may hold them: it must be known which they are
                self._likeness.look_at(self.table(max(len(self._rows), 2)))
            shared = set(ancestors(nodes_of(self._row))) - _template_roots(self._row)
            return ragged_copies(self._row, self.size, shared, typical, least)
        self.table(largest)
        self._likeness.look_at(self._rows)
        return self._likeness.ragged(self.size, largest, typical, least)

    @property
    def template(self) -> Row | None:
        """The row of which every row is an independent copy, if the table was described by one."""
        return self._row if isinstance(self._row, Row) else None

    def alike(self, size: int | None = None) -> Likeness:
        """Return which of the rows are equally distributed and what they share."""
        self.table(size)
        self._likeness.look_at(self._rows)
        return self._likeness

    def drawn_anew(self) -> set[int]:
        """Return the identities of the random roots that the plates of this table stand for."""
        return self._likeness.replaced()

    def _checked_row(self, position: int) -> Row:
        if isinstance(self._row, Row):
            return _copied(self._row)
        with naming(f"Records: row({position})", PriorError):
            row = self._row(position)
        if isinstance(row, dict):
            row = Row(**row) if all(isinstance(name, str) for name in row) else None
        if not isinstance(row, Row):
            raise PriorError(f"Records: row({position}) must return a pv.Row or a dict, not {shown(row)}")
        if self._rows and type(row) is not type(self._rows[0]) and row.keys() != self._rows[0].keys():
            raise PriorError(
                f"Records: row({position}) has columns {row.keys()}, but row(0) has {self._rows[0].keys()}"
            )
        return row

    def __len__(self) -> int:
        return self.size if isinstance(self.size, int) else len(self.table())

    def __iter__(self) -> Iterator[Row]:
        return iter(self.table())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer) and isinstance(self.size, int) and 0 <= key < self.size:
            return self.table(int(key) + 1)[key]  # the rows after it need not be made for that
        return self.table()[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.table(), name)

    def __repr__(self) -> str:
        return f"Records({how_many(str(self.size), 'row')})"


def form_of(records: Records) -> str | None:
    """Return the form in which a table is handed to the program; None for rows."""
    return records._form


def drawn_anew(tables: Sequence[Records]) -> set[int] | None:
    """Return the identities of the random roots that the plates of tables stand for; None if tables share rows."""
    replaced = [table.drawn_anew() for table in tables]
    together: set[int] = set().union(*replaced)
    origins = {id(table._rows) for table in tables}
    return None if len(together) < sum(map(len, replaced)) or len(origins) < len(tables) else together


def as_input(records: Records, rows: Table) -> Table | Framed:
    """Return rows of a table as a program gets them."""
    form = records._form
    if form is None:
        return rows
    first = records.template or records.table(max(1, len(records._rows)))[0]
    return Framed(rows, form, first.keys(), tuple(map(dtype_of, first)))


def _copied(row: Row) -> Row:
    """Draw every cell anew; cells that are parameters of others are the new row's own, other parameters are shared."""
    nodes, own = nodes_of(row), _template_roots(row)
    drawn: dict[Node, Node] = {}
    for node in ancestors(nodes):
        if node in own:
            assert isinstance(node.operation, Draw)
            drawn[node] = draw_node(node.operation.family, tuple(substitute(node.parents, drawn)), node.shape)
    images = iter(substitute(nodes, drawn))
    return row_maker(row.keys())(
        RandomVariable(next(images)) if isinstance(cell, RandomVariable) else cell for cell in row
    )


def _template_roots(row: Row) -> set[Node]:
    return {root for node in nodes_of(row) for root in _own_roots(node)}


def _own_roots(node: Node) -> list[Node]:
    """Return the distributions that a cell of a template stands for: itself, or the entries of a conditional table."""
    if isinstance(node.operation, Draw):
        return [node]
    if isinstance(node.operation, ConstantValue):
        return []
    if isinstance(node.operation, Choose):
        return [root for entry in node.parents[1:] for root in _own_roots(entry)]
    raise PriorError(
        "Records: a column computed from others needs a function of the position: Records(size, lambda i: ...)"
    )


def _checked_size(size: Any) -> int | RandomVariable:
    if isinstance(size, RandomVariable):
        if (
            size.node.shape != ()
            or size.node.kind is not Kind.DISCRETE
            or size.node.dtype.kind not in "bi"
            or size.node.levels
        ):
            raise PriorError("Records: a random size must be one whole number, such as pv.Binomial(300, 1/3)")
        return size
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 0 <= size <= LARGEST_SIZE:
        what = f"a whole number, zero or more, up to {LARGEST_SIZE:,}, or a distribution of one"
        raise PriorError(f"Records: size must be {what}, not {shown(size)}")
    return int(size)


def _check_function(what: str, function: Callable[..., Any]) -> None:
    """Refuse a distribution whose parentheses were forgotten, and a function that does not take a position."""
    if str(getattr(function, "__module__", "")).startswith("privug.") and function.__name__[:1].isupper():
        refuse_code(what, function, PriorError)
    check_takes(what, function, 1, PriorError)
