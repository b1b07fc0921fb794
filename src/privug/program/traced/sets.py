"""Sets of rewritten programs: elements are in them or not, depending on random values and conditions."""

from collections.abc import Iterable
from typing import Any

from privug.model.plates import fold
from privug.model.variable import refuse
from privug.program.traced.grown import Fillable
from privug.program.traced.iteration import Segment, segments
from privug.program.traced.keyed import Changeable, Grown
from privug.program.traced.keys import alternatives
from privug.program.traced.masks import Growing, Mask, Masked, any_of, both, current, either, negated

Pairs = list[tuple[Any, Mask]]


class MaskedSet(Changeable, Fillable, Growing):
    """A set of the program's own."""

    def __init__(self, items: Iterable[tuple[Any, Mask]] = ()) -> None:
        super().__init__()
        self.masks: dict[Any, Mask] = {}
        for item, there in items:
            self.enter(item, there)

    def enter(self, item: Any, here: Mask) -> None:
        """Put something in under a condition."""
        rows = self.by_rows(writing=True)
        if rows is not None:
            return rows.insert(item, here)
        for level, hit in alternatives(item).items():
            mask = either(self.masks.get(level, False), both(here, hit))
            if mask is not False:
                self.masks[level] = mask
        return None

    def add(self, item: Any) -> None:
        self.enter(item, current())

    def contains(self, item: Any) -> Mask:
        """Return when something is in the set."""
        rows = self.by_rows()
        if rows is not None:
            return rows.contains(item)
        hits = alternatives(item)
        return any_of([both(hit, self.masks[level]) for level, hit in hits.items() if level in self.masks])

    def pairs(self) -> Pairs:
        self.look_at_all()
        if self.is_certain:
            return [(item, True) for item in set(self.masks)]
        if not all(isinstance(item, str) for item in self.masks):  # the order of strings is not known in Python either
            refuse("the order of a set of random elements")
        return self.unordered()

    def unordered(self) -> Pairs:
        self.look_at_all()
        return list(self.masks.items())

    def plain(self) -> frozenset[Any]:
        if not self.is_certain:
            refuse("a set of random elements")
        return frozenset(self.masks)

    def __iter__(self) -> Any:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())

    def __and__(self, other: Any) -> "MaskedSet":
        others = _set_of(other)
        return MaskedSet((item, both(there, others.contains(item))) for item, there in self.unordered())

    def __sub__(self, other: Any) -> "MaskedSet":
        return MaskedSet(
            (item, both(there, negated(_set_of(other).contains(item)))) for item, there in self.unordered()
        )

    def __or__(self, other: Any) -> "MaskedSet":
        return MaskedSet([*self.unordered(), *_set_of(other).unordered()])

    def __rand__(self, other: Any) -> "MaskedSet":
        return _set_of(other) & self

    def __ror__(self, other: Any) -> "MaskedSet":
        return _set_of(other) | self

    def __rsub__(self, other: Any) -> "MaskedSet":
        return _set_of(other) - self

    def update(self, items: Any) -> None:
        """Put several things in."""
        for item, there, _ in segments(items, ordered=False):
            self.enter(item, both(current(), there))

    # Changed by each of many rows.
    def mask_at(self, level: Any) -> Mask:
        return self.masks.get(level, False)

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        self.masks[level] = either(self.mask_at(level), inserted)

    def end_round(self, events: int, never_empty: bool) -> None:
        return None

    def filled(self, old: Any, before: Mask, held: list[Segment]) -> "MaskedSet":
        first = () if before is False else old.unordered()
        made = MaskedSet((item, both(before, there)) for item, there in first)
        for item, there, plate in held:
            assert plate is not None
            for level, hit in alternatives(item).items():
                inside = both(there, hit)
                found = inside if isinstance(inside, bool) else fold(plate, "any", inside)
                made.masks[level] = either(made.masks.get(level, False), found)
        return made

    @staticmethod
    def one_of(possible: list[tuple[Mask, Any]]) -> "MaskedSet":
        """Return the set whose condition holds."""
        return OneOfSets(possible)

    intersection, union, difference = __and__, __or__, __sub__

    def __eq__(self, other: object) -> bool:
        return refuse("a comparison of sets")

    __hash__ = None  # type: ignore[assignment]


class OneOfSets(MaskedSet):
    """One of several sets, depending on random conditions; what is put into it is put into that one."""

    def __init__(self, targets: Iterable[tuple[Mask, Any]]) -> None:
        self._targets = list(targets)
        if not all(isinstance(target, MaskedSet) for _, target in self._targets):
            refuse("a choice between containers")
        super().__init__()
        for condition, target in self._targets:
            for level, mask in target.masks.items():
                self.masks[level] = either(self.masks.get(level, False), both(condition, mask))

    def enter(self, item: Any, here: Mask) -> None:
        super().enter(item, here)
        for condition, target in self._targets:
            target.enter(item, both(condition, here))


def _set_of(other: Any) -> MaskedSet:
    if isinstance(other, MaskedSet):
        return other
    if isinstance(other, Masked):
        return MaskedSet(other.unordered())
    return MaskedSet((item, True) for item in other)
