"""Functions by the names of their releases."""

from collections.abc import Callable


class Register(dict[str, Callable]):
    """A table of functions into which a decorator enters them."""

    def of(self, name: str) -> Callable[[Callable], Callable]:
        """Enter a function under the name of its release."""

        def enter(function: Callable) -> Callable:
            self[name] = function
            return function

        return enter
