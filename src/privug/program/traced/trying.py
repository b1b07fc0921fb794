"""`try` statements in rewritten programs: the body, then handlers where it failed and `else` where it did not.

The body is traced under the condition under which the statement runs. What fails in it for some samples narrows that
condition; an error that is really raised ends what is traced, for all samples that are there. Each branch on a
random condition is a `Block`, so that such an error ends that branch alone.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, TracebackType
from typing import Any, Protocol

from privug.model.categories import outcomes
from privug.model.diverting import diversions
from privug.model.node import fallible
from privug.model.variable import path_condition, refuse
from privug.program.traced.conditions import (
    Attempt,
    Mask,
    any_of,
    attempt_for,
    attempts,
    caught_so_far,
    current,
    fail_where,
    leave_out,
    merge,
    negated,
    under,
)
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
