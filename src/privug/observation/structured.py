"""Observations of parts of an output: of the entries of a dict, of the items of a list, of the rows of a frame."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.digits import how_many
from privug.errors import ObservationError
from privug.model.node import Node
from privug.model.sparse import SparseFrame, SparseList
from privug.model.table import Row
from privug.observation.likelihood import HasParts, Likelihood, component, is_opaque
from privug.observation.observations import Equals, all_of, equals
from privug.observation.observations import Observation as Observation  # those who ask for parts find it here
from privug.observation.rows import of_frame, of_items

OWN = "the output's"
ORDINALS = ("first", "second", "third", "fourth", "fifth")
MOST_TOLD = 12


@dataclass(frozen=True)
class Structured(Observation):
    """Observations of parts of a structured output: by key, or by position. None means not seen."""

    parts: Mapping[Any, Observation | None]
    length: int | None = None

    def likelihood(self, output: Any) -> Likelihood:
        if isinstance(output, SparseList) and self.length is not None:
            return of_items(output, list(self.parts.values()), _seen_of)
        if isinstance(output, SparseFrame):
            return self._of_frame(output)
        seen = Likelihood()
        if self.length is not None and is_opaque(output):
            seen = Likelihood(conditions=(Node(HasParts(self.length), (output.node,), (), np.dtype(bool)),))
        elif self.length is not None and (size := _parts_of(output)) != self.length:
            what = "is a single value" if size is None else f"has {how_many(size, 'part')}"
            hint = "; write pv.equals(...) for a single value" if size is None else ""
            return Likelihood(impossible=f"the output {what}, but a list of {self.length} was observed{hint}")
        looked_at = ((key, part) for key, part in self.parts.items() if part is not None)
        return seen & all_of(part.likelihood(self._part(output, key)) for key, part in looked_at)

    def _of_frame(self, output: SparseFrame) -> Likelihood:
        """Return what was seen of some columns of a frame, each a list of what was seen of its rows."""
        columns: dict[str, list[Observation | None]] = {}
        for name, part in self.parts.items():
            if name not in output:
                raise ObservationError(f"the observation names part {name!r}, but the output has {list(output)}")
            if isinstance(part, Equals) and isinstance(part.value, list | tuple):
                columns[name] = [equals(value) for value in part.value]
            elif isinstance(part, Structured) and part.length is not None:
                columns[name] = list(part.parts.values())
            elif part is not None:
                raise ObservationError(f"what was seen of the column {name!r} must be a list, one entry for each row")
        return of_frame(output, columns, _seen_of, _told) if columns else Likelihood()

    def _part(self, output: Any, key: Any) -> Any:
        if is_opaque(output):
            return component(output, key)
        try:
            return output[key]
        except (KeyError, IndexError, TypeError):
            known = list(output.keys()) if isinstance(output, Mapping | Row) else type(output).__name__
            raise ObservationError(f"the observation names part {key!r}, but the output has {known}") from None

    def __str__(self) -> str:
        told = [
            str(part).replace("the output", f"{'its' if place else OWN} {', '.join(path)}", 1)
            for place, (path, part) in enumerate(self._single_parts(()))
        ]
        more = f"; and {how_many(len(told) - MOST_TOLD, 'part')} more" if len(told) > MOST_TOLD else ""
        return "; ".join(told[:MOST_TOLD]) + more

    def _single_parts(self, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Observation]]:
        """Yield what was seen of each single part, with the way to it in words."""
        for key, part in self.parts.items():
            name = _entry(key) if self.length is None else _ordinal(key)
            if isinstance(part, Structured):
                yield from part._single_parts((*path, name))
            elif part is not None:
                yield (*path, name), part


def _entry(key: Any) -> str:
    return shown(key) if isinstance(key, str) else f"entry {shown(key)}"


def _ordinal(position: int) -> str:
    """Return the position of a part in words, counted from zero as lists are."""
    return f"{ORDINALS[position]} part" if position < len(ORDINALS) else f"part at position {position}"


def _seen_of(item: Any, part: Observation | None) -> Likelihood:
    return Likelihood() if part is None else part.likelihood(item)


def _told(part: Observation | None) -> Any:
    if isinstance(part, Equals):
        return part.value
    raise ObservationError(
        "rows that polars leaves in any order are told apart by their values: write those as values, "
        "pv.equals(None) for a missing one, or sort by what tells the rows apart"
    )


def _parts_of(output: Any) -> int | None:
    try:
        return len(output)
    except TypeError:
        return None


def as_observation(observe: Any) -> Observation:
    """Return an observation from what the user wrote: an observation, or a dict or list of observations."""
    if isinstance(observe, Observation):
        return observe
    if isinstance(observe, Mapping) and observe:
        return Structured({key: equals(None) if part is None else _part(part) for key, part in observe.items()})
    if isinstance(observe, list | tuple) and observe:
        return Structured({position: _part(part) for position, part in enumerate(observe)}, len(observe))
    raise ObservationError(
        f"observe must be an observation, or a dict or list of them, not {shown(observe)}; "
        f"write pv.equals({shown(observe)}) for an exact value"
    )


def _part(part: Any) -> Observation | None:
    if part is None or isinstance(part, Observation):
        return part
    return as_observation(part) if isinstance(part, Mapping | list | tuple) else equals(part)
