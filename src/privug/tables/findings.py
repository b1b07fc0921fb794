"""What an audit of tables found: cells, a verdict, and further cells to suppress; as text, HTML, JSON and picture."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from privug.arguments import kinds_checked
from privug.digits import how_many, percent_text
from privug.escaping import inert
from privug.markup import paragraphs
from privug.pictures import plots
from privug.report.files import written
from privug.report.grid import grid_html, grid_page, grid_text
from privug.report.plain import as_json
from privug.tables.table import Labels, Table, figure, range_text

WIDTH = 110
MOST_TOLD = 20
"""How many cells that give way are told one by one as text."""


@dataclass(frozen=True)
class Problem:
    """Why a cell gives way: it is recovered, its interval is narrow, a belief is too large, or it is sensitive.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "30"], ["Total", "34"]])
    >>> pv.tables.audit(table, repair=None).broken[0].problems[0].kind
    'recovered'
    """

    kind: Literal["recovered", "narrow", "belief", "sensitive"]
    words: str


@dataclass(frozen=True)
class AuditedCell:
    """What can be found out about one cell.

    `low` and `high` are the ends of its feasible interval; `others` are those of the number of other people in the eyes
    of somebody who is counted there, None if nobody can be, and of an amount what the others contribute in the eyes of
    the second largest contributor, if contributors are known; `belief` maps counts to probabilities, and `no_belief`
    says why there are none.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "<5"], ["Total", "6"]])
    >>> cell = pv.tables.audit(table).cells[0]
    >>> cell.low, cell.high, cell.others, cell.belief[3]
    (2, 4, (1, 3), 0.3333333333333333)
    """

    name: str
    kind: str
    texts: tuple[tuple[str, str], ...]
    low: float
    high: float
    others: tuple[float, float] | None = None
    belief: Mapping[int, float] | None = field(default=None, repr=False)
    no_belief: str = ""
    problems: tuple[Problem, ...] = ()
    where: tuple[tuple[str, Labels], ...] = field(default=(), repr=False)
    """The tables that show the cell, and its labels there."""

    @property
    def gives_way(self) -> bool:
        """Whether the cell is found out, or too nearly so."""
        return bool(self.problems)

    @property
    def published(self) -> str:
        """How the cell was published, in words."""
        different = list(dict.fromkeys(text for _, text in self.texts))
        if len(different) == 1:
            return f"published {different[0]!r}"
        return "published " + " and ".join(f"{text!r} in {table}" for table, text in self.texts)

    @property
    def belief_about_others(self) -> Mapping[int, float] | None:
        """What somebody who is counted in the cell believes about the number of others there."""
        if self.belief is None or self.others is None:
            return None
        present = {count - 1: p for count, p in self.belief.items() if count > 0}
        whole = sum(present.values())
        return {count: p / whole for count, p in present.items()} if whole > 0 else None

    @property
    def likeliest(self) -> tuple[int, float] | None:
        """The likeliest count with its probability."""
        return max(self.belief.items(), key=lambda item: item[1]) if self.belief else None

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain values."""
        return {
            "cell": self.name,
            "kind": self.kind,
            "published": [{"table": table, "text": text} for table, text in self.texts],
            "low": self.low,
            "high": self.high,
            "others": None if self.others is None else list(self.others),
            "belief": None if self.belief is None else {str(count): p for count, p in self.belief.items()},
            "no_belief": self.no_belief,
            "problems": [{"kind": problem.kind, "words": problem.words} for problem in self.problems],
        }


@dataclass(frozen=True)
class FurtherSuppression:
    """Further cells to suppress so that no cell gives way; none if no such set was found. Zeros are never among them.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "9"], ["East", "7"], ["Total", "18"]])
    >>> print(pv.tables.audit(table).further)
    suppress East as well: the smallest number of further cells
    """

    cells: tuple[str, ...]
    minimal: bool
    by: str

    def __str__(self) -> str:
        if not self.cells:
            return "no further suppression of cells other than zeros was found that holds"
        least = "number of further cells" if self.by == "cells" else "sum of further cells"
        proof = f"the smallest {least}" if self.minimal else f"enough, but not proved to be the smallest {least}"
        return inert(f"suppress {', '.join(self.cells)} as well: {proof}")


def _as_text(found: "TableAudit") -> str:
    return str(found)


def _as_json(found: "TableAudit") -> str:
    return as_json(found.to_dict())


def _as_page(found: "TableAudit") -> str:
    return grid_page(found.title, found._repr_html_())


@dataclass(frozen=True)
class TableAudit:
    """What an audit found; true, as in `assert pv.tables.audit(table)`, if every cell holds for sure.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "30"], ["Total", "34"]])
    >>> found = pv.tables.audit(table, repair=None)
    >>> found.verdict
    'violated: 1 of 1 protected cells gives way'
    >>> found.broken[0].problems[0].words
    "published '<5', but it can only be 4"
    """

    tables: tuple[Table, ...]
    cells: tuple[AuditedCell, ...]
    incomplete: bool
    """Whether a belief was limited that could not be computed."""
    further: FurtherSuppression | None
    settings: Mapping[str, Any]

    formats: ClassVar[Mapping[str, Callable[["TableAudit"], str]]] = {
        ".html": _as_page,
        ".htm": _as_page,
        ".txt": _as_text,
        ".json": _as_json,
    }

    def __bool__(self) -> bool:
        return self.holds

    @property
    def broken(self) -> tuple[AuditedCell, ...]:
        """The cells that give way."""
        return tuple(cell for cell in self.cells if cell.gives_way)

    @property
    def status(self) -> str:
        """'holds', 'violated' or, where a limited belief could not be computed, 'undecided'."""
        return "violated" if self.broken else "undecided" if self.incomplete else "holds"

    @property
    def holds(self) -> bool:
        """Whether no cell gives way, for sure."""
        return self.status == "holds"

    @property
    def title(self) -> str:
        """What was audited."""
        return f"Audit of {', '.join(table.name for table in self.tables)}"

    @property
    def verdict(self) -> str:
        """What follows, in words."""
        count = how_many(len(self.cells), "protected cell")
        if self.broken:
            some = len(self.broken)
            return f"violated: {some:,} of {len(self.cells):,} protected cells give{'s' if some == 1 else ''} way"
        if self.incomplete:
            missing = sum(cell.belief is None for cell in self.cells)
            return f"undecided: the interval of every cell holds, but {missing:,} of {count} have no exact belief"
        return f"holds: none of {count} gives way" if self.cells else "holds: no cell is suppressed or rounded"

    @property
    def sentences(self) -> list[str]:
        """The verdict, then what is known of each cell that gives way, then what to do."""
        told = [f"{cell.name}: {problem.words}" for cell in self.broken for problem in cell.problems]
        more = [f"... and {len(told) - MOST_TOLD:,} more"] if len(told) > MOST_TOLD else []
        lines = [self.verdict, *told[:MOST_TOLD], *more]
        if not self.broken and (sure := self._surest()) is not None:
            lines.append(sure)
        open_ones: dict[str, int] = {}
        for cell in self.cells:
            if cell.belief is None and self.settings["prior"] is not None:
                open_ones[cell.no_belief] = open_ones.get(cell.no_belief, 0) + 1
        lines += [f"{how_many(n, 'cell')} with an interval only: {reason}" for reason, n in open_ones.items()]
        return [*lines, *([] if self.further is None else [str(self.further)])]

    def _surest(self) -> str | None:
        guesses = [(cell.likeliest, cell.name) for cell in self.cells if cell.likeliest is not None]
        if not guesses:
            return None
        (count, p), name = max(guesses, key=lambda guess: guess[0][1])
        return f"the best guess of an outsider: {name} is {figure(count)}, with probability {percent_text(p)}"

    def _grids(self) -> list[tuple[str, list[str], list[list[str]], list[str]]]:
        return [(table.name, *table.grid(self._texts(table)), []) for table in self.tables]

    def _texts(self, table: Table) -> dict[Labels, str]:
        """Return the cells of a table, each protected one with what is really known of it."""
        known = {labels: cell for cell in self.cells for name, labels in cell.where if name == table.name}
        texts = {}
        for labels, cell in table.cells.items():
            found = known.get(labels)
            news = found is not None and (cell.kind == "suppressed" or (found.low, found.high) != (cell.low, cell.high))
            texts[labels] = f"{cell.text} [{range_text(found.low, found.high)}]" if found and news else cell.text
        return texts

    def __str__(self) -> str:
        told = [
            textwrap.fill(inert(line), WIDTH, initial_indent="  ", subsequent_indent="    ") for line in self.sentences
        ]
        return "\n".join([inert(self.title), *told, "", "\n\n".join(grid_text(*grid) for grid in self._grids())])

    def _repr_html_(self) -> str:
        head = grid_html(self.title, ["cell", "published", "can only be", "likeliest"], self._rows(), [])
        return paragraphs(self.sentences) + "".join(grid_html(*grid) for grid in self._grids()) + head

    def _rows(self) -> list[list[str]]:
        rows = []
        for cell in self.cells:
            guess = cell.likeliest
            best = "" if guess is None else f"{figure(guess[0])} ({percent_text(guess[1])})"
            rows.append([cell.name, ", ".join(text for _, text in cell.texts), range_text(cell.low, cell.high), best])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        further = self.further
        return {
            "tables": [table.name for table in self.tables],
            "status": self.status,
            "verdict": self.verdict,
            "settings": dict(self.settings),
            "cells": [cell.to_dict() for cell in self.cells],
            "further": None
            if further is None
            else {"cells": list(further.cells), "minimal": further.minimal, "by": further.by},
        }

    def to_json(self) -> str:
        """Return what was found as JSON; a range without an end has the string 'inf'."""
        return _as_json(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the feasible interval of each cell, those that give way first; `ax` is matplotlib axes or a path."""
        ordered = sorted(self.cells, key=lambda cell: not cell.gives_way)
        rows = [(cell.name, cell.low, cell.high, cell.gives_way) for cell in ordered]
        return plots().ranges(rows, ax, "amount" if self.tables[0].magnitude else "count")

    @kinds_checked
    def save(self, path: str | Path) -> Path:
        """Write what was found to a file that ends in .html, .txt or .json; return its path."""
        return written(path, self.formats, self)
