"""What stands for an object of a library while a program is traced: a data frame, a column, a group-by."""

from abc import abstractmethod
from typing import Any, NoReturn

from privug.model.variable import Columns, refuse
from privug.program.traced.masks import Mask, Masked


class OfStanding:
    """A part of what stands for an object: an accessor."""


class Standing(Columns, Masked):
    """An object of a library in terms of random variables; what it does not know is refused by name."""

    kind = "an object"
    """What it stands for, in messages."""

    @abstractmethod
    def listing(self) -> Any:
        """Return what iteration gives, as a list of rewritten programs."""

    def contains(self, item: Any) -> Mask:
        """Return whether something is in it."""
        return refuse(f"'in' of {self.kind}")

    def length(self) -> Any:
        """Return its len()."""
        return refuse(f"len() of {self.kind}")

    def pairs(self) -> list[tuple[Any, Mask]]:
        found: list[tuple[Any, Mask]] = self.listing().pairs()
        return found

    def some_there(self) -> Mask:
        return refuse(f"the truth of {self.kind}")

    @property
    def is_certain(self) -> bool:
        return False

    def plain(self) -> Any:
        return refuse(f"{self.kind} as output")

    def unknown(self, name: str) -> NoReturn:
        """Refuse a method or an option that is not known."""
        refuse(f"{self.kind}.{name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.unknown(name)

    def __iter__(self) -> Any:
        return iter(self.listing().plain())

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        self.unknown("__array__()")

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return refuse(f"np.{function.__name__} of {self.kind}")
