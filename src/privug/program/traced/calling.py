"""Calls from rewritten programs: library functions lifted, the user's own functions rewritten too."""

import functools
import inspect
import operator
import sysconfig
import time
import types
from collections import Counter, defaultdict
from collections.abc import Callable, ItemsView, ValuesView
from pathlib import Path
from typing import Any

import numpy as np

from privug.model.plates import current_plate
from privug.model.table import Table
from privug.model.variable import RandomVariable, refuse, stack_values
from privug.program.traced import control, dictionaries, expressions, iteration, masks, opaque
from privug.program.traced.conditions import attempts
from privug.program.traced.control import refuse_stream
from privug.program.traced.dictionaries import MaskedDict, MaskedSet
from privug.program.traced.frames.pandas.functions import FUNCTIONS
from privug.program.traced.frames.polars.expressions import FUNCTIONS as POLARS_FUNCTIONS
from privug.program.traced.frames.polars.expressions import real
from privug.program.traced.functions import (
    CALLING,
    CALLING_METHODS,
    KNOWN_OF_CALLED,
    LIFTED,
    METHODS,
    TAKING_ITERATORS,
    first,
    text,
    whole_array,
)
from privug.program.traced.iteration import PlatedList, holds_random
from privug.program.traced.keys import has_random
from privug.program.traced.masks import CallOnly, Masked, MaskedList, OfStanding, Standing
from privug.program.traced.rewriting import RUNTIME, rewritten_code
from privug.program.traced.selections import Selection, selection_of

_LIBRARY = (
    *filter(None, (sysconfig.get_paths().get(name) for name in ("stdlib", "purelib", "platlib"))),
    str(Path(__file__).parents[2]),  # Privug itself
)
_EXAMPLE = str(Path(__file__).parents[2] / "cli" / "running_example")  # stands for a program of the user's

_MUTATORS = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "add", "discard", "update",
    "setdefault", "popitem", "appendleft", "popleft",
}  # fmt: skip
SYSTEM = {
    "posix", "nt", "signal", "_signal", "subprocess", "shutil", "socket", "_socket", "ctypes", "multiprocessing",
    "faulthandler",
}  # fmt: skip


def call(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """Call a function from rewritten code."""
    owner = getattr(function, "__self__", None)
    if _library(function) == "polars":
        return _of_polars(function, arguments, named)
    if _library(function) in SYSTEM:  # both sides of a branch are traced, and this one may never be taken
        refuse(f"{function.__module__}.{function.__name__}(), which acts on the system,")
    if function is time.sleep and masks.current() is not True:
        refuse("time.sleep() under a random condition")
    if isinstance(owner, Standing | OfStanding) or _is_of_frames(function, arguments, named):
        return _of_frames(function, arguments, named)
    if isinstance(owner, Masked | list | dict | set | tuple):
        return _method(owner, function.__name__, arguments, named)
    if _is_container_type(function):
        return _made(function, arguments, named)
    lifted = _lifted_version(function)
    if lifted is not None and function not in KNOWN_OF_CALLED and any(isinstance(one, CallOnly) for one in arguments):
        return opaque.applied(function, *arguments, **named)
    if lifted is not None:
        if function not in (len, isinstance, type):
            arguments = tuple(part.listing() if isinstance(part, Standing) else part for part in arguments)
            arguments = tuple(list(part) if isinstance(part, ValuesView | ItemsView) else part for part in arguments)
        if function in TAKING_ITERATORS and len(arguments) == 1 and hasattr(arguments[0], "__next__"):
            arguments = (MaskedList(arguments[0]),)
        always = function in (len, isinstance, map, filter) or named.get("key") is not None
        if always or any(holds_random(argument) for argument in (*arguments, *named.values())):
            return lifted(*arguments, **named)
        return function(*arguments, **named)
    if _library(function) == "numpy":
        stacked = tuple(map(_stacked, arguments))
        if function in (np.array, np.asarray) and isinstance(stacked[0], Standing):
            return stacked[0].to_numpy()
        if function in (np.array, np.asarray) and not named and isinstance(stacked[0], RandomVariable | Selection):
            return stacked[0]
        return function(*stacked, **named)
    if _is_simple_class(function):
        made = object.__new__(function)
        call(function.__init__, made, *arguments, **named)
        return made
    if function is zip and any(map(_has_rows, arguments)):
        return iteration.zipped(arguments, **named)
    if function in (zip, iter):  # these look at one item at a time, as a loop does
        arguments = tuple(iter(part) if isinstance(part, MaskedList) else part for part in arguments)
    if _is_followed(function):
        return rewritten(function)(*arguments, **named)
    return opaque.tried(function, functools.partial(_called_plainly, function), arguments, named)


def _is_followed(function: Any) -> bool:
    """Say whether a function is traced itself when it is called."""
    while isinstance(function, functools.partial | types.MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    code = getattr(function, "__code__", None)
    return rewritten(function) is not function or RUNTIME in getattr(code, "co_freevars", ())


def _called_plainly(function: Any, *arguments: Any, **named: Any) -> Any:
    return function(*map(_plain, arguments), **{name: _plain(argument) for name, argument in named.items()})


def _has_rows(value: Any) -> bool:
    """Say whether items are those of a column, or there under conditions as some elements of an array are."""
    uncertain = isinstance(value, MaskedList) and not value.is_certain
    return uncertain or isinstance(value, Standing | Selection)


def _is_of_frames(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Say whether this is a function of pandas, called on what stands for its objects or on something random."""
    return _library(function) == "pandas" and any(map(holds_random, (*arguments, *named.values())))


def _library(function: Any) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def _of_polars(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a function of polars: those that make expressions make traced ones, others are for plain values only."""
    known = isinstance(function, types.FunctionType | types.MethodType | type)
    name = function.__name__ if known else type(function).__name__.lower()  # pl.col is an object that has any attribute
    owner = function.__self__ if isinstance(function, types.MethodType) else None
    if owner is None and name in POLARS_FUNCTIONS:
        return _of_frames(POLARS_FUNCTIONS[name], arguments, named)
    what = f"{'pl' if owner is None else type(owner).__name__}.{name}"
    given = [real(argument, what) for argument in arguments]
    options = {key: real(value, what) for key, value in named.items()}
    if any(map(holds_random, (*given, *options.values()))):
        refuse(f"{what} of something random")
    return function(*map(_plain, given), **{key: _plain(value) for key, value in options.items()})


def _of_frames(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a method of what stands for a frame, or a function of its library; functions it is given are rewritten."""
    if _library(function) == "pandas":
        name = getattr(function, "__name__", "?")
        function = FUNCTIONS.get(name) or refuse(f"pd.{name}")
    given, options = [*map(_handed, arguments)], {name: _handed(argument) for name, argument in named.items()}
    if isinstance(function, types.FunctionType | types.MethodType):
        try:
            inspect.signature(function).bind(*given, **options)
        except TypeError:
            owner = getattr(getattr(function, "__self__", None), "kind", "pd")
            refuse(f"{owner}.{function.__name__.strip('_')}() with {', '.join(options) or 'such arguments'}")
    return function(*given, **options)


def _handed(argument: Any) -> Any:
    """Return an argument as methods of frames take it: plain containers, and functions that can be traced."""
    if isinstance(argument, MaskedList) and argument.is_certain:
        return [_handed(part) for part in argument.plain()]
    if isinstance(argument, MaskedDict) and argument.is_certain:
        return argument.plain()
    if isinstance(argument, types.FunctionType | types.MethodType | functools.partial):
        return functools.partial(call, argument) if rewritten(argument) is not argument else argument
    return argument


def _is_simple_class(function: Any) -> bool:
    """Say whether calling a class of the user's does no more than to call `__init__` on a new object."""
    start = getattr(function, "__init__", None)
    return (
        type(function) is type
        and isinstance(start, types.FunctionType)
        and is_users_own(start)
        and getattr(function, "__new__", None) is object.__new__
    )


def method(owner: Any, name: str, /, *arguments: Any, **named: Any) -> Any:
    """Call a method from rewritten code."""
    if isinstance(owner, CallOnly):
        return opaque.method(owner, name, *arguments, **named)
    is_category = isinstance(owner, RandomVariable) and owner.node.levels is not None and owner.node.shape == ()
    if is_category and not any(holds_random(argument) for argument in (*arguments, *named.values())):
        return opaque.of_levels(owner.node, lambda level: getattr(level, name)(*arguments, **named))
    if isinstance(owner, Standing):
        return _of_frames(getattr(owner, name), arguments, named)
    if isinstance(owner, Masked | list | dict | set | tuple):
        return _method(owner, name, arguments, named)
    return call(getattr(owner, name), *arguments, **named)


def percent(form: Any, values: Any) -> Any:
    """Return `form % values` for a text."""
    return call(operator.mod, form, values)


def setdefault(owner: Any, key: Any, make: Callable[[], Any]) -> Any:
    """Call `owner.setdefault(key, [...])` from rewritten code: each missing entry gets a list of its own."""
    if not isinstance(owner, MaskedDict):
        return method(owner, "setdefault", key, make())
    return owner.filled_at(key, make)


def _method(owner: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a method of a container."""
    for argument in arguments if name in _MUTATORS else ():
        refuse_stream(argument)
    if isinstance(owner, MaskedDict | MaskedSet) and name not in CALLING_METHODS:
        return getattr(owner, name)(*arguments, **named)
    if isinstance(owner, MaskedList | PlatedList) and name in ("append", "extend"):
        for item, there in iteration.iterate(arguments[0]) if name == "extend" else [(arguments[0], True)]:
            owner.add(item, masks.both(masks.current(), there))
        return None
    if name in _MUTATORS and masks.current() is not True:
        return refuse(f"{name}() under a random condition")
    if name in _MUTATORS and current_plate.get() is not None:
        return refuse(f"{name}() for each of many rows")
    if name == "sort" and named.get("key") is not None and attempts.get():
        return refuse("sort() by a key, inside 'try',")
    if holds_random(owner) or any(map(holds_random, (*arguments, *named.values()))):
        if name in METHODS and isinstance(owner, list | tuple):
            return METHODS[name](owner, *arguments, **named)
        if name in CALLING_METHODS:
            return CALLING_METHODS[name](call, owner, *arguments, **named)
        if name == "get" and isinstance(owner, dict):
            return _got(owner, *arguments)
    return rewritten(getattr(owner, name))(*arguments, **named)


def _got(owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """Return the entry of a plain dictionary at a random key."""
    return masks.select(expressions.contains(owner, key), expressions.entry(owner, key, checked=False), default)


def _is_container_type(function: Any) -> bool:
    return any(function is kind for kind in (list, tuple, dict, set, Counter, defaultdict))


def _made(kind: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Make a container of the program's own."""
    items = arguments[0] if arguments else ()
    if kind is defaultdict and len(arguments) == 1 and not named:
        return MaskedDict(default=lambda: None if items is None else call(items)) if items else MaskedDict()
    if kind is Counter and not named and not isinstance(items, dict | MaskedDict):
        return MaskedDict(counting=True).count(iteration.segments(items))
    if kind is dict and isinstance(items, Standing) and not named:
        return items.to_dict()
    if kind is dict and not arguments and not named:
        return MaskedDict()
    if kind is list and not named and iteration.has_plates(items) and isinstance(items, iteration.Stream):
        return items.taken()
    if kind is list and not named:
        return MaskedList.of_pairs(iteration.iterate(items))
    if kind is set and not named and iteration.has_plates(items):
        made = MaskedSet()
        made.update(items)
        return made
    if kind is set and not named:
        pairs = list(iteration.iterate(items))
        return MaskedSet(pairs) if not pairs or _uncertain(pairs) else set(items)
    if kind is tuple and isinstance(items, Masked):
        return tuple(items.plain())
    if kind is dict and not named:
        return dictionary(items.items() if isinstance(items, dict | MaskedDict) else items)
    return kind(*map(_plain, arguments), **named)


def _uncertain(pairs: list[tuple[Any, masks.Mask]]) -> bool:
    return any(there is not True or has_random(item) for item, there in pairs)


def dictionary(collected: Any) -> Any:
    """Make a dictionary of keys and values, each pair there under a condition."""
    made = MaskedDict()
    if iteration.has_plates(collected):
        made.update(collected)
        return made
    pairs = list(iteration.iterate(collected))
    certain = not _uncertain([(key, there) for (key, _), there in pairs])
    if pairs and certain and not iteration.order_left_open.get():
        return {key: value for (key, value), _ in pairs}
    made.update(MaskedList.of_pairs(pairs))
    return made


def by_key(source: Any, of_pairs: bool, made: Callable[[Any], Any]) -> Any:
    """Make a dictionary by a comprehension whose keys are those of another dictionary, if it is one."""
    kept = dictionaries.by_key(source, of_pairs, made)
    return dictionary(made(source)) if kept is None else kept


def set_of(collected: MaskedList) -> Any:
    """Make the set of a set comprehension or display."""
    return _made(set, (collected,), {})


def _plain(argument: Any) -> Any:
    """Hand a container as a plain one to code that is not rewritten."""
    if type(argument) is MaskedList and argument.is_certain:
        return argument
    return argument.plain() if isinstance(argument, Masked) and not isinstance(argument, Standing) else argument


def _lifted_version(function: Any) -> Callable[..., Any] | None:
    try:
        if function in CALLING:
            return functools.partial(CALLING[function], call)
        return LIFTED.get(function)
    except TypeError:  # not hashable
        return None


def _stacked(argument: Any) -> Any:
    """Turn a list of random numbers into one random array for NumPy; of some elements, if its length is random."""
    if isinstance(argument, Masked) and not argument.is_certain:
        return argument if isinstance(argument, Selection | Standing) else selection_of(argument)
    if iteration.has_plates(argument):
        return whole_array(argument)
    if isinstance(argument, list | tuple) and argument and holds_random(argument):
        parts = [_stacked(part) for part in argument]
        return RandomVariable(stack_values(parts))
    return argument


class Runtime:
    """What rewritten code finds under the name `__privug__`."""

    Activation = control.Activation
    and_ = staticmethod(expressions.and_)
    or_ = staticmethod(expressions.or_)
    not_ = staticmethod(expressions.not_)
    truth = staticmethod(masks.truth)
    choose = staticmethod(expressions.choose)
    compare = staticmethod(expressions.compare)
    filtered = staticmethod(iteration.filtered)
    call = staticmethod(call)
    method = staticmethod(method)
    setdefault = staticmethod(setdefault)
    subscript = staticmethod(expressions.subscript)
    items = staticmethod(iteration.items)
    text = staticmethod(text)
    percent = staticmethod(percent)
    stream = iteration.Stream
    first = staticmethod(first)
    List = masks.MaskedList

    dictionary = staticmethod(dictionary)
    by_key = staticmethod(by_key)
    set_of = staticmethod(set_of)


def rewritten(function: Any) -> Any:
    """Return the rewritten version of a user's function; anything else as it is."""
    if isinstance(function, types.MethodType):
        return functools.partial(rewritten(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(rewritten(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or not is_users_own(function):
        return function
    if RUNTIME in function.__code__.co_freevars:  # a nested function of one that was rewritten
        return function
    # The file is named, because Python takes equal code of two files for one.
    code = rewritten_code(function.__code__, function.__code__.co_filename)
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


def is_users_own(function: types.FunctionType) -> bool:
    """Say whether a function is the user's code, not a library's."""
    file = function.__code__.co_filename
    return not file.startswith(_LIBRARY) or file.startswith(_EXAMPLE)
