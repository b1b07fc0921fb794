"""Plain dictionaries and lists whose items each of many rows changes."""

from typing import Any

from privug.model.plates import current_pass
from privug.program.traced.accumulators import FORBIDDEN
from privug.program.traced.keyed import Changeable, Grown, Round
from privug.program.traced.keys import alternatives, has_random, positioned
from privug.program.traced.masks import Mask, MaskedList, any_of, fail_where, negated


class Items:
    """The entries of a plain dictionary or list, all of which are there."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._before = dict(container) if isinstance(container, dict) else dict(enumerate(container))
        for level in self._before:  # nobody may look at what other rows change
            container[level] = FORBIDDEN

    def hits_of(self, key: Any) -> dict[Any, Mask]:
        """Return the entries that a key may mean."""
        if isinstance(self._container, dict):
            hits = alternatives(key)
        else:
            places = range(len(self._container))
            known = not has_random(key) and -len(places) <= key < len(places)
            hits = {places[key]: True} if known else {k: positioned(key, k, len(places)) for k in places}
        within = {level: hit for level, hit in hits.items() if self.has(level)}
        if isinstance(self._container, list) or len(within) < len(hits):
            missing = negated(any_of(list(within.values())))
            fail_where(missing, KeyError(key) if isinstance(self._container, dict) else IndexError("list index"))
        return within

    def has(self, level: Any) -> bool:
        """Say whether there is an entry."""
        return not isinstance(self._container, dict) or level in self._container

    def mask_at(self, level: Any) -> Mask:
        return True

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        self._before[level] = grown(self._before[level], True)

    def end_round(self, events: int, never_empty: bool) -> None:
        for level, value in self._before.items():
            self._container[level] = value


def changed_by_rows(container: Any) -> Round | None:
    """Return the round in which rows change a plain container, if one is under way."""
    passing = current_pass.get()
    found: Round | None = None if passing is None else passing.changed.get(id(container))
    return found


def open_round(container: Any) -> None:
    """Let rows change a container that the loop's body is seen to change."""
    passing = current_pass.get()
    assert passing is not None
    if isinstance(container, Changeable):
        container.by_rows(writing=True)
    elif type(container) in (dict, MaskedList, list) and id(container) not in passing.changed:
        if isinstance(container, MaskedList) and (container.plate is passing.plate or not container.is_certain):
            return
        store = Items(container)
        passing.changed[id(container)] = Round(store, passing, store.hits_of)
