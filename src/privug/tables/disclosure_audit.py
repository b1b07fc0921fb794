"""Audits of published tables: what can be found out about every cell that was meant to be protected."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from privug.arguments import (
    NotNegative,
    Positive,
    PositiveProbability,
    as_names,
    is_number,
    is_one_of,
    kinds_checked,
    shown,
)
from privug.digits import how_many, percent_text
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.markup import page, paragraphs
from privug.output import as_json
from privug.pictures import plots
from privug.progress import ProgressMeter
from privug.report.files import written
from privug.report.text import grid_html, grid_text
from privug.tables.posteriors import (
    MOST_WORK,
    Contributions,
    Rules,
    TooLarge,
    Weights,
    checked_rates,
    contributions,
    marginals,
)
from privug.tables.published_table import Labels, System, SystemComponent, Table, Variable, figure, range_text
from privug.tables.suppression import Intervals, Need, feasible_intervals, smallest_suppression
from privug.tables.table_files import TOTALS

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
    return page(found.title, f"<main>{found._repr_html_()}</main>")


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


ATTACKERS = ("outsider", "contributor")
Belief = dict[int, float]


@kinds_checked
def audit(
    tables: Any,
    *,
    prior: Literal["uniform", "poisson", "multinomial"] | None = "uniform",
    rate: Any = None,
    width: NotNegative | None = None,
    max_belief: PositiveProbability | None = None,
    against: Sequence[str] = ATTACKERS,
    primary: Sequence[str] | None = None,
    p_percent: Positive | None = None,
    dominance: Any = None,
    contributors: Any = None,
    amounts: Any = None,
    repair: Literal["cells", "sum"] | None = "cells",
) -> TableAudit:
    """Return what can be found out about every suppressed or rounded cell of published tables, without any microdata.

    `tables` is a table of `pv.tables.read`, or a list of linked ones about the same people. For each cell there is its
    feasible interval, over all tables that agree with what was published, and under a prior the distribution of the
    count; a belief is exact or absent, an interval errs on neither side. A cell gives way if it can be recovered, if
    its interval is too narrow, or if someone becomes too sure of it. The reference says what each argument means.

    Raises:
        ArgumentError: No table agrees with what was published, or an argument is wrong.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "women", "men", "Total"], ["North", "<5", "x", "12"],
    ...                         ["South", "9", "7", "16"], ["Total", "12", "16", "28"]])
    >>> found = pv.tables.audit(table)
    >>> found.holds, found.cells[0].name, found.cells[0].low, found.cells[0].high
    (False, 'North x women', 3, 3)
    """
    _check_options(prior, max_belief, against)
    system = System(_linked(tables))
    if len(system.tables) > 1:
        system.check()
    rules = _rules(system, p_percent, dominance, contributors)
    find = _Finder(system)
    known = _contributions(contributors, amounts, find, system)
    least = width if width is not None else 0.0 if system.magnitude else 1.0
    believed = None if system.magnitude else prior
    rates = checked_rates(rate, find)
    question = _AuditQuestion(system, believed, *rates, least, max_belief, frozenset(against), rules, known)
    marks = None if primary is None else _checked_marks(system, primary)
    targets = [i for i, v in enumerate(system.variables) if i in known or _is_target(v, marks)]
    cells, intervals = question.answer(system, targets)
    further = None if repair is None else question.repair(targets, cells, intervals, repair)
    incomplete = max_belief is not None and any(cell.belief is None for cell in cells)
    return TableAudit(tuple(system.tables), tuple(cells), incomplete, further, question.described())


def _rules(system: System, p_percent: float | None, dominance: Any, contributors: Any) -> Rules:
    if (p_percent is not None or dominance is not None) and not system.magnitude:
        raise ArgumentError("audit: p_percent and dominance are rules for amounts; read the table with magnitude=True")
    if dominance is not None and not contributors:
        raise ArgumentError("audit: the rule of dominance= needs contributors=")
    return Rules(p_percent, _dominance(dominance))


def _linked(tables: Any) -> list[Table]:
    listed = [tables] if isinstance(tables, Table) else tables
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(table, Table) for table in listed):
        raise ArgumentError(f"audit needs a table of pv.tables.read, or a list of linked ones, not {shown(tables)}")
    if len({table.magnitude for table in listed}) > 1:
        raise ArgumentError("audit: a table of counts and a table of amounts are not linked; audit each by itself")
    names = [table.name for table in listed]
    return [
        replace(table, name=f"{table.name} ({number})") if names.count(table.name) > 1 else table
        for number, table in enumerate(listed, 1)
    ]


def _check_options(prior: Any, max_belief: Any, against: Sequence[str]) -> None:
    if not as_names("audit: against", against) or not all(is_one_of(attacker, ATTACKERS) for attacker in against):
        raise ArgumentError(f"audit: against must be some of {', '.join(ATTACKERS)}, not {shown(against)}")
    if max_belief is not None and prior is None:
        raise ArgumentError("audit: max_belief needs a prior")


def _dominance(pair: Any) -> tuple[int, float] | None:
    if pair is None:
        return None
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(map(is_number, pair)):
        n, k = pair
        if isinstance(n, int) and n >= 1 and 0 < k <= 100:
            return n, float(k)
    raise ArgumentError(f"audit: dominance must be a pair such as (2, 80), not {shown(pair)}")


def _checked_marks(system: System, primary: Sequence[str]) -> set[str]:
    """Return the marks of cells that must be protected; one that no table shows is a mistake."""
    marks = {mark.strip().casefold(): mark for mark in as_names("audit: primary", primary)}
    shown_marks = {cell.text.strip().casefold() for v in system.variables if v.suppressed for _, cell in v.cells}
    for mark, name in marks.items():
        if mark not in shown_marks:
            raise ArgumentError(f"audit: primary names {shown(name)}, which marks no cell of the tables")
    return set(marks)


def _is_target(variable: Variable, marks: set[str] | None) -> bool:
    if marks is None or not variable.suppressed:
        return variable.protected
    return any(cell.text.strip().casefold() in marks for _, cell in variable.cells)


class _Finder:
    """Finds a variable by the labels of a cell, in any order; totals may be left out."""

    def __init__(self, system: System) -> None:
        totals = {d.total.casefold() for table in system.tables for d in table.dimensions} | TOTALS
        self.totals = totals
        self.places: dict[tuple[str, ...], list[int]] = {}
        for place, variable in enumerate(system.variables):
            self.places.setdefault(tuple(sorted(label for _, label in variable.key)), []).append(place)

    def __call__(self, what: str, cell: Any) -> int:
        labels = cell.split(" x ") if isinstance(cell, str) else cell
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            raise ArgumentError(
                f"audit: {what} names cells by their labels, such as ('North', 'women'), not {shown(cell)}"
            )
        found = self.places.get(tuple(sorted(label for label in labels if label.casefold() not in self.totals)), [])
        if len(found) != 1:
            raise ArgumentError(f"audit: {what}: there is {'more than one' if found else 'no'} cell {shown(cell)}")
        return found[0]


def _contributions(given: Any, amounts: Any, find: _Finder, system: System) -> dict[int, Contributions]:
    for name, value in (("contributors", given), ("amounts", amounts)):
        if value is not None and not isinstance(value, Mapping):
            raise ArgumentError(f"audit: {name} must be a dict by cells, not {shown(value)}")
    if (given or amounts) and not system.magnitude:
        raise ArgumentError("audit: contributors are those of amounts; read the table with magnitude=True")
    true = {find("amounts", cell): amount for cell, amount in (amounts or {}).items()}
    if not all(is_number(amount) and 0 < amount < math.inf for amount in true.values()):
        raise ArgumentError(f"audit: amounts must be positive numbers, not {shown([*true.values()])}")
    found = {place: contributions([amount], amount) for place, amount in true.items()}
    for cell, largest in (given or {}).items():
        if not isinstance(largest, list | tuple) or not largest or not all(is_number(x) and x > 0 for x in largest):
            raise ArgumentError(
                f"audit: the contributions of {shown(cell)} must be positive numbers, not {shown(largest)}"
            )
        place = find("contributors", cell)
        known = true.get(place, system.variables[place].value)
        found[place] = contributions(largest, known)
        if found[place].amount < sum(found[place].largest) - system.slack:
            raise ArgumentError(f"audit: {shown(cell)} is {known}, less than the sum of its contributions")
    return found


@dataclass(frozen=True)
class _AuditQuestion:
    """What an audit asks of a system, and of what it would be with further cells suppressed."""

    system: System
    prior: str | None
    rate: float | None
    rates: Mapping[int, float]
    width: float
    max_belief: float | None
    against: frozenset[str]
    rules: Rules
    known: Mapping[int, Contributions]

    def described(self) -> dict[str, Any]:
        """Return what was asked, as plain values."""
        return {
            "prior": self.prior,
            "width": self.width,
            "max_belief": self.max_belief,
            "against": [attacker for attacker in ATTACKERS if attacker in self.against],
            "p_percent": self.rules.p,
            "dominance": self.rules.dominance,
        }

    def answer(self, system: System, targets: Sequence[int]) -> tuple[list[AuditedCell], Intervals]:
        """Return what can be found out about cells of a system."""
        intervals = feasible_intervals(system, targets, "contributor" in self.against)
        beliefs, reasons = self._beliefs(system, targets, intervals)
        cells = []
        for place in targets:
            hidden = system.variables[place].low < system.variables[place].high
            cell = self._cell(system.variables[place], place, intervals)
            cell = replace(cell, belief=beliefs.get(place), no_belief=reasons.get(place, ""))
            cells.append(replace(cell, problems=tuple(self._problems(cell, place, hidden))))
        return cells, intervals

    def _cell(self, variable: Variable, place: int, intervals: Intervals) -> AuditedCell:
        low, high = intervals.low[place], intervals.high[place]
        least = intervals.least_present.get(place)
        asked = least is not None and "contributor" in self.against and not self.system.magnitude
        others = (least - 1, high - 1) if asked and least is not None else None
        if (known := self.known.get(place)) is not None:
            others = (max(0.0, low - known.second), high - known.second)
        kinds = [cell.kind for _, cell in variable.cells]
        kind = next((k for k in ("suppressed", "rounded") if k in kinds), "published")
        texts = tuple((table, cell.text) for table, cell in variable.cells)
        return AuditedCell(variable.name, kind, texts, low, high, others, where=variable.where)

    def _beliefs(
        self, system: System, targets: Sequence[int], intervals: Intervals
    ) -> tuple[dict[int, Belief], dict[int, str]]:
        reasons = dict.fromkeys(targets, "no prior was given")
        if self.prior is None:
            return {}, dict.fromkeys(targets, "amounts have intervals only") if system.magnitude else reasons
        low, high = system.tightened(intervals.low, intervals.high)
        weights = Weights(system, self.prior, self.rates, self.rate, low, high)
        beliefs = {place: {int(low[place]): 1.0} for place in targets if low[place] == high[place]}
        reasons, wanted = {}, set(targets)
        components = [c for c in system.components(low, high) if wanted.intersection(c.places)]
        with ProgressMeter("beliefs", max(1, len(components))) as meter:
            for done, component in enumerate(components):
                meter.update(done)
                inside = wanted.intersection(component.places)
                if any(math.isinf(high[place]) for place in component.places):
                    reasons |= dict.fromkeys(inside, "what was published does not bound it")
                    continue
                try:
                    found = _distributions(component, low, high, weights)
                except TooLarge:
                    reasons |= dict.fromkeys(inside, f"an exact belief takes more than {MOST_WORK:,} steps")
                    continue
                beliefs |= {place: belief for place, belief in found.items() if place in inside}
        return beliefs, reasons

    def _problems(self, cell: AuditedCell, place: int, hidden: bool) -> list[Problem]:
        if place in self.known:
            return self._amount_problems(cell, self.known[place], hidden)
        if cell.low == cell.high:
            return [Problem("recovered", f"{cell.published}, but it can only be {figure(cell.low)}")]
        found = []
        if cell.kind == "suppressed" and cell.high - cell.low < (least := self._least_width(cell)):
            told = f"{cell.published}, but it can only be {range_text(cell.low, cell.high)}"
            found.append(Problem("narrow", f"{told}, which is narrower than {least:.6g}"))
        if "contributor" in self.against and cell.others is not None and cell.others[0] == cell.others[1]:
            told = "that nobody else is" if cell.others[0] == 0 else f"that exactly {figure(cell.others[0])} others are"
            found.append(Problem("recovered", f"{cell.published}, but a person counted there learns {told}"))
        return found + self._beliefs_beyond(cell)

    def _least_width(self, cell: AuditedCell) -> float:
        """Return how wide the interval of a suppressed cell must be: of an amount, p % on either side of its middle."""
        share = 0.0 if self.rules.p is None else self.rules.p / 100
        return max(self.width, 0.0 if math.isinf(cell.high) else share * (cell.low + cell.high))

    def _beliefs_beyond(self, cell: AuditedCell) -> list[Problem]:
        if self.max_belief is None:
            return []
        limit = f"more than {percent_text(self.max_belief)}"
        for attacker, belief in (("outsider", cell.belief), ("contributor", cell.belief_about_others)):
            if attacker in self.against and belief:
                count, sure = max(belief.items(), key=lambda item: item[1])
                if sure > self.max_belief * (1 + 1e-12):
                    who = "an outsider is" if attacker == "outsider" else "a person counted there is"
                    what = f"it is {count}" if attacker == "outsider" else f"{count} others are"
                    told = f"{cell.published}, but {who} {percent_text(sure)} sure that {what}, {limit}"
                    return [Problem("belief", told)]
        return []

    def _amount_problems(self, cell: AuditedCell, known: Contributions, hidden: bool) -> list[Problem]:
        broken = known.broken_rules(self.rules)
        if not hidden:
            return [Problem("sensitive", f"published, but sensitive by the {told}") for told in broken]
        if cell.low == cell.high:
            return [Problem("recovered", f"{cell.published}, but it can only be {figure(cell.low)}")]
        level = known.protection(self.rules)
        slack = self.system.slack
        if broken and (cell.high < known.amount + level - slack or cell.low > max(0.0, known.amount - level) + slack):
            share = f"{100 * ((cell.high - known.second) / known.first - 1):.3g} %"
            told = (
                f"{cell.published}, but it can only be {range_text(cell.low, cell.high)}; protection needs {level:.6g} "
            )
            told += (
                f"on either side of {figure(known.amount)}, and the second largest contributor knows the largest to "
            )
            return [Problem("narrow", f"{told}within {share}")]
        return []

    def repair(
        self, targets: Sequence[int], cells: Sequence[AuditedCell], intervals: Intervals, by: str
    ) -> FurtherSuppression | None:
        """Return the smallest further suppression with which no cell gives way; None if none gives way now."""
        if not any(cell.problems for cell in cells):
            return None
        forced = [i for i, cell in zip(targets, cells, strict=True) if cell.problems and self._is_shown(i)]
        system = self.system.without(forced)
        if forced:
            cells, intervals = self.answer(system, targets)
        needs = {i: self._need(i, cell) for i, cell in zip(targets, cells, strict=True) if cell.problems}

        def judge(chosen: frozenset[int]) -> tuple[str, list[int]]:
            some = targets if self.max_belief is not None else [*needs]
            found, _ = self.answer(system.without(chosen), some)
            failing = [i for i, cell in zip(some, found, strict=True) if cell.problems]
            kinds = {problem.kind for cell in found for problem in cell.problems}
            if self.max_belief is not None and any(cell.belief is None for cell in found):
                kinds.add("belief")
            return "holds" if not kinds else "sure" if kinds == {"belief"} else "narrow", failing

        names = [v.name for v in self.system.variables]
        for i in forced:
            hidden = {table for table, _ in self.system.variables[i].hidden}
            shows = [table for table, _ in self.system.variables[i].cells if table not in hidden]
            names[i] += f" in {' and '.join(shows)}" if hidden else ""
        if not needs:
            return FurtherSuppression(tuple(names[i] for i in forced), True, by)
        found = smallest_suppression(system, needs, intervals.example, judge, by)
        if found is None:
            return FurtherSuppression((), False, by)
        return FurtherSuppression(tuple(names[i] for i in (*forced, *found.places)), found.minimal, by)

    def _is_shown(self, place: int) -> bool:
        """Return whether a cell is printed that is sensitive, or that another table does not print."""
        variable = self.system.variables[place]
        return variable.hidden != variable.cells if variable.protected else place in self.known

    def _need(self, place: int, cell: AuditedCell) -> Need:
        if place in self.known:
            known = self.known[place]
            level = known.protection(self.rules)
            return Need(max(2 * level, self.width), known.amount + level, max(0.0, known.amount - level))
        if self.system.magnitude:
            return Need(max(self._least_width(cell), 1e3 * self.system.slack))
        return Need(max(1.0, self.width), 2.0 if "contributor" in self.against else None)


def _distributions(
    component: SystemComponent, low: Sequence[float], high: Sequence[float], weights: Weights
) -> dict[int, Belief]:
    """Return the distribution of every count of a component."""
    where = {place: number for number, place in enumerate(component.places)}
    rows = [(tuple((where[i], sign) for i, sign in terms), int(right)) for terms, right in component.rows]
    least, most = ([int(end[place]) for place in component.places] for end in (low, high))
    found = marginals(least, most, rows, [weights.of(place) for place in component.places])
    return {
        place: {int(low[place]) + k: p for k, p in enumerate(shares.tolist()) if p > 0}
        for place, shares in zip(component.places, found, strict=True)
    }
