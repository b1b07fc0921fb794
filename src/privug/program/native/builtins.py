"""Built-in functions for compiled programs, which do what Python's do; they are compiled as programs are."""

from typing import Any


def larger(left: Any, right: Any) -> Any:
    """Python's `max(left, right)`."""
    return right if right > left else left


def smaller(left: Any, right: Any) -> Any:
    """Python's `min(left, right)`."""
    return right if right < left else left


def largest(items: Any) -> Any:
    """Python's `max(items)`; an empty sequence raises."""
    best = items[0]
    for item in items:
        if item > best:
            best = item
    return best


def smallest(items: Any) -> Any:
    """Python's `min(items)`; an empty sequence raises."""
    best = items[0]
    for item in items:
        if item < best:
            best = item
    return best


def total(items: Any) -> Any:
    """Python's `sum(items)`."""
    result = 0
    for item in items:
        result += item
    return result


def absolute(value: Any) -> Any:
    """Python's `abs(value)`."""
    if value == 0:
        return value * 0  # not the negative zero
    return -value if value < 0 else +value


def some(items: Any) -> Any:
    """Python's `any(items)`."""
    for item in items:  # noqa: SIM110 (compiled)
        if item:
            return True
    return False


def every(items: Any) -> Any:
    """Python's `all(items)`."""
    for item in items:  # noqa: SIM110 (compiled)
        if not item:
            return False
    return True


def ordered(items: Any) -> Any:
    """Python's `sorted(items)`; what is not a number has no place in the order and is left to Python."""
    result = [item for item in items]  # noqa: C416 (compiled)
    for item in result:
        if item != item:
            raise ValueError
    result.sort()
    return result


BUILTINS: dict[tuple[Any, int], Any] = {
    (max, 1): largest, (max, 2): larger, (min, 1): smallest, (min, 2): smaller, (sum, 1): total, (abs, 1): absolute,
    (any, 1): some, (all, 1): every, (sorted, 1): ordered,
}  # fmt: skip
