"""Control flow of rewritten programs: branches, loops and `try` statements go both ways where that is random.

The body is traced under the condition under which the statement runs. What fails in it for some samples narrows that
condition; an error that is really raised ends what is traced, for all samples that are there. Each branch on a
random condition is a `Block`, so that such an error ends that branch alone.

A random `if` runs both branches, each under its condition. Assignments, list appends and subscript
assignments take effect only where the condition holds; `return`, `break` and `continue` are remembered as
masks. With plain conditions everything behaves as in Python.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, TracebackType
from typing import Any, Protocol

from privug.errors import ProgramError, Untraceable
from privug.model.categories import outcomes
from privug.model.conditions import Mask, any_of, merge, negated
from privug.model.failures import diversions
from privug.model.node import count_round, fallible, leave_loop
from privug.model.plates import Plate, current_plate
from privug.model.variable import path_condition, refusals, refuse
from privug.program.traced.conditions import (
    Attempt,
    attempt_for,
    attempts,
    caught_so_far,
    current,
    fail_where,
    leave_out,
    under,
)
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.iteration import iterate, positions_in, segments
from privug.program.traced.keyed import changed_by_rows, open_round
from privug.program.traced.keys import alternatives, has_random, positioned
from privug.program.traced.laws import after_all_rows
from privug.program.traced.masks import (
    UNDEFINED,
    MaskedList,
    OneOf,
    OneOfDicts,
    Standing,
    both,
    either,
    select,
    truth,
)
from privug.program.traced.slots import FORBIDDEN, LOST, carried, set_aside
from privug.scoping import holding

_KNOWN = ZeroDivisionError, OverflowError, LookupError, ValueError
_PLAIN_CODE = {f"privug.program.traced.{name}" for name in ("calling", "dictionaries", "expressions", "masks")}
_RAISING: set[CodeType] = {fail_where.__code__, outcomes.__code__}


class Flow(Protocol):
    """What a frame tells of control flow: flags, and which loops are under way."""

    def flags(self) -> list[Mask]:
        """Return what has been returned, broken off and gone on."""

    def set_flags(self, flags: list[Mask]) -> None:
        """Set these."""

    def depth(self) -> tuple[int, ...]:
        """Return how many loops are under way."""

    def unwind(self, depth: tuple[int, ...]) -> None:
        """Leave loops that an error ended."""


def raises(code: Callable[..., Any]) -> None:
    """Say that a function raises what the program itself raises."""
    _RAISING.add(code.__code__)


def _is_certain(error: BaseException) -> bool:
    """Say whether an error that was raised while tracing is one that the program raises for all samples at hand.

    It is if the program raises it, or if plain values gave it. Other errors may have come of what stands for a value.
    """
    trace, inner = error.__traceback__, None
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__")).startswith("privug."):
            inner = trace.tb_frame
        trace = trace.tb_next
    if inner is not None and inner.f_code in _RAISING:
        return True
    plain = inner is None or inner.f_globals["__name__"] in _PLAIN_CODE
    return plain and isinstance(error, _KNOWN)


def _caught(error: BaseException | None) -> Attempt | None:
    """Return the `try` that catches an error, if any; an error that tracing may have made is refused."""
    attempt = None if error is None else attempt_for(type(error))
    if attempt is not None and error is not None and not _is_certain(error):
        refuse(f"{type(error).__name__} ({error}) inside 'try'")
    return attempt


class Block:
    """A block that runs under a condition: not at all, as it is, or under a random one.

    `after` is called at its end if the condition is random. An error that is really raised then ends this block and
    nothing else, if it is one that is caught.
    """

    def __init__(self, flow: Flow | None, mask: Mask, after: Callable[[], None] | None = None) -> None:
        self._flow, self._mask, self._after = flow, mask, after

    def __enter__(self) -> bool:
        if isinstance(self._mask, bool):
            return self._mask
        self._depth = () if self._flow is None else self._flow.depth()
        self._under = under(self._mask)
        self._under.__enter__()
        return True

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(self._mask, bool):
            return False
        attempt = _caught(error)
        if error is not None and attempt is None:
            self._under.__exit__(kind, error, trace)
            return False
        if attempt is not None:
            assert isinstance(error, Exception)
            attempt.catch(current(), error)
            if self._flow is not None:
                self._flow.unwind(self._depth)
        self._under.__exit__(None, None, None)
        if self._after is not None:
            self._after()
        return attempt is not None


class TryStatement:
    """One `try` statement as it is run: a context manager for its body, and what follows."""

    def __init__(self, flow: Flow, kinds: Sequence[Callable[[], Any] | None]) -> None:
        self._flow = flow
        self._attempt = Attempt([_classes(kind) for kind in kinds])
        self._entry, self._depth, self._outside = path_condition.get(), flow.depth(), caught_so_far()
        self._ended = False  # whether nobody came to the end of the body
        self._for_all = False  # whether all came to a handler of this statement

    def __enter__(self) -> None:
        self._body = ExitStack()
        noted = fallible.get()
        self._fallible = 0 if noted is None else len(noted)
        for held in (
            holding(attempts, (*attempts.get(), self._attempt)),
            holding(diversions, self._attempt),
        ):
            self._body.enter_context(held)

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> bool:
        attempt = _caught(error)
        if attempt is self._attempt or (attempt is not None and self._attempt.masks):
            # One of an outer `try` goes no further either, if a handler of this one has something to do.
            assert isinstance(error, Exception)
            attempt.catch(current(), error)
            self._ended, self._for_all = True, attempt is self._attempt
        self._body.close()
        if error is None or self._ended:
            self._flow.unwind(self._depth)
            self._refuse_unknown()
            self._go_back()
        return self._ended

    def _go_back(self) -> None:
        """Go on under the condition of the statement, but where an outer `try` caught something."""
        path_condition.set(self._entry)
        leave_out(self._outside)

    def _refuse_unknown(self) -> None:
        """Refuse operations of which it is not known where they fail: control flow would depend on that."""
        for node in (fallible.get() or ())[self._fallible :]:
            if id(node) not in self._attempt.known:
                refuse(f"something that may fail ({type(node.operation).__name__}), inside 'try',")

    def otherwise(self) -> Block:
        """Return what runs where nothing failed: `else`."""
        failed = any_of([failure.mask for failures in self._attempt.failures for failure in failures])
        return Block(self._flow, not self._ended and negated(failed))

    def caught(self, place: int) -> Block:
        """Return what runs where the body failed with an error that a handler catches."""
        failures, flow = self._attempt.failures, self._flow
        mask = any_of([failure.mask for failure in failures[place]])
        if mask is False:
            return Block(flow, False)
        before = flow.flags()
        flow.set_flags([False] * len(before))
        if self._for_all and sum(map(bool, failures)) == 1:
            return Block(flow, True)
        return Block(flow, mask, lambda: self._meet(mask, before))

    def _meet(self, mask: Mask, before: list[Mask]) -> None:
        pairs = zip(self._flow.flags(), before, strict=True)
        self._flow.set_flags([merge(mask, *pair) for pair in pairs])

    def again(self, place: int) -> None:
        """Raise what a handler caught once more."""
        for failure in self._attempt.failures[place]:
            if failure.mask is True or (self._ended and len(self._attempt.masks) == 1):
                raise failure.error
            fail_where(failure.mask, failure.error)

    @contextmanager
    def finally_(self) -> Iterator[bool]:
        """Run what follows for all samples that came to the statement."""
        flow = self._flow
        flow.unwind(self._depth)
        flags, before = flow.flags(), caught_so_far()
        flow.set_flags([False] * len(flags))
        with holding(path_condition, self._entry):
            yield True
        flow.set_flags(flags)
        if leave_out(before) and before != self._outside:
            refuse("an error inside 'finally' where there was one before")


def refuse_stream(items: Any) -> None:
    """Refuse to put a generator into a container inside `try`: Python keeps what came before a failure."""
    if attempts.get() and (getattr(items, "is_iterator", False) or hasattr(items, "__next__")):
        refuse("a container that grows by a generator, inside 'try',")


def _classes(kind: Callable[[], Any] | None) -> Any:
    """Return the classes of errors that a handler catches."""
    classes = Exception if kind is None else kind()
    parts = classes if isinstance(classes, tuple) else (classes,)
    if not all(isinstance(part, type) and issubclass(part, BaseException) for part in parts):
        refuse("a handler of something that is no class of errors")
    return parts


raises(TryStatement.again)


MOST_RANDOM_ROUNDS = 64


class Activation:
    """One activation of a rewritten function: what has been returned, and which loops are under way."""

    def __init__(self) -> None:
        count_round()
        self._value: Any = UNDEFINED
        self._returned: Mask = False
        self._loops: list[dict[str, Mask]] = []
        self._by_parts: list[bool] = []
        self._plates: list[Plate | None] = []
        self._entered: list[Any] = []  # the variables of a loop over many rows, as the row at hand finds them

    # Three flags: returned, and broken off or gone on in the innermost loop. They are relative to the branch
    # they are set in, all false where a statement starts, and merged where branches meet.
    def flags(self) -> list[Mask]:
        """Return the flags."""
        loop = self._loops[-1:]
        return [self._returned, *(flag for inner in loop for flag in (inner["broken"], inner["continued"]))]

    def set_flags(self, flags: list[Mask]) -> None:
        """Set the flags."""
        self._returned = flags[0]
        if self._loops:
            self._loops[-1].update(broken=flags[1], continued=flags[2])

    def alive(self) -> Mask:
        """Return for which samples the code at this point still runs."""
        gone = self._returned
        for loop in self._loops[-1:]:
            gone = either(gone, either(loop["broken"], loop["continued"]))
        return negated(gone)

    def choice(self, test: Any, has_else: bool) -> "Choice":
        """Return the branches to run: one for a plain condition, both for a random one."""
        return Choice(self, truth(test), has_else)

    def rest(self) -> Block:
        """Return the rest of a block, to be run where nothing before it returned, broke off or went on."""
        alive, before = self.alive(), self.flags()
        if isinstance(alive, bool):
            return Block(self, alive)
        self.set_flags([False] * len(before))
        return Block(self, alive, lambda: self._join(before, alive))

    def _join(self, before: list[Mask], alive: Mask) -> None:
        self.set_flags([_joined(before, k, alive, flag) for k, flag in enumerate(self.flags())])

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

    def fail(self, make: Callable[[], Any], kind: Any = None) -> None:
        """Raise an error where the code at this point runs; of a random message only the class is known."""
        here, alive = both(current(), self.alive()), self.alive()
        error = _made(make, kind)
        if here is True:
            raise error
        fail_where(alive, error)
        self._returned = True

    def fail_again(self, statement: TryStatement, place: int) -> None:
        """Raise what a handler caught once more, where the code at this point runs."""
        with under(self.alive()):
            statement.again(place)
        self._returned = True

    def attempt(self, *kinds: Callable[[], Any] | None) -> TryStatement:
        """Return a `try` statement with handlers of some kinds of errors."""
        return TryStatement(self, kinds)

    def depth(self) -> tuple[int, ...]:
        """Return how many loops are under way."""
        return len(self._loops), len(self._by_parts), len(self._plates)

    def unwind(self, depth: tuple[int, ...]) -> None:
        """Leave loops that an error ended."""
        for held, length in zip((self._loops, self._by_parts, self._plates), depth, strict=True):
            del held[length:]  # type: ignore[attr-defined]

    def result(self) -> Any:
        """Return what the function returned; None where it ended without."""
        if self._returned is False or self._value is UNDEFINED:
            return None
        return self._value if self._returned is True else select(self._returned, self._value, None)

    def loop(self, items: Any, *numbered: Callable[[], Any]) -> Iterator[Any]:
        """Yield the items of a loop while any sample is still in it; they may be positions in some tables."""
        items = positions_in(items, numbered)
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
            self._entered = []
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

    def carried(self, *values: Callable[[], Any]) -> list[Any]:
        """Return the variables that a loop's body reads and assigns, as it may use them."""
        return self._enter(
            [FORBIDDEN if one is UNDEFINED else carried(one, self._plate) for one in map(_current_value, values)]
        )

    def set_aside(self, *values: Callable[[], Any]) -> list[Any]:
        """Return the variables that a loop's body only assigns, as it may use them."""
        return self._enter(
            [LOST if one is UNDEFINED else set_aside(one, self._plate) for one in map(_current_value, values)]
        )

    def _enter(self, variables: list[Any]) -> list[Any]:
        self._entered += variables
        return variables

    def lost(self, *values: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the variables that each row has for itself as they are outside its round."""
        return (LOST,) * len(values)

    def folded(self, *values: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the variables that a loop's body assigned, as they are after all rows."""
        entered, self._entered = self._entered, []
        last = [LOST if one is UNDEFINED else one for one in map(_current_value, values)]
        return after_all_rows(self._plate, entered, last)

    @property
    def _plate(self) -> Plate:
        plate = self._plates[-1]
        assert plate is not None
        return plate

    def changing(self, *containers: Callable[[], Any]) -> None:
        """Say which containers a loop's body changes, before it looks at them."""
        for container in containers:
            try:
                open_round(container())
            except NameError:  # made inside the loop
                continue

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
        refuse_stream(more)
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


raises(Activation.fail)


class Choice:
    """An `if` statement: what runs where its condition holds, and what runs elsewhere."""

    def __init__(self, frame: Activation, condition: Mask, has_else: bool) -> None:
        self._frame, self._condition, self._has_else = frame, condition, has_else
        self._before = self._taken = frame.flags()

    def yes(self) -> Block:
        """Return the first branch."""
        return Block(self._frame, self._condition, self._after_first)

    def _after_first(self) -> None:
        self._taken = self._frame.flags()
        self._frame.set_flags(self._before)
        if not self._has_else:
            self._meet()

    def no(self) -> Block:
        """Return the second branch."""
        return Block(self._frame, negated(self._condition), self._meet)

    def _meet(self) -> None:
        pairs = zip(self._taken, self._frame.flags(), strict=True)
        self._frame.set_flags([merge(self._condition, *pair) for pair in pairs])


def _made(make: Callable[[], Any], kind: Any) -> Exception:
    """Make an error; its message may not be known now, but its class is."""
    try:
        with holding(refusals, []):
            made = make()
            error: Exception = made if isinstance(made, Exception) else made()
            str(error)
    except Untraceable:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            if attempts.get():  # its class matters
                make()
            kind = RuntimeError
        error = kind.__new__(kind, "an error with a random message")
    return error


def _set_item(container: Any, key: Any, value: Any, here: Mask, fresh: bool = False) -> None:
    if isinstance(container, OneOf):
        for mask, target in container.targets:
            with under(mask):
                _set_item(target, key, value, both(here, mask))
    elif isinstance(container, OneOfDicts):
        refuse("a change of one of several dictionaries")
    elif isinstance(container, MaskedDict):
        container.put(key, value, here, fresh)
    elif isinstance(container, Standing):
        if here is not True or current_plate.get() is not None:
            refuse("a change of a frame under a random condition")
        container[key] = value
    elif (by_rows := changed_by_rows(container)) is not None:
        by_rows.write(key, value, here)
    elif current_plate.get() is not getattr(container, "plate", None):
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
