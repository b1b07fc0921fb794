"""Texts with random numbers in them, such as `f"{count} of {total:.1f}"`: words are known, numbers are not."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from privug.model.node import Node, refuse
from privug.model.operations import Elementwise, PythonRound, elementwise
from privug.model.variable import RandomVariable, as_node

INTEGER = re.compile(r",?d?|0\d+d?")
FIXED = re.compile(r",?\.(\d{1,2})([f%])")
PERCENT = 100


@dataclass(frozen=True)
class Field:
    """One number in a text: its format, and whether a further value says that it is a negative zero."""

    form: str
    whole: bool
    signed: bool = False

    @property
    def width(self) -> int:
        """How many values it takes."""
        return 1 + self.signed

    @property
    def characters(self) -> str:
        """The characters that it may be written with."""
        return "0123456789-" + ("" if self.whole else ".einfa+") + ("," if "," in self.form else "") + self.form[-1:]

    def written(self, number: Any, negative_zero: bool = False) -> str:
        """Return it as text."""
        if self.form.endswith("%"):  # the number is in per cent already
            return format(-0.0 if negative_zero else number, f"{self.form[:-1]}f") + "%"
        return format(int(number) if self.whole else -0.0 if negative_zero else float(number), self.form)

    def read(self, text: str) -> tuple[Any, ...] | None:
        """Return the values that are written like this; None if none is."""
        try:
            plain = text.rstrip("%").replace(",", "")
            number = int(plain) if self.whole else float(plain)
        except ValueError:
            return None
        negative_zero = self.signed and number == 0 and text.startswith("-")
        if self.written(number, negative_zero) != text:
            return None
        return (number, negative_zero) if self.signed else (number,)


Template = tuple[str | Field, ...]


class FormattedText:
    """A text whose fields are random; a program may return it, and nothing else is known of it while it is traced."""

    def __init__(self, template: Template, values: Sequence[Any]) -> None:
        self.template = template
        self.values = tuple(values)

    def _refused(self, *_: Any) -> NoReturn:
        refuse("a text with random numbers in it")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = __str__ = __format__ = _refused
    __add__ = __radd__ = __mul__ = __mod__ = _refused
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<a text with random numbers in it>"

    def __getattr__(self, name: str) -> Any:
        if hasattr(str, name):
            self._refused()
        raise AttributeError(name)


def composed(template: Template, values: Sequence[Any]) -> Any:
    """Return a text with its fields filled in: plain if they are."""
    if any(isinstance(value, RandomVariable) for value in values):
        return FormattedText(template, values)
    left = iter(values)
    return "".join(part if isinstance(part, str) else _filled(part, left) for part in template)


def _filled(field: Field, values: Iterator[Any]) -> str:
    return field.written(next(values), bool(next(values)) if field.signed else False)


def read(template: Template, text: str) -> list[Any] | None:
    """Return the values of the fields of a text; None if it is not written like that."""
    parts = [re.escape(part) if isinstance(part, str) else f"([{re.escape(part.characters)}]+)" for part in template]
    found = re.fullmatch("".join(parts), text)
    if found is None:
        return None
    fields = [part for part in template if isinstance(part, Field)]
    values = [field.read(own) for field, own in zip(fields, found.groups(), strict=True)]
    return None if any(value is None for value in values) else [one for value in values for one in value or ()]


def formatted(parts: Sequence[tuple[Any, str]]) -> FormattedText:
    """Return the text of an f-string's parts, each with its format; what cannot be followed is refused.

    A part may be such a text itself.
    """
    template: list[str | Field] = [""]
    values: list[RandomVariable] = []
    for value, form in parts:
        if isinstance(value, RandomVariable):
            field, own = _field(value, form)
            template += [field, ""]
            values += own
        elif isinstance(value, FormattedText) and not form:
            for part in value.template:
                if isinstance(part, str):
                    template[-1] = str(template[-1]) + part
                else:
                    template += [part, ""]
            values += value.values
        else:
            template[-1] = str(template[-1]) + format(value, form)
    _check_apart(template)
    return FormattedText(tuple(part for part in template if part != ""), values)


def _field(value: RandomVariable, form: str) -> tuple[Field, list[RandomVariable]]:
    node = value.node
    if node.levels is not None or node.shape or node.whole or node.dtype.kind not in "if":
        refuse("text formatting")
    fixed = FIXED.fullmatch(form)
    if node.dtype.kind == "i" and INTEGER.fullmatch(form):
        return Field(form, whole=True), [value]
    if fixed is None and (form or node.dtype.kind == "i"):
        refuse("text formatting")
    number = value * PERCENT if form.endswith("%") else value
    rounded = number if fixed is None else _rounded(number, int(fixed[1]))
    source = _unrounded(rounded.node)
    if source is None:
        return Field(form, whole=False), [rounded]
    return Field(form, whole=False, signed=True), [rounded, (RandomVariable(source) < 0) & (rounded == 0)]


def _rounded(number: RandomVariable, digits: int) -> RandomVariable:
    """Round as formatting does: to the nearest decimal number of the digits that are stored, ties to even."""
    return RandomVariable(elementwise(Elementwise("round", PythonRound(digits), python=True), [as_node(number)]))


def _unrounded(node: Node) -> Node | None:
    """Return what a number was rounded from, which says whether it is a negative zero; None if it is not rounded."""
    is_rounded = isinstance(node.operation, Elementwise) and node.operation.traits.steps
    return node.parents[0] if is_rounded and node.dtype.kind == "f" else None


def _check_apart(template: Sequence[str | Field]) -> None:
    """Refuse fields that might be taken for one another, so that different numbers give different texts."""
    for before, between, after in zip(template[1::2], template[2::2], template[3::2], strict=False):
        assert isinstance(before, Field)
        assert isinstance(after, Field)
        if not set(str(between)) - set(before.characters) - set(after.characters):
            refuse("text formatting of two numbers with nothing between them")
