# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Tables and categories in compiled programs: a struct of column arrays, and codes that can only be compared."""

import operator
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, extending
from numba.core import types as numba_types
from numba.core.datamodel import models
from numba.core.extending import (
    box,
    lower_builtin,
    overload,
    overload_method,
    register_jitable,
    register_model,
    typeof_impl,
)
from numba.core.imputils import (
    RefType,
    impl_ret_borrowed,
    iternext_impl,
    lower_constant,
    lower_getattr_generic,
)
from numba.core.typing.templates import AttributeTemplate, infer_getattr

types: Any = numba_types
intrinsic: Any = extending.intrinsic

NUMBERS = {"f": types.float64, "i": types.int64, "b": types.boolean}


@dataclass(frozen=True)
class Level:
    """A string in a compiled program: the code that stands for it."""

    code: int


class CategoryType(types.Type):
    """The type of strings in compiled programs: codes, equal where the strings are equal."""

    def __init__(self) -> None:
        super().__init__(name="Category")


CATEGORY = CategoryType()
register_model(CategoryType)(lambda manager, kind: models.PrimitiveModel(manager, kind, ir.IntType(64)))


@typeof_impl.register(Level)
def _type_of_level(value: Level, context: Any) -> CategoryType:
    return CATEGORY


@lower_constant(CategoryType)
def _constant_level(context: Any, builder: Any, kind: Any, value: Level) -> Any:
    return ir.IntType(64)(value.code)


@box(CategoryType)
def _boxed_level(kind: Any, value: Any, context: Any) -> Any:
    return context.pyapi.long_from_longlong(value)  # only ever seen in an error that nobody looks at


def _reinterpreted(result: Any, argument: Any) -> Any:
    """Make a function that takes a value as one of another type with the same bits."""

    def typed(typing_context: Any, value: Any) -> Any:
        if value != argument:
            return None
        return result(argument), lambda context, builder, signature, values: values[0]

    return intrinsic(typed)


as_category = _reinterpreted(CATEGORY, types.int64)
_code_of = _reinterpreted(types.int64, CATEGORY)


@overload(operator.eq)
def _equal_categories(left: Any, right: Any) -> Any:
    if isinstance(left, CategoryType) and isinstance(right, CategoryType):

        def compared(left: Any, right: Any) -> Any:
            return _code_of(left) == _code_of(right)

        return compared
    return None


@overload(operator.ne)
def _different_categories(left: Any, right: Any) -> Any:
    if isinstance(left, CategoryType) and isinstance(right, CategoryType):

        def compared(left: Any, right: Any) -> Any:
            return _code_of(left) != _code_of(right)

        return compared
    return None


@overload_method(CategoryType, "__hash__")
def _hash_of_category(value: Any) -> Any:
    def hashed(value: Any) -> Any:
        return hash(_code_of(value))

    return hashed


class RecordsType(types.IterableType):
    """The type of a table: the names of its columns, and the kind of each (a dtype's letter, or `c` for categories)."""

    def __init__(self, names: tuple[str, ...], kinds: str) -> None:
        self.names = names
        self.kinds = kinds
        cells = [CATEGORY if kind == "c" else NUMBERS[kind] for kind in kinds]
        self.arrays = [types.Array(types.int64 if kind == "c" else NUMBERS[kind], 1, "C") for kind in kinds]
        row = row_class(names)
        alike = len(set(cells)) == 1
        self.row = types.NamedUniTuple(cells[0], len(cells), row) if alike else types.NamedTuple(cells, row)
        self.make_row = _row_maker(kinds, row)
        super().__init__(name=f"Records({names}, {kinds})")

    @property
    def iterator_type(self) -> "RecordsIteratorType":
        return RecordsIteratorType(self)


class RecordsIteratorType(types.SimpleIteratorType):
    """The type of an iteration over a table."""

    def __init__(self, records: RecordsType) -> None:
        self.records = records
        super().__init__(name=f"iterator({records.name})", yield_type=records.row)


_row_classes: dict[tuple[str, ...], type] = {}


def row_class(names: tuple[str, ...]) -> type:
    """Return the named tuple that stands for a row in compiled code."""
    if names not in _row_classes:
        _row_classes[names] = namedtuple("Row", names)
    return _row_classes[names]


def _row_maker(kinds: str, row: type) -> Any:
    """Write the function that makes the row at a valid position."""
    cells = [f"{'as_category' if kind == 'c' else ''}(cell(records, {k}, i))" for k, kind in enumerate(kinds)]
    names: dict[str, Any] = {"as_category": as_category, "cell": _cell, "Row": row}
    exec(f"def make_row(records, i):\n    return Row({', '.join(cells)})", names)
    return names["make_row"]


@register_model(RecordsType)
class _RecordsModel(models.StructModel):
    def __init__(self, manager: Any, kind: RecordsType) -> None:
        super().__init__(manager, kind, [(f"column_{k}", array) for k, array in enumerate(kind.arrays)])


@register_model(RecordsIteratorType)
class _RecordsIteratorModel(models.StructModel):
    def __init__(self, manager: Any, kind: RecordsIteratorType) -> None:
        super().__init__(manager, kind, [("records", kind.records), ("position", types.EphemeralPointer(types.int64))])


def records_maker(names: tuple[str, ...], kinds: str) -> Any:
    """Return the compiled function that makes a table of its columns, handed over as a tuple of arrays."""
    table = RecordsType(names, kinds)

    def typed(typing_context: Any, columns: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            made = cgutils.create_struct_proxy(table)(context, builder)
            for k, (kind, wanted) in enumerate(zip(signature.args[0].types, table.arrays, strict=True)):
                array = context.cast(builder, builder.extract_value(values[0], k), kind, wanted)
                context.nrt.incref(builder, wanted, array)
                setattr(made, f"column_{k}", array)
            return made._getvalue()

        return table(columns), generate

    return intrinsic(typed)


def _array(context: Any, builder: Any, records: RecordsType, value: Any, k: int) -> Any:
    """Return the helper of a column's array; nobody needs to count it as a reference."""
    return context.make_array(records.arrays[k])(context, builder, value=builder.extract_value(value, k))


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """Return an array without counting it as a reference: an error would forget to give the reference back."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        copy = context.make_array(array)(context, builder, value=values[0])
        copy.meminfo = cgutils.get_null_value(copy.meminfo.type)
        copy.parent = cgutils.get_null_value(copy.parent.type)
        return copy._getvalue()

    return array(array), generate


@intrinsic
def _rows(typing_context: Any, records: Any) -> Any:
    """How many rows there are."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.extract_value(_array(context, builder, records, values[0], 0).shape, 0)

    return types.int64(records), generate


@intrinsic
def _cell(typing_context: Any, records: Any, column: Any, row: Any) -> Any:
    """The number in a cell, whose position must be a valid one."""
    if not isinstance(column, types.IntegerLiteral):
        return None
    k = column.literal_value

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = _array(context, builder, records, values[0], k).data
        place = builder.gep(data, [values[2]])
        return context.unpack_value(builder, records.arrays[k].dtype, place)

    return records.arrays[k].dtype(records, column, types.int64), generate


@overload(len)
def _length(records: Any) -> Any:
    if not isinstance(records, RecordsType):
        return None

    def length(records: Any) -> Any:
        return _rows(records)

    return length


@overload(operator.getitem)
def _item(records: Any, position: Any) -> Any:
    if not isinstance(records, RecordsType) or types.unliteral(position) != types.int64:
        return None
    make_row = register_jitable(records.make_row)

    def item(records: Any, position: Any) -> Any:
        length = _rows(records)
        if position < -length or position >= length:
            raise IndexError("list index out of range")
        return make_row(records, position + length if position < 0 else position)

    return item


@infer_getattr
class _RecordsAttributes(AttributeTemplate):
    key = RecordsType

    def generic_resolve(self, records: RecordsType, name: str) -> Any:
        if name not in records.names:
            return None
        k = records.names.index(name)
        if records.kinds[k] == "c":
            return None
        return records.arrays[k].copy(readonly=True)  # the program would write into a copy


@lower_getattr_generic(RecordsType)
def _attribute(context: Any, builder: Any, kind: RecordsType, value: Any, name: str) -> Any:
    k = kind.names.index(name)
    array = builder.extract_value(value, k)
    return impl_ret_borrowed(context, builder, kind.arrays[k], array)


@lower_builtin("getiter", RecordsType)
def _iterator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    made = context.make_helper(builder, signature.return_type)
    zero = context.get_constant(types.int64, 0)
    made.position = cgutils.alloca_once_value(builder, zero)
    made.records = values[0]
    context.nrt.incref(builder, signature.args[0], values[0])
    return made._getvalue()


@lower_builtin("iternext", RecordsIteratorType)
@iternext_impl(RefType.NEW)
def _next_row(context: Any, builder: Any, signature: Any, values: Any, result: Any) -> None:
    kind = signature.args[0]
    iterator = context.make_helper(builder, kind, value=values[0])
    columns = _array(context, builder, kind.records, iterator.records, 0)
    position = builder.load(iterator.position)
    length = builder.extract_value(columns.shape, 0)
    is_valid = builder.icmp_signed("<", position, length)
    result.set_valid(is_valid)
    with builder.if_then(is_valid):
        made = context.compile_internal(
            builder, kind.records.make_row, kind.records.row(kind.records, types.int64), [iterator.records, position]
        )
        result.yield_(made)
        builder.store(builder.add(position, position.type(1)), iterator.position)
