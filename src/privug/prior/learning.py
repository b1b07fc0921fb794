"""Tables learned from data: the attacker who knows the population, and the one who knows all rows but one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.arguments import LARGEST, as_names, is_number, is_one_of, plain_number, shown
from privug.errors import PriorError
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.copula import gaussian_copula
from privug.prior.fitting import fit
from privug.prior.frame import Frame, frame_of
from privug.prior.population import Population, independent, observed_rows
from privug.prior.tree import TreeOfColumns, tree_of_columns

MODELS = ("independent", "rows", "tree", "copula")


def population_table(
    data: Any,
    *,
    size: Any,
    model: str,
    target: Row | Mapping[str, Any] | None,
    position: int,
    columns: Sequence[str] | None,
    labels: Sequence[str],
    missing: str,
    **options: Any,
) -> tuple[Any, Row | Callable[[], Row], Row | None]:
    """Return the size of a table of the population, what its rows are like or are drawn by, and the target's row."""
    frame = frame_of(data, columns, labels, missing)
    population = learned(frame, model, **options)
    wanted = len(frame) if size is None else size
    if target is None:
        return wanted, population.template or population.row, None
    named = target._asdict() if isinstance(target, Row) else target
    if not isinstance(named, Mapping):
        raise PriorError(f"from_frame: target must be a pv.Row of what is known, not {shown(target)}")
    belief = {name: value.item() if isinstance(value, np.generic) else value for name, value in named.items()}
    frame.check_names(belief, "target")
    most = wanted if isinstance(wanted, int) else position + 1
    if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < most:
        raise PriorError(f"from_frame: position must be that of a row of the table, not {shown(position)}")
    # Copying conditional tables is quicker than making them again; single columns are not.
    everyone = population.template if isinstance(population, TreeOfColumns) else None
    return wanted, everyone or population.row, _believed(population, belief)


def _believed(population: Population, belief: Mapping[str, Any]) -> Row:
    """Return a row of which some columns are known and of some a distribution; others are drawn given the known."""
    known = {name: value for name, value in belief.items() if not isinstance(value, RandomVariable)}
    row = population.row(known)
    return Row(**{**row._asdict(), **belief})


def all_but_one(
    data: Any,
    position: int,
    *,
    unknown: Sequence[str] | None,
    model: str,
    columns: Sequence[str] | None,
    labels: Sequence[str],
    missing: str,
    **options: Any,
) -> tuple[int, Callable[[int], Row]]:
    """Return the size and the rows of a table of which all is known but (some columns of) one row."""
    frame = frame_of(data, columns, labels, missing)
    if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < len(frame):
        raise PriorError(f"knows_all_but: row must be a position from 0 to {len(frame) - 1}, not {shown(position)}")
    if len(frame) < 2:
        raise PriorError("knows_all_but: the data must have more than one row, to learn from the others")
    hidden = frame.names if unknown is None else unknown
    if not as_names("knows_all_but: unknown", hidden, PriorError):
        raise PriorError("knows_all_but: unknown must name at least one column")
    frame.check_names(hidden, "unknown")
    population = learned(frame.without(position), model, **options)
    truth = frame.row(position)
    known = {name: truth[name] for name in frame.names if name not in hidden}
    row = population.row(known)
    if not population.allows(truth, hidden):
        raise PriorError(_impossible(truth, position, hidden))
    return len(frame), lambda place: row if place == position else frame.row(place)


def _impossible(truth: Row, position: int, hidden: Sequence[str]) -> str:
    told = ", ".join(f"{name}={shown(truth[name])}" for name in hidden)
    return (
        f"knows_all_but: to an attacker who learns from the other rows, row {position} ({told}) is impossible; write "
        "smoothing=1 with values= for what a column may hold, or families= for columns of numbers"
    )


def learned(
    frame: Frame,
    model: str,
    *,
    smoothing: float = 0.0,
    values: Mapping[str, Sequence[Any]] | None = None,
    families: Mapping[str, Any] | None = None,
    uncertainty: bool = False,
) -> Population:
    """Learn a model of the population that a data set is a sample of."""
    if not is_one_of(model, MODELS):
        raise PriorError(f"from_frame: model must be one of {', '.join(map(repr, MODELS))}, not {shown(model)}")
    if not is_number(smoothing) or not 0 <= smoothing <= LARGEST:
        raise PriorError(f"from_frame: smoothing must be a number of observations, 0 or more, not {shown(smoothing)}")
    smoothing = plain_number(smoothing)
    for name, given in (("values", values), ("families", families)):
        if given is not None and not isinstance(given, Mapping):
            raise PriorError(f"from_frame: {name} must map names of columns to what they hold, not {shown(given)}")
    if (smoothing or values) and model not in ("independent", "tree"):
        raise PriorError(f"from_frame: smoothing and values need model='independent' or 'tree', not {model!r}")
    if families and model != "independent":
        raise PriorError(f"from_frame: families need model='independent', not {model!r}")
    if values and not smoothing:
        raise PriorError("from_frame: values= are possible only with smoothing=, such as smoothing=1")
    wide = frame.extended(values) if values else frame
    if model == "rows":
        return observed_rows(wide)
    if model == "tree":
        return tree_of_columns(wide, smoothing)
    if model == "copula":
        return gaussian_copula(wide)
    wide.check_names(families or {}, "families")
    fitted = {n: fit(family, frame[n].cells(), uncertainty=uncertainty) for n, family in (families or {}).items()}
    return independent(wide, smoothing, fitted)
