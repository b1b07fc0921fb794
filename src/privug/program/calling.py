"""Calls from rewritten programs: library functions lifted, the user's own functions rewritten too."""

import functools
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

from privug.model.table import Table
from privug.model.variable import RandomVariable, refuse, stack_values
from privug.program import control, masks
from privug.program.functions import CALLING, LIFTED, TAKING_ITERATORS, holds_random
from privug.program.masks import MaskedList
from privug.program.rewriting import RUNTIME, rewritten_code

_LIBRARY = tuple(filter(None, (sysconfig.get_paths().get(name) for name in ("stdlib", "purelib", "platlib"))))

_MUTATORS = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "add", "discard", "update",
    "setdefault", "popitem", "appendleft", "popleft",
}  # fmt: skip


def call(function: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function from rewritten code."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, list | dict | set) and function.__name__ in _MUTATORS and masks.current() is not True:
        return _mutate(owner, function, arguments)
    lifted = _lifted_version(function)
    if lifted is not None:
        if function in TAKING_ITERATORS and len(arguments) == 1 and hasattr(arguments[0], "__next__"):
            arguments = (MaskedList(arguments[0]),)
        if function is len or any(holds_random(argument) for argument in (*arguments, *named.values())):
            return lifted(*arguments, **named)
        return function(*arguments, **named)
    if (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy":
        return function(*map(_stacked, arguments), **named)
    own = rewritten(function)
    if own is function and any(isinstance(a, MaskedList) and not a.is_certain for a in arguments):
        refuse(f"{getattr(function, '__name__', 'a function')} of a list of random length")
    return own(*arguments, **named)


def _lifted_version(function: Any) -> Callable[..., Any] | None:
    try:
        if function in CALLING:
            return functools.partial(CALLING[function], call)
        return LIFTED.get(function)
    except TypeError:  # not hashable
        return None


def _stacked(argument: Any) -> Any:
    """Turn a list of random numbers into one random array for NumPy."""
    if isinstance(argument, MaskedList) and not argument.is_certain:
        refuse("a NumPy function of a list of random length")
    if isinstance(argument, list | tuple) and argument and holds_random(argument):
        parts = [_stacked(part) for part in argument]
        return RandomVariable(stack_values(parts))
    return argument


def _mutate(owner: Any, method: Any, arguments: tuple[Any, ...]) -> None:
    """Change a container under a random condition: only a list made by the program itself can take that."""
    if isinstance(owner, MaskedList) and method.__name__ == "append":
        owner.add(arguments[0], masks.current())
        return
    refuse(f"{method.__name__}() under a random condition")


class Runtime:
    """What rewritten code finds under the name `__privug__`."""

    Frame = control.Frame
    and_ = staticmethod(control.and_)
    or_ = staticmethod(control.or_)
    not_ = staticmethod(control.not_)
    choose = staticmethod(control.choose)
    compare = staticmethod(control.compare)
    filtered = staticmethod(control.filtered)
    call = staticmethod(call)
    subscript = staticmethod(control.subscript)
    items = staticmethod(masks.items)
    List = masks.MaskedList


def rewritten(function: Any) -> Any:
    """Return the rewritten version of a user's function; anything else as it is."""
    if isinstance(function, types.MethodType):
        return functools.partial(rewritten(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(rewritten(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or not _is_users_own(function):
        return function
    if RUNTIME in function.__code__.co_freevars:  # a nested function of one that was rewritten
        return function
    code = rewritten_code(function.__code__)
    if code is None:
        return function
    if isinstance(code, str):
        return functools.partial(_refused, function, code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(Runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    copy = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _refused(function: Any, obstacle: str, *arguments: Any, **named: Any) -> Any:
    """Call a function that cannot be rewritten: fine on plain values, refused on random ones."""
    if (
        masks.current() is not True
        or any(map(holds_random, (*arguments, *named.values())))
        or any(isinstance(argument, Table) for argument in arguments)
    ):
        refuse(obstacle)
    return function(*arguments, **named)


def _is_users_own(function: types.FunctionType) -> bool:
    """Say whether a function is the user's code, not a library's."""
    name = function.__code__.co_filename
    module = (function.__module__ or "").partition(".")[0]
    if module in ("privug", *sys.stdlib_module_names) and module != "__main__" and not module.startswith("test"):
        return module == "privug" and "running_example" in (function.__module__ or "")
    return not name.startswith(_LIBRARY) and "site-packages" not in name
