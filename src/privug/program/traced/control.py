"""What rewritten programs call at run time: control flow that goes both ways where a condition is random.

A random `if` runs both branches, each under its condition. Assignments, list appends and subscript
assignments take effect only where the condition holds; `return`, `break` and `continue` are remembered as
masks. With plain conditions everything behaves as in Python.
"""

from collections.abc import Callable, Iterator
from typing import Any

from privug.errors import ProgramError, Untraceable
from privug.model.node import count_round, leave_loop
from privug.model.plates import Plate, current_plate
from privug.model.variable import refusals, refuse
from privug.program.traced import accumulators
from privug.program.traced.accumulators import Accumulator
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.expressions import positioned
from privug.program.traced.iteration import iterate, segments
from privug.program.traced.keys import alternatives, has_random
from privug.program.traced.masks import (
    UNDEFINED,
    Mask,
    MaskedList,
    Merged,
    OneOf,
    any_of,
    both,
    current,
    either,
    fail_where,
    negated,
    select,
    truth,
    under,
)
from privug.program.traced.standing import Standing
from privug.scoping import holding

MOST_RANDOM_ROUNDS = 64


class Frame:
    """One activation of a rewritten function: what has been returned, and which loops are under way."""

    def __init__(self) -> None:
        count_round()
        self._value: Any = UNDEFINED
        self._returned: Mask = False
        self._loops: list[dict[str, Mask]] = []
        self._by_parts: list[bool] = []
        self._plates: list[Plate | None] = []

    # Three flags: returned, and broken off or gone on in the innermost loop. They are relative to the branch
    # they are set in, all false where a statement starts, and merged where branches meet.
    def _flags(self) -> list[Mask]:
        loop = self._loops[-1:]
        return [self._returned, *(flag for inner in loop for flag in (inner["broken"], inner["continued"]))]

    def _set_flags(self, flags: list[Mask]) -> None:
        self._returned = flags[0]
        if self._loops:
            self._loops[-1].update(broken=flags[1], continued=flags[2])

    def alive(self) -> Mask:
        """Return for which samples the code at this point still runs."""
        gone = self._returned
        for loop in self._loops[-1:]:
            gone = either(gone, either(loop["broken"], loop["continued"]))
        return negated(gone)

    def branches(self, test: Any) -> Iterator[bool]:
        """Yield the branches to run: one for a plain condition, both for a random one."""
        condition = truth(test)
        if isinstance(condition, bool):
            yield condition
            return
        before = self._flags()
        with under(condition):
            yield True
        taken = self._flags()
        self._set_flags(before)
        with under(negated(condition)):
            yield False
        self._set_flags([_merge(condition, a, b) for a, b in zip(taken, self._flags(), strict=True)])

    def rest(self) -> Iterator[bool]:
        """Yield the rest of a block, to be run where nothing before it returned, broke off or went on."""
        alive = self.alive()
        if isinstance(alive, bool):
            yield alive
            return
        before = self._flags()
        self._set_flags([False] * len(before))
        with under(alive):
            yield True
        self._set_flags([_joined(before, k, alive, flag) for k, flag in enumerate(self._flags())])

    def give_back(self, value: Any) -> None:
        """Return a value from the function, where the code at this point runs."""
        here = both(current(), self.alive())
        if self._value is UNDEFINED:
            self._value = value
        elif here is True:
            self._value = select(self._returned, self._value, value)
        else:
            self._value = select(here, value, self._value)
        self._returned = True

    def fail(self, make: Callable[[], Any]) -> None:
        """Raise an error where the code at this point runs."""
        here = both(current(), self.alive())
        if here is True:
            raise make()
        try:
            with holding(refusals, []):  # its message may not be known now, but its type is
                error = make()
        except Untraceable:
            error = RuntimeError("an error with a random message")
        fail_where(self.alive(), error if isinstance(error, Exception) else error())
        self._returned = True

    def result(self) -> Any:
        """Return what the function returned; None where it ended without."""
        if self._returned is False or self._value is UNDEFINED:
            return None
        return self._value if self._returned is True else select(self._returned, self._value, None)

    def loop(self, items: Any) -> Iterator[Any]:
        """Yield the items of a loop while any sample is still in it."""
        flags: dict[str, Mask] = {"broken": False, "continued": False}
        self._loops.append(flags)
        self._by_parts.append(isinstance(items, Standing))
        for item, there, plate in segments(items):
            count_round()
            flags["continued"] = False
            if self.alive() is False:
                break
            ended = self._returned, flags["broken"]
            flags["continued"] = both(self.alive(), negated(there))
            self._plates.append(plate)
            yield item
            self._plates.pop()
            if plate is not None and (self._returned is not ended[0] or flags["broken"] is not ended[1]):
                refuse("a loop over many rows that may end early")
        flags["continued"] = False

    @property
    def for_many(self) -> bool:
        """Whether the innermost loop's body is being traced once for many rows."""
        return self._plates[-1] is not None

    @property
    def by_parts(self) -> bool:
        """Whether the innermost loop goes through parts of a frame, which cannot be alternatives of one variable."""
        return self._by_parts[-1]

    def carried(self, *values: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the variables that a loop's body assigns, as it may use them."""
        return accumulators.carried(values)

    def lost(self, *values: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the variables that each row has for itself as they are outside its round."""
        return (accumulators.LOST,) * len(values)

    def folded(self, *values: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the variables that a loop's body assigned, as they are after all rows."""
        assert self._plates[-1] is not None
        return accumulators.folded(values, self._plates[-1])

    def carry_items(self, *containers: Callable[[], Any]) -> None:
        """Let the numbers in containers grow that a loop's body adds to."""
        for container in containers:
            accumulators.carry_items(container())

    def fold_items(self, *containers: Callable[[], Any]) -> None:
        """Put back the numbers that grew, as they are after all rows."""
        assert self._plates[-1] is not None
        for container in containers:
            accumulators.fold_items(container(), self._plates[-1])

    def end_loop(self) -> Mask:
        """Leave the loop; return for which samples it was not broken off."""
        self._by_parts.pop()
        return negated(self._loops.pop()["broken"])

    def while_true(self, test: Callable[[], Any]) -> Iterator[None]:
        """Yield while the condition holds for any sample.

        Where it is random there is no end to be seen: the program fails for samples that take very many rounds.
        """
        flags: dict[str, Mask] = {"broken": False, "continued": False}
        self._loops.append(flags)
        self._by_parts.append(False)
        running: Mask = True
        rounds = 0
        while True:
            count_round()
            flags["continued"] = False
            here = both(self.alive(), running)
            if here is False:
                break
            if rounds == MOST_RANDOM_ROUNDS:
                leave_loop()
                break
            with under(here):
                running = both(running, truth(test()))
            flags["continued"] = both(self.alive(), negated(running))
            if both(self.alive(), running) is False:
                break
            rounds += both(self.alive(), running) is not True
            yield
        flags["continued"] = False
        fail_where(both(self.alive(), running), ProgramError("a loop of more rounds than can be traced"))

    def break_off(self) -> None:
        """Leave the loop where the code at this point runs."""
        self._loops[-1]["broken"] = True

    def go_on(self) -> None:
        """Start the loop's next round where the code at this point runs."""
        self._loops[-1]["continued"] = True

    def grow(self, value: Any, more: Any) -> Any:
        """Return `value + more`; a list grows in place, for everyone who holds it."""
        here = both(current(), self.alive())
        if not isinstance(value, list):
            return value + more
        if here is not True and not isinstance(value, MaskedList):
            refuse("a list that grows under a random condition")
        for item, there in iterate(more):
            if isinstance(value, MaskedList):
                value.add(item, both(here, there))
            elif there is True:
                value.append(item)
            else:
                refuse("a list that grows by a list of random length")
        return value

    def assign(self, value: Any, old: Callable[[], Any]) -> Any:
        """Return the new value of a variable: changed only where the code at this point runs."""
        here = both(current(), self.alive())
        return value if here is True else select(here, value, _current_value(old))

    def set_item(self, container: Any, key: Any, value: Any, fresh: bool = False) -> None:
        """Assign to a subscript where the code at this point runs; a fresh value has no other name."""
        _set_item(container, key, value, both(current(), self.alive()), fresh)

    def set_attribute(self, thing: Any, name: str, value: Any) -> None:
        """Assign to an attribute where the code at this point runs."""
        here = both(current(), self.alive())
        if current_plate.get() is not None:
            refuse("an attribute that each of many rows sets")
        setattr(thing, name, value if here is True else select(here, value, getattr(thing, name, UNDEFINED)))

    def plainly(self, what: str) -> None:
        """Refuse a statement that cannot be run for some samples only."""
        if both(current(), self.alive()) is not True:
            refuse(f"{what} under a random condition")


def _set_item(container: Any, key: Any, value: Any, here: Mask, fresh: bool = False) -> None:
    if isinstance(container, OneOf):
        for mask, target in container.targets:
            with under(mask):
                _set_item(target, key, value, both(here, mask))
    elif isinstance(container, Merged):
        refuse("a change of one of several dictionaries")
    elif isinstance(container, MaskedDict):
        container.put(key, value, here, fresh)
    elif isinstance(container, Standing):
        if here is not True or current_plate.get() is not None:
            refuse("a change of a frame under a random condition")
        container[key] = value
    elif current_plate.get() is not getattr(container, "plate", None) and not isinstance(value, Accumulator):
        refuse("a container that each of many rows changes")
    elif has_random(key):
        _set_random_item(container, key, value, here)
    elif here is True:
        container[key] = value
    else:
        try:
            old = container[key]
        except (KeyError, IndexError):
            refuse("a new dictionary entry under a random condition")
        container[key] = select(here, value, old)


def _set_random_item(container: Any, key: Any, value: Any, here: Mask) -> None:
    if isinstance(container, dict):
        hits = alternatives(key)
        if any(level not in container for level in hits):
            refuse("a new dictionary entry with a random key")
    elif isinstance(container, list):
        hits = {position: positioned(key, position, len(container)) for position in range(len(container))}
        with under(here):
            fail_where(negated(any_of(list(hits.values()))), IndexError("list assignment index out of range"))
    else:
        refuse("an assignment to a random subscript")
    for level, hit in hits.items():
        container[level] = select(both(here, hit), value, container[level])


def _merge(condition: Mask, taken: Mask, otherwise: Mask) -> Mask:
    """Merge a flag that is relative to each branch into one relative to both."""
    if isinstance(taken, bool) and isinstance(otherwise, bool):
        if taken == otherwise:
            return taken
        return condition if taken else negated(condition)
    return either(both(condition, taken), both(negated(condition), otherwise))


def _joined(before: list[Mask], position: int, alive: Mask, flag: Mask) -> Mask:
    """Merge a flag set in the rest of a block with what it was before; a sample has at most one flag set."""
    if flag is True:
        others = [other for k, other in enumerate(before) if k != position]
        return negated(any_of(others))
    return either(before[position], both(alive, flag))


def _current_value(old: Callable[[], Any]) -> Any:
    try:
        return old()
    except NameError:
        return UNDEFINED
