"""In which form a program wants its tables: what the annotations of its parameters say."""

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privug.errors import QuestionError
from privug.prior.table import Records, form_of
from privug.program.batched import BatchedProgram
from privug.program.external import External

_SPELLED = re.compile(r"(?:^|[\[|\s])(pd|pandas|pl|polars)\.DataFrame\b")
_LIBRARIES = {"pd": "pandas", "pl": "polars"}


def in_their_forms(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a program with tables as frames where its annotations ask for frames."""
    try:
        parameters = inspect.signature(program).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    order = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    placed = [
        _in_form(program, parameters.get(order[place]) if place < len(order) else None, value)
        for place, value in enumerate(positional)
    ]
    return placed, {name: _in_form(program, parameters.get(name), value) for name, value in named.items()}


def _in_form(program: Callable[..., Any], parameter: inspect.Parameter | None, value: Any) -> Any:
    if not isinstance(value, Records):
        return value
    if form_of(value) is None and parameter is not None:
        wanted = _wanted(program, parameter.annotation)
        value = value if wanted is None else value.as_frame(wanted)
    if form_of(value) is not None and isinstance(program, External | BatchedProgram):
        kind = "a batched program" if isinstance(program, BatchedProgram) else "an external program"
        raise QuestionError(f"{kind} gets tables as they are: leave out as_frame({form_of(value)!r})")
    return value


def _wanted(program: Callable[..., Any], annotation: Any) -> str | None:
    """Return the library of whose frames an annotation speaks, which may be written as a text."""
    if isinstance(annotation, str):
        spelled = annotation
        try:
            annotation = eval(spelled, dict(getattr(inspect.unwrap(program), "__globals__", {})))
        except Exception:  # names that only type checkers import
            found = _SPELLED.search(spelled)
            return _LIBRARIES.get(found[1], found[1]) if found else None
    for kind in typing.get_args(annotation) or (annotation,):
        library = str(getattr(kind, "__module__", "")).partition(".")[0]
        if library in _LIBRARIES.values() and getattr(kind, "__name__", "") == "DataFrame":
            return library
    return None
