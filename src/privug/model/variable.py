"""RandomVariable: the Python surface of a node, with the operators and methods that build the graph."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from privug.arguments import Random
from privug.errors import ArgumentError, NotAList
from privug.model import numpy_functions
from privug.model.categories import constant_category, encode, map_levels, on_categories, unify
from privug.model.failures import fails, fails_where, told
from privug.model.maybe import where_present
from privug.model.node import ConstantValue, Node, Operation, ancestors, deciding
from privug.model.node import path_condition as path_condition  # those who ask for random variables find it here
from privug.model.node import refusals as refusals
from privug.model.node import refuse as refuse
from privug.model.operations import (
    Elementwise,
    NumpyRound,
    PythonRound,
    constant,
    elementwise,
    gather,
    index,
    lookup,
    stack,
)
from privug.model.traits import Role, traits_of
from privug.model.values import follows_numpy
from privug.runtime.pickling import Cloudpickled, Unchanging, portable


class ArrayMethods:
    """The methods of a NumPy array, for a class on which NumPy's functions work."""

    __slots__ = ()

    @property
    def T(self) -> Self:
        """The transpose of one value."""
        return self._call(np.transpose)

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Self:
        result: Self = function(self, *arguments, **options)
        return result

    def sum(self, axis: Any = None) -> Self:
        """Return the sum of the elements."""
        return self._call(np.sum, axis=axis)

    def mean(self, axis: Any = None) -> Self:
        """Return the mean of the elements."""
        return self._call(np.mean, axis=axis)

    def std(self, axis: Any = None, ddof: int = 0) -> Self:
        """Return the standard deviation of the elements."""
        return self._call(np.std, axis=axis, ddof=ddof)

    def var(self, axis: Any = None, ddof: int = 0) -> Self:
        """Return the variance of the elements."""
        return self._call(np.var, axis=axis, ddof=ddof)

    def min(self, axis: Any = None) -> Self:
        """Return the smallest element."""
        return self._call(np.min, axis=axis)

    def max(self, axis: Any = None) -> Self:
        """Return the largest element."""
        return self._call(np.max, axis=axis)

    def prod(self, axis: Any = None) -> Self:
        """Return the product of the elements."""
        return self._call(np.prod, axis=axis)

    def any(self, axis: Any = None) -> Self:
        """Say whether any element is true."""
        return self._call(np.any, axis=axis)

    def all(self, axis: Any = None) -> Self:
        """Say whether all elements are true."""
        return self._call(np.all, axis=axis)

    def cumsum(self, axis: Any = None) -> Self:
        """Return the running sums of the elements."""
        return self._call(np.cumsum, axis=axis)

    def argmin(self) -> Self:
        """Return the position of the smallest element."""
        return self._call(np.argmin)

    def argmax(self) -> Self:
        """Return the position of the largest element."""
        return self._call(np.argmax)

    def dot(self, other: Any) -> Self:
        """Return the dot product with another array."""
        return self._call(np.dot, other)

    def clip(self, low: Any = None, high: Any = None) -> Self:
        """Return the value, or the bound it lies beyond."""
        return self._call(np.clip, low, high)

    def round(self, decimals: int = 0) -> Self:
        """Return the value rounded as NumPy rounds."""
        return self._call(np.round, decimals)

    def reshape(self, *shape: Any) -> Self:
        """Return the elements in another shape."""
        return self._call(np.reshape, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Self:
        """Return the elements in one row."""
        return self._call(np.ravel)

    def copy(self) -> Self:
        """Return the same quantity: random variables never change."""
        return self


def as_node(value: Any) -> Node:
    """Return the node of a random variable, a number, an array, a string or another constant."""
    match value:
        case RandomVariable():
            return value.node
        case np.generic() if value.dtype.kind in "biuf":
            node = constant(value)
            node.numpy = True
            return node
        case bool() | int() | float() | np.number():
            return constant(value)
        case np.ndarray() if value.dtype.kind in "biuf":
            return constant(value)
        case list() | tuple() | np.ndarray() if any(isinstance(part, RandomVariable) for part in value):
            return stack_values(list(value))
        case np.ndarray() | list() if len(value):
            array, levels, _ = encode(list(value))
            return constant(array) if levels is None else lookup(constant(array), np.arange(len(levels)), levels)
        case _:
            return constant_category(value)


def _present(value: Any) -> Node:
    """Return the node of something that is computed with: of a number that may be missing, of that number."""
    return where_present(as_node(value))


def stack_values(values: Sequence[Any]) -> Node:
    """Make one array of several random or plain values."""
    nodes = unify([as_node(value) for value in values])
    if len({node.shape for node in nodes}) > 1:
        raise ArgumentError("the elements of an array must all have the same shape")
    return stack(nodes)


def item_of(values: Sequence[Any], key: "RandomVariable") -> "RandomVariable":
    """Return the item of a list at a random position."""
    return items_at([stack_values(values)], key)[0]


def items_at(arrays: Sequence[Node], key: "RandomVariable") -> list["RandomVariable"]:
    """Return the items of arrays at one random position, which may be a truth value: a number to Python."""
    if key.node.shape != () or key.node.dtype.kind not in "bi" or key.node.levels is not None:
        refuse("a random subscript that is not one whole number")
    if any(not array.shape[0] for array in arrays):
        raise IndexError("list index out of range")
    return [RandomVariable(_gathered(array, key.node)) for array in arrays]


def _gathered(array: Node, position: Node) -> Node:
    """Make the node of an element at a random position."""
    length = array.shape[0]
    fails_where(lambda: _outside(position, length), IndexError("list index out of range"))
    return told(gather(array, numpy_functions.cast(harmless(position, 0), np.dtype(np.int64))))


def _outside(position: Node, length: int) -> Node:
    where: RandomVariable = RandomVariable(position)
    return ((where < -length) | (where >= length)).node


def _apply(name: str, function: Callable[..., Any], *values: Any) -> "RandomVariable":
    """Apply a Python operator: Python's rules on single numbers, NumPy's on arrays."""
    nodes = [_present(value) for value in values]
    if any(node.levels is not None for node in nodes):
        return RandomVariable(on_categories(name, nodes))
    python, traits = all(node.shape == () for node in nodes) and not follows_numpy(name, nodes), traits_of(name)
    raised, operation = python and traits.role is Role.POWER, Elementwise(name, function, python)
    if raised and nodes[0].dtype.kind in "bi" and nodes[1].dtype.kind in "bi":
        nodes[1] = _whole_exponent(nodes[1])
    if raised:
        _tell_of_power(operation, nodes)
        nodes[0] = harmless(nodes[0], 1, np.greater)
    elif python and traits.divides:
        if operation.can_fail(nodes):
            zero = RandomVariable(nodes[1])
            fails_where(lambda: (zero == 0).node, ZeroDivisionError("division by zero"))
        nodes[1] = harmless(nodes[1], 1, np.not_equal)
    elif python and traits.decimals and nodes[0].dtype.kind == "f":
        if isinstance(function, PythonRound) and function.digits is None:
            _tell_of_whole_numbers(operation, nodes)
        nodes[0] = harmless(nodes[0], 0.0)
    return RandomVariable(told(elementwise(operation, nodes)))


def _tell_of_power(operation: Elementwise, nodes: Sequence[Node]) -> None:
    exponent = nodes[1].operation
    if not isinstance(exponent, ConstantValue) or exponent.array[0] < 0:
        fails(operation, nodes, ZeroDivisionError("zero cannot be raised to a negative power"))
    if any(node.dtype.kind == "f" for node in nodes):
        fails(operation, nodes, OverflowError("numerical result out of range"))


def _tell_of_whole_numbers(operation: Operation, nodes: Sequence[Node]) -> None:
    fails(operation, nodes, ValueError("cannot convert float NaN to integer"))
    fails(operation, nodes, OverflowError("cannot convert float infinity to integer"))


Operator = Callable[["RandomVariable", Any], "RandomVariable"]


class Columns:
    """What takes part in operators by itself, whatever stands beside it: columns of a frame."""

    __array_priority__ = 2000


def _operator(name: str) -> tuple[Operator, Operator]:
    """Return a Python operator on random variables, and the same with the other operand first."""
    function = traits_of(name).function

    def first(self: "RandomVariable", other: Any) -> "RandomVariable":
        return NotImplemented if isinstance(other, Columns) else _apply(name, function, self, other)

    def second(self: "RandomVariable", other: Any) -> "RandomVariable":
        return _apply(name, function, other, self)

    return first, second


def as_element(node: Node) -> "RandomVariable":
    """Return what NumPy computed or took out of an array: if it is one number, then a number of NumPy."""
    node.numpy = node.shape == () and node.levels is None
    return RandomVariable(node)


def as_python(value: "RandomVariable") -> "RandomVariable":
    """Return a number as one of Python, which int(), float() and the math module make of NumPy's."""
    node = value.node
    return value if node.numpy is False else RandomVariable(numpy_functions.recast(node, node.dtype))


def harmless(node: Node, value: Any, fine: np.ufunc | None = None) -> Node:
    """Replace a quantity by a value that does no harm where the code at hand does not run.

    Constants stay as they are if they are `fine` in comparison with zero.
    """
    path, operation = path_condition.get(), node.operation
    if path is None or (fine is not None and isinstance(operation, ConstantValue) and fine(operation.array, 0).all()):
        return node
    return numpy_functions.where(path.node, node, constant(value))


def _whole_exponent(node: Node) -> Node:
    if not isinstance(node.operation, ConstantValue):
        refuse("a whole number to a random whole power")
    if node.operation.array[0] < 0:
        return constant(float(node.operation.array[0]))
    return node


class RandomVariable(Unchanging, ArrayMethods, Random):
    """A random quantity. Arithmetic, comparisons and NumPy functions on it give new random quantities.

    Using one object twice means the same quantity twice: `x - x` is zero. Copies of it are that quantity; a pickle that
    is read again is one of its own, but variables pickled together share what they shared.

    >>> import privug as pv
    >>> x = pv.Uniform(0, 1)
    >>> (x - x < 0.5) | (x > 2)
    <RandomVariable: discrete bool>
    """

    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node) -> None:
        self.node = node

    def __reduce__(self) -> tuple[Any, ...]:
        # Parents before children: a long chain is then written node by node, and what two variables share once.
        nodes = ancestors([self.node])
        if any(isinstance(portable("a random variable", node.operation), Cloudpickled) for node in nodes):
            raise ArgumentError(
                "a random variable cannot be pickled that was computed by a function without a name, such as a lambda: "
                "pickle what it was computed from"
            )
        return _last, (nodes,)

    # Operators: what they do is told by the table of operations.
    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract")
    __mul__, __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("true_divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide")
    __mod__, __rmod__ = _operator("remainder")
    __pow__, __rpow__ = _operator("power")
    __and__, __rand__ = _operator("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or")
    __xor__, __rxor__ = _operator("bitwise_xor")
    __lt__, __le__ = _operator("less")[0], _operator("less_equal")[0]
    __gt__, __ge__ = _operator("greater")[0], _operator("greater_equal")[0]

    def __eq__(self, other: object) -> "RandomVariable":  # type: ignore[override]
        return NotImplemented if isinstance(other, Columns) else _apply("equal", np.equal, self, other)

    def __ne__(self, other: object) -> "RandomVariable":  # type: ignore[override]
        return NotImplemented if isinstance(other, Columns) else _apply("not_equal", np.not_equal, self, other)

    def __divmod__(self, other: Any) -> tuple["RandomVariable", "RandomVariable"]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple["RandomVariable", "RandomVariable"]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> "RandomVariable":
        return as_element(numpy_functions.dot(self.node, as_node(other)))

    def __rmatmul__(self, other: Any) -> "RandomVariable":
        return as_element(numpy_functions.dot(as_node(other), self.node))

    def __neg__(self) -> "RandomVariable":
        return _apply("negative", np.negative, self)

    def __pos__(self) -> "RandomVariable":
        return _apply("positive", np.positive, self)

    def __abs__(self) -> "RandomVariable":
        return _apply("absolute", np.absolute, self)

    def __round__(self, digits: int | None = None) -> "RandomVariable":
        node = where_present(self.node)
        if node.shape or digits is None or node.dtype.kind != "f" or node.numpy is False:
            rounded = _apply("round", PythonRound(digits), self)
            return as_python(rounded) if digits is None else rounded
        if node.numpy is None:
            refuse("round() of a number that is NumPy's for some inputs and Python's for others")
        return _apply("round", NumpyRound(digits), self)

    def __floor__(self) -> "RandomVariable":
        return _apply("floor", np.floor, self).astype(int)

    def __ceil__(self) -> "RandomVariable":
        return _apply("ceil", np.ceil, self).astype(int)

    def __trunc__(self) -> "RandomVariable":
        return _apply("trunc", np.trunc, self).astype(int)

    def __invert__(self) -> "RandomVariable":
        return _apply("bitwise_not", np.invert, self)

    # Elements.
    def __getitem__(self, key: Any) -> "RandomVariable":
        if self.node.shape == () and self.node.levels is not None:
            return RandomVariable(map_levels(self.node, lambda level: level[key]))
        if isinstance(key, RandomVariable):
            if key.node.shape != () or key.node.dtype.kind != "i" or key.node.levels is not None:
                refuse("a random subscript that is not one whole number")
            return as_element(_gathered(self.node, key.node))
        return as_element(index(self.node, key))

    def __len__(self) -> int:
        if self.node.shape:
            return self.node.shape[0]
        lengths = {len(level) for level in self.node.levels or () if hasattr(level, "__len__")}
        if len(lengths) == 1:
            return lengths.pop()
        if lengths:
            refuse("len() of a random string")
        raise NotAList("a random number has no len(): a list of values is needed here, or a pv.Array")

    def __iter__(self) -> Iterator["RandomVariable"]:
        return (self[position] for position in range(len(self)))

    def tolist(self) -> list[Any]:
        """Return the elements as a list of random variables."""
        return [element.tolist() if element.ndim else as_python(element) for element in self]

    def __getattr__(self, name: str) -> Any:
        levels = self.node.levels
        if levels is None or name.startswith("__") or not all(hasattr(level, name) for level in levels):
            raise AttributeError(f"this random variable has no attribute {name!r}")
        if not any(callable(getattr(level, name)) for level in levels):
            return RandomVariable(map_levels(self.node, lambda level: getattr(level, name)))
        return lambda *arguments: RandomVariable(map_levels(self.node, lambda level: getattr(level, name)(*arguments)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return self.node.shape

    @property
    def ndim(self) -> int:
        """The number of axes of one value."""
        return len(self.node.shape)

    @property
    def size(self) -> int:
        """The number of elements of one value."""
        return int(np.prod(self.node.shape))

    def astype(self, dtype: Any) -> "RandomVariable":
        """Return the numbers as floats, whole numbers or bools."""
        target = np.dtype(dtype)
        if self.node.levels is not None or target.kind not in "bif":
            refuse(f"astype({target})")
        wide = {"b": np.dtype(bool), "i": np.dtype(np.int64), "f": np.dtype(np.float64)}[target.kind]
        node = where_present(self.node)
        if node.dtype.kind == "f" and wide.kind == "i":
            if node.shape == ():
                _tell_of_whole_numbers(numpy_functions.Cast(wide), [node])
            node = harmless(node, 0.0)
        return RandomVariable(told(numpy_functions.cast(node, wide)))

    # NumPy protocols.
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(value, Columns) for value in inputs):
            return NotImplemented
        if any(option not in ("axis",) for option in options):
            refuse(f"np.{ufunc.__name__} with {', '.join(options)}")
        if method == "reduce":
            reducer = numpy_functions.REDUCING_UFUNCS.get(ufunc)
            if reducer is None:
                refuse(f"np.{ufunc.__name__}.reduce")
            return self._call(reducer, axis=options.get("axis", 0))
        if method != "__call__" or ufunc.nout != 1 or options:
            refuse(f"np.{ufunc.__name__}.{method}")
        nodes = [_present(value) for value in inputs]
        if any(node.levels is not None for node in nodes):
            return _apply(ufunc.__name__, ufunc, *inputs)
        if ufunc is np.matmul:
            return as_element(numpy_functions.dot(*nodes))
        name = "true_divide" if ufunc is np.true_divide else ufunc.__name__
        return as_element(elementwise(Elementwise(name, ufunc), nodes))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        handler = numpy_functions.HANDLERS.get(function)
        if handler is None:
            refuse(f"np.{getattr(function, '__name__', function)}")
        return handler(_present, as_element, *arguments, **options)

    # Questions that have no single answer.
    def __bool__(self) -> bool:
        decide = deciding.get()
        if decide is not None and not self.shape:
            return decide(self.node)
        refuse("a condition (if, while, and, or, not, in)")

    def __float__(self) -> float:
        refuse("float() or a function of the math module")

    def __int__(self) -> int:
        refuse("int()")

    def __index__(self) -> int:
        refuse("range() or a list subscript")

    def __complex__(self) -> complex:
        refuse("complex()")

    def __contains__(self, item: object) -> bool:
        refuse("a condition (in)")

    def __str__(self) -> str:
        if refusals.get() is not None:
            refuse("text formatting")
        return repr(self)

    def __format__(self, spec: str) -> str:
        if spec:
            refuse(f"the format {spec!r}")
        return str(self)

    def __repr__(self) -> str:
        node = self.node
        what = "category" if node.levels is not None else node.dtype.name
        shape = f", shape {node.shape}" if node.shape else ""
        return f"<RandomVariable: {node.kind.value} {what}{shape}>"


def _last(nodes: Sequence[Node]) -> RandomVariable:
    return RandomVariable(nodes[-1])
