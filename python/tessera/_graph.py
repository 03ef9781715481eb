"""Graphs that are written by Python functions: values, scopes, parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
import threading
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._errors import Error, UsageError, error_of
from ._library import library

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_open = threading.local()  # .graphs: those that this thread is writing

DTYPES = ("f32", "f64", "bf16", "f16", "i32", "i64", "bool")
_DTYPE_NAMES = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
}


def dtype_name(dtype: object) -> str:
    """"f32" of "f32", "float32", numpy.float32, torch.float32."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    found = _DTYPE_NAMES.get(name.split(".")[-1])
    if found is None:
        raise UsageError(f"{dtype!r} is no dtype; give one of {', '.join(DTYPES)}")
    return found


def shape_text(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


class Value:
    """A tensor of a graph that is being written. It has a shape and a dtype ("f32"), and no numbers
    until the graph is compiled and run.

    + - * / and comparisons work element by element, with numbers too; @ is a product of matrices;
    x[1:3, ..., ::2, None] takes parts. All else are functions: tessera.ops.mean(x), tessera.nn.
    """

    __slots__ = ("shape", "dtype", "_graph", "_id", "name")
    __array_ufunc__ = None  # numpy leaves operators to this class

    def __init__(self, graph: Graph, made: dict, name: Optional[str] = None):
        self.shape: Tuple[int, ...] = tuple(made["shape"])
        self.dtype: str = made["dtype"]
        self.name = name
        self._graph = graph
        self._id: str = made["id"]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<tessera.Value {self.name or self._id}: {shape_text(self.dtype, self.shape)}>"

    if not TYPE_CHECKING:  # else all names would be right to it

        def __getattr__(self, name: str):
            from . import ops

            use = "functions of tessera.ops do what methods of tensors do"
            if getattr(getattr(ops, name, None), "__module__", None) == ops.__name__:
                use = f"it is a function: tessera.ops.{name}"
            raise AttributeError(f"a tessera.Value has no {name!r}; {use}")

    def __add__(self, other):
        return one("add", a=self, b=other)

    def __radd__(self, other):
        return one("add", a=self, b=other)

    def __sub__(self, other):
        return one("sub", a=self, b=other)

    def __rsub__(self, other):
        return one("sub", a=other, b=self)

    def __mul__(self, other):
        return one("mul", a=self, b=other)

    def __rmul__(self, other):
        return one("mul", a=self, b=other)

    def __truediv__(self, other):
        return one("div", a=self, b=other)

    def __rtruediv__(self, other):
        return one("div", a=other, b=self)

    def __matmul__(self, other):
        return one("matmul", a=self, b=other)

    def __neg__(self):
        return one("negate", x=self)

    def __abs__(self):
        return one("abs", x=self)

    def __pow__(self, power):
        if not isinstance(power, int) or isinstance(power, bool):
            return one("power", a=self, b=power)
        if power < 1:
            raise UsageError(f"x ** {power}: give a power from 1 on, or divide 1 by one")
        half = self ** (power // 2) if power > 1 else None
        return self if half is None else half * half * self if power % 2 else half * half

    def __lt__(self, other):
        return one("less", a=self, b=other)

    def __le__(self, other):
        return one("less_equal", a=self, b=other)

    def __gt__(self, other):
        return one("less", a=other, b=self)

    def __ge__(self, other):
        return one("less_equal", a=other, b=self)

    def __eq__(self, other):
        return one("equal", a=self, b=other)

    def __ne__(self, other):
        return one("not_equal", a=self, b=other)

    __hash__ = object.__hash__

    def __invert__(self):
        return one("logical_not", x=self)

    def __and__(self, other):
        return one("logical_and", a=self, b=other)

    def __or__(self, other):
        return one("logical_or", a=self, b=other)

    def __getitem__(self, index) -> Value:
        return _part(self, index if isinstance(index, tuple) else (index,))

    def stage(self, k: int) -> Value:
        """In a pipeline, puts the block that computes this on chunk k, counted from the input."""
        return one("stage", value=self, k=k)

    def named(self, name: str) -> Value:
        """Gives the op a name, by which strategies and pins find it."""
        out = one("set_name", value=self, name=name)
        out.name = name
        return out

    def _no_numbers(self, *_):
        raise UsageError(
            f"{self!r} has no numbers while the graph is written, so Python cannot branch, loop or "
            "convert by them; use tessera.ops.select, or read it from a step that was compiled"
        )

    __bool__ = __float__ = __int__ = __index__ = __iter__ = __len__ = __array__ = _no_numbers


def _part(x: Value, index: tuple) -> Value:
    given = [i for i in index if i is not None and i is not Ellipsis]
    if len(index) - len(given) - sum(i is None for i in index) > 1:
        raise UsageError("an index has several ...; give one")
    if len(given) > x.ndim:
        raise UsageError(f"{len(given)} indices of {x!r}; give at most {x.ndim}")
    if not any(i is Ellipsis for i in index):
        index = index + (Ellipsis,)
    shape: List[int] = []
    out, dim = x, 0
    for i in index:
        if i is None:
            shape.append(1)
        elif i is Ellipsis:
            for _ in range(x.ndim - len(given)):
                shape.append(x.shape[dim])
                dim += 1
        else:
            out, size = _cut(out, dim, i)
            shape += size
            dim += 1
    return out if tuple(shape) == out.shape else one("reshape", x=out, shape=shape)


def _cut(x: Value, dim: int, index: object) -> Tuple[Value, List[int]]:
    """x cut along a dim, and the sizes that stand for the dim then."""
    size = x.shape[dim]
    if hasattr(index, "__index__") and not isinstance(index, (bool, Value)):
        at = index.__index__()
        if not -size <= at < size:
            raise UsageError(f"index {at} of dim {dim} of {x!r}; give {-size} to {size - 1}")
        return one("slice", x=x, dim=dim, start=at % size, size=1), []
    if not isinstance(index, slice):
        raise UsageError(
            f"an index of {x!r} is {index!r}; give numbers, slices, ... and None, or use "
            "tessera.ops.gather for values"
        )
    try:
        start, stop, step = index.indices(size)
    except TypeError:
        raise UsageError(f"a slice of {x!r} is {index!r}; give whole numbers") from None
    if step < 1:
        raise UsageError(f"a slice of {x!r} has the step {step}; give 1 or more")
    count = len(range(start, stop, step))
    if count == size and step == 1:
        return x, [size]
    if step == 1:
        return one("slice", x=x, dim=dim, start=start, size=count), [count]
    return one("strided_slice", x=x, dim=dim, start=start, size=count, step=step), [count]


class Graph:
    """A graph that is written inside `with graph:`, by one thread. As text it is what C++ prints."""

    def __init__(self):
        self.handle = library.tessera_graph_new()
        self._free = weakref.finalize(self, library.tessera_graph_free, self.handle)
        self.scopes: List[str] = []

    def __enter__(self) -> Graph:
        if not hasattr(_open, "graphs"):
            _open.graphs = []
        _open.graphs.append(self)
        return self

    def __exit__(self, *_) -> None:
        _open.graphs.pop()

    def call(self, op: str, arguments: dict) -> List[Value]:
        call: Dict[str, object] = {"op": op, "at": _line_of_caller()}
        for name, argument in arguments.items():
            call[name] = self._plain(argument, f"{op}: {name}")
        try:
            text = json.dumps(call, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{op}: an argument cannot be written as JSON: {error}") from None
        self._require(library.tessera_graph_call(self.handle, text))
        made = json.loads(library.tessera_graph_result(self.handle))
        return [Value(self, each) for each in made["values"]]

    def __str__(self) -> str:
        self._require(library.tessera_graph_text(self.handle))
        return (library.tessera_graph_result(self.handle) or b"").decode()

    def _require(self, code: int) -> None:
        if code != 0:
            raise error_of(json.loads(library.tessera_graph_error(self.handle)))

    def _plain(self, argument: object, what: str, depth: int = 0) -> object:
        """What JSON has for an argument."""
        if isinstance(argument, Value):
            if argument._graph is not self:
                raise UsageError(
                    f"{what} is {argument!r} of another graph; values live in the function that "
                    "makes them, so hand over numbers, as inputs of the batch"
                )
            return argument._id
        if argument is None or isinstance(argument, (bool, str)):
            return argument
        if isinstance(argument, float) and not math.isfinite(argument):
            return "nan" if math.isnan(argument) else "inf" if argument > 0 else "-inf"
        if isinstance(argument, (int, float)):
            return argument
        if depth > 20:
            raise UsageError(f"{what} holds lists in lists in lists; give fewer")
        if dataclasses.is_dataclass(argument) and not isinstance(argument, type):
            names = [field.name for field in dataclasses.fields(argument)]
            argument = {name: getattr(argument, name) for name in names}
            argument = {name: each for name, each in argument.items() if each is not None}
        if isinstance(argument, dict):
            return {str(k): self._plain(each, what, depth + 1) for k, each in argument.items()}
        if isinstance(argument, (list, tuple, range)):
            if len(argument) > 1_000_000:
                raise UsageError(f"{what} has {len(argument)} items; give fewer")
            return [self._plain(each, what, depth + 1) for each in argument]
        if getattr(argument, "shape", None) == () and hasattr(argument, "item"):
            return self._plain(argument.item(), what, depth + 1)  # a number of numpy
        hint = "an input of the batch" if hasattr(argument, "shape") else "a value or a number"
        raise UsageError(f"{what} is a {type(argument).__name__}; give {hint}")


def _line_of_caller() -> str:
    """The line outside of this package that makes a node, for messages."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    folder, file = os.path.split(frame.f_code.co_filename)
    return f"{os.path.join(os.path.basename(folder), file)}:{frame.f_lineno}"


def current() -> Graph:
    graphs = getattr(_open, "graphs", None)
    if not graphs:
        raise UsageError(
            "ops and layers are called inside of a function that tessera.compile traces, in its "
            "thread; no graph is being written here"
        )
    return graphs[-1]


def call(op: str, **arguments) -> List[Value]:
    return current().call(op, arguments)


def one(op: str, **arguments) -> Value:
    return current().call(op, arguments)[0]


@contextlib.contextmanager
def scope(
    name: str,
    *,
    stage: Optional[int] = None,
    recompute: Union[None, bool, str] = None,
    share_states: Optional[str] = None,
) -> Iterator[None]:
    """What is written inside belongs to the block `name`: its parameters are "name.weight".

        with tessera.scope("layers.0", recompute="full"):
            x = tessera.nn.linear(x, "up", 64)     # layers.0.up.weight

    stage         in a pipeline: the chunk that computes it, counted from the input
    recompute     what backward computes again: "none", "elementwise", "selective", "full" or True
    share_states  parameters are those of this block, which there must be already
    """
    what = ("none", "full")[recompute] if isinstance(recompute, bool) else recompute
    graph = current()
    graph.call(
        "scope", {"name": name, "stage": stage, "recompute": what, "share_states": share_states}
    )
    try:
        yield
    except BaseException:
        with contextlib.suppress(Error):  # the graph may be broken
            graph.call("end_scope", {})
        raise
    graph.call("end_scope", {})


def parameter(path: str, shape: Sequence[int], init: object = None) -> Value:
    """A parameter of f32: a tensor that lives from step to step, and that the optimizer updates.

    path   its name, below the scopes that are open: "up.weight"
    init   its first numbers, which depend on the seed and the path: tessera.nn.normal_init(0.02)
           by default
    """
    arguments = {} if init is None else {"init": init}
    out = one("parameter", name=path, shape=shape, **arguments)
    out.name = path
    return out


def samples_seen() -> Value:
    """An i64: samples of the steps before. Dropout takes it as `step`, so that masks differ."""
    return one("samples_seen")


def gradients(loss: Value, of: Optional[Sequence[Value]] = None) -> List[Value]:
    """Gradients of a loss with respect to parameters; None: all there are, in order. An optimizer
    needs none of it: it takes its own."""
    return call("gradients", loss=loss, of=None if of is None else list(of))


@dataclasses.dataclass(frozen=True)
class TensorLayout:
    """How a tensor lies on a DeviceLayout, by which it is made."""

    sizes: Sequence[int]
    names: Sequence[str]
    dims: Sequence[Sequence[str]]


class DeviceLayout:
    """Names for the dims of a matrix of devices: MindSpore's Layout.

        on = tessera.DeviceLayout((2, 4), ("dp", "mp"))
        y = tessera.shard(x @ w, (on("dp", "mp"), on("mp", None)))
    """

    def __init__(self, sizes: Sequence[int], names: Sequence[str]):
        self.sizes, self.names = tuple(sizes), tuple(names)

    def __call__(self, *dims: Union[None, str, Sequence[str]]) -> TensorLayout:
        """A tensor: for each dim the name that splits it, several of them, or None."""
        split = [() if d in (None, "None") else (d,) if isinstance(d, str) else tuple(d) for d in dims]
        return TensorLayout(self.sizes, self.names, split)


Splits = Union[Sequence[Sequence[int]], Sequence[TensorLayout]]


def shard(value: Value, ins: Splits, outs: Splits = ()) -> Value:
    """Says how the op that made `value` is split, as MindSpore's shard(): in how many parts each
    dim of each operand, or its layout, and how its result is kept. Returns the value.

        y = tessera.shard(x @ w, ((2, 4), (4, 1)))
    """
    return one("shard", value=value, ins=ins, outs=outs)
