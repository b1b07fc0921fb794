"""What rewritten programs call at run time: control flow that goes both ways where a condition is random.

A random `if` runs both branches, each under its condition. Assignments, list appends and subscript
assignments take effect only where the condition holds; `return`, `break` and `continue` are remembered as
masks. With plain conditions everything behaves as in Python.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from privug.model.categories import map_levels
from privug.model.table import Row, Table
from privug.model.variable import RandomVariable, refuse, stack_values
from privug.program.masks import (
    UNDEFINED,
    Mask,
    MaskedList,
    any_of,
    both,
    current,
    either,
    item_mask,
    negated,
    select,
    truth,
    under,
)

MOST_ITERATIONS = 10_000


class Frame:
    """One activation of a rewritten function: what has been returned, and which loops are under way."""

    def __init__(self) -> None:
        self._value: Any = UNDEFINED
        self._returned: Mask = False
        self._loops: list[dict[str, Mask]] = []

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

    def result(self) -> Any:
        """Return what the function returned; None where it ended without."""
        if self._returned is False:
            return None
        return self._value if self._returned is True else select(self._returned, self._value, None)

    def loop(self, items: Any) -> Iterator[Any]:
        """Yield the items of a loop while any sample is still in it."""
        flags: dict[str, Mask] = {"broken": False, "continued": False}
        self._loops.append(flags)
        for item, there in iterate(items):
            flags["continued"] = False
            if self.alive() is False:
                break
            flags["continued"] = both(self.alive(), negated(there))
            yield item
        flags["continued"] = False

    def end_loop(self) -> Mask:
        """Leave the loop; return for which samples it was not broken off."""
        return negated(self._loops.pop()["broken"])

    def while_true(self, test: Callable[[], Any]) -> Iterator[None]:
        """Yield while a plain condition holds; a random one has no end that can be known."""
        for _ in self.loop(range(MOST_ITERATIONS)):
            condition = truth(test())
            if not isinstance(condition, bool):
                refuse("a while loop on a random condition")
            if not condition:
                return
            yield
        if self._loops[-1]["broken"] is not True and self._returned is not True:
            refuse(f"a while loop of more than {MOST_ITERATIONS} rounds")

    def break_off(self) -> None:
        """Leave the loop where the code at this point runs."""
        self._loops[-1]["broken"] = True

    def go_on(self) -> None:
        """Start the loop's next round where the code at this point runs."""
        self._loops[-1]["continued"] = True

    def grow(self, value: Any, more: Any) -> Any:
        """Return `value + more`; a list grows in place, for everyone who holds it."""
        here = both(current(), self.alive())
        if not isinstance(value, list) or isinstance(more, RandomVariable):
            return value + more
        if here is not True and not isinstance(value, MaskedList):
            refuse("a list that grows under a random condition")
        for item, there in iterate(more):
            if isinstance(value, MaskedList):
                value.add(item, both(here, there))
            else:
                value.append(item)
        return value

    def assign(self, value: Any, old: Callable[[], Any]) -> Any:
        """Return the new value of a variable: changed only where the code at this point runs."""
        here = both(current(), self.alive())
        return value if here is True else select(here, value, _current_value(old))

    def set_item(self, container: Any, key: Any, value: Any) -> None:
        """Assign to a subscript where the code at this point runs."""
        here = both(current(), self.alive())
        if isinstance(key, RandomVariable):
            self._set_random_item(container, key, value, here)
        elif here is True:
            container[key] = value
        else:
            try:
                old = container[key]
            except (KeyError, IndexError):
                refuse("a new dictionary entry under a random condition")
            container[key] = select(here, value, old)

    @staticmethod
    def _set_random_item(container: Any, key: RandomVariable, value: Any, here: Mask) -> None:
        if isinstance(container, dict) and key.node.levels is not None:
            if any(level not in container for level in key.node.levels):
                refuse("a new dictionary entry with a random key")
            for level in key.node.levels:
                container[level] = select(both(here, key == level), value, container[level])
        elif isinstance(container, list):
            for position, old in enumerate(list(container)):
                hit = both(here, (key == position) | (key == position - len(container)))
                container[position] = select(hit, value, old)
        else:
            refuse("an assignment to a random subscript")

    def set_attribute(self, thing: Any, name: str, value: Any) -> None:
        """Assign to an attribute where the code at this point runs."""
        here = both(current(), self.alive())
        setattr(thing, name, value if here is True else select(here, value, getattr(thing, name, UNDEFINED)))

    def plainly(self, what: str) -> None:
        """Refuse a statement that cannot be run for some samples only."""
        if both(current(), self.alive()) is not True:
            refuse(f"{what} under a random condition")


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


def iterate(items: Any) -> Iterator[tuple[Any, Mask]]:
    """Yield the items of anything iterable, each with the condition under which it is there."""
    if isinstance(items, MaskedList):
        yield from items.pairs()
    else:
        for item in items:
            yield item, True


def and_(*parts: Callable[[], Any]) -> Any:
    """Python's `and`: the first false value, or the last one; later parts run only where earlier ones hold."""
    value = parts[0]()
    for position, part in enumerate(parts[1:], 1):
        held = truth(value)
        if isinstance(held, bool):
            if not held:
                return value
            value = part()
            continue
        with under(held):
            rest = and_(*parts[position:])
        both_masks = _is_truth_value(value) and _is_truth_value(rest)
        return both(held, truth(rest)) if both_masks else select(held, rest, value)
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """Python's `or`: the first true value, or the last one; later parts run only where earlier ones fail."""
    value = parts[0]()
    for position, part in enumerate(parts[1:], 1):
        held = truth(value)
        if isinstance(held, bool):
            if held:
                return value
            value = part()
            continue
        with under(negated(held)):
            rest = or_(*parts[position:])
        both_masks = _is_truth_value(value) and _is_truth_value(rest)
        return either(held, truth(rest)) if both_masks else select(held, value, rest)
    return value


def _is_truth_value(value: Any) -> bool:
    if isinstance(value, RandomVariable):
        return value.node.levels is None and value.node.dtype == bool
    return isinstance(value, bool)


def not_(value: Any) -> Any:
    """Python's `not`."""
    return negated(truth(value))


def choose(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Python's conditional expression: `yes() if test else no()`."""
    condition = truth(test)
    if isinstance(condition, bool):
        return yes() if condition else no()
    with under(condition):
        taken = yes()
    with under(negated(condition)):
        otherwise = no()
    return select(condition, taken, otherwise)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
}  # fmt: skip


def compare(left: Any, *steps: tuple[str, Callable[[], Any]]) -> Any:
    """Compare a chain such as `low <= x < high`, or test membership."""
    name, right = steps[0]
    value = right()
    result = _compare_once(name, left, value)
    if len(steps) == 1:
        return result
    return and_(lambda: result, lambda: compare(value, *steps[1:]))


def _compare_once(name: str, left: Any, right: Any) -> Any:
    if name in ("In", "NotIn"):
        found = _contains(right, left)
        return found if name == "In" else not_(found)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and name in ("Eq", "NotEq"):
        same = _equal_sequences(left, right)
        return same if name == "Eq" else not_(same)
    return COMPARISONS[name](left, right)


def _equal_sequences(left: Any, right: Any) -> Any:
    if any(isinstance(side, MaskedList) and not side.is_certain for side in (left, right)):
        refuse("a comparison of lists of random length")
    if len(left) != len(right) or isinstance(left, list) != isinstance(right, list):
        return False
    return and_(lambda: True, *(_equality(a, b) for a, b in zip(left, right, strict=True)))


def _equality(left: Any, right: Any) -> Callable[[], Any]:
    return lambda: _compare_once("Eq", left, right)


def _contains(container: Any, item: Any) -> Any:
    if isinstance(container, RandomVariable):
        if container.node.levels is not None and container.node.shape == ():
            return RandomVariable(map_levels(container.node, lambda level: item in level))
        return (container == item).any()
    if isinstance(item, RandomVariable) and isinstance(container, str):
        return RandomVariable(map_levels(item.node, lambda level: level in container))
    random_inside = isinstance(container, list | tuple) and any(_holds_random(part) for part in container)
    if not _holds_random(item) and not random_inside and not isinstance(container, MaskedList):
        return item in container
    found: Mask = False
    for part, there in iterate(container):
        found = either(found, both(there, truth(_compare_once("Eq", item, part))))
    return found


def _holds_random(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_random(part) for part in value)
    return isinstance(value, RandomVariable)


def filtered(pairs: Iterable[tuple[Any, Callable[[], Any]]]) -> MaskedList:
    """Collect a comprehension whose condition may be random: pairs of a condition and the item."""
    collected = MaskedList()
    token = item_mask.set(True)
    try:
        for condition, item in pairs:
            held = truth(condition)
            if held is not False:
                with under(held):
                    collected.add(item(), both(item_mask.get(), held))
    finally:
        item_mask.reset(token)
    return collected


def subscript(container: Any, key: Any) -> Any:
    """Return `container[key]`, where the key may be random."""
    if not isinstance(key, RandomVariable) or isinstance(container, RandomVariable | Table):
        return container[key]
    if isinstance(container, dict) and key.node.levels is not None:
        return _dictionary_entry(container, key)
    if type(container) in (list, tuple, MaskedList):
        return _gathered(list(container), key)
    return container[key]


def _gathered(values: list[Any], key: RandomVariable) -> Any:
    """Return the item at a random position; rows and tuples position by position."""
    first = values[0] if values else None
    if isinstance(first, tuple) and all(type(value) is type(first) and len(value) == len(first) for value in values):
        parts = [_gathered([value[k] for value in values], key) for k in range(len(first))]
        return Row(**dict(zip(first.keys(), parts, strict=True))) if isinstance(first, Row) else tuple(parts)
    return RandomVariable(stack_values(values))[key]


def _dictionary_entry(table: dict[Any, Any], key: RandomVariable) -> Any:
    levels = key.node.levels or ()
    if current() is True and any(level not in table for level in levels):
        refuse("a dictionary that lacks some of the keys")
    value: Any = UNDEFINED
    for level in levels:
        if level in table:
            value = select(key == level, table[level], value)
    return value
