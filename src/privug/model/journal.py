"""The journal of a run: what keeps the results of tasks, so that a run which was ended goes on where it was."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Protocol, TypeVar

from privug.scoping import holding

Task = TypeVar("Task")
Result = TypeVar("Result")


class Journal(Protocol):
    """Keeps the results of tasks that were done, and gives them back."""

    def results(
        self,
        name: str,
        tasks: Sequence[Task],
        compute: Callable[[Sequence[Task]], Iterator[Result]],
    ) -> Iterator[Result]:
        """Yield the results of all tasks in order: those that are kept, and the others as they are computed."""


_current: ContextVar[Journal | None] = ContextVar("journal", default=None)


def current() -> Journal | None:
    """Return the journal of the run at hand, if it has one."""
    return _current.get()


def keeping(journal: Journal | None) -> holding[Journal | None]:
    """Keep the results of the tasks inside a `with` block in a journal."""
    return holding(_current, journal)


def unkept(work: Callable[[Task], Result], task: Task) -> Result:
    """Do a task that is kept as a whole: the tasks that it is made of are its own business."""
    with keeping(None):
        return work(task)
