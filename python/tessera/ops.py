"""Ops: functions of values, by the names that they have in C++ (src/tessera/ops/ops.h).

They are called inside of a function that tessera.compile traces. Operands called a and b broadcast
as numpy's do, and one of them may be a number. A dim may be negative: it counts from the end. Where
operands do not fit, a tessera.UsageError names the op, its types and the line of the caller.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Union

from ._graph import Value, call, dtype_name, one

Operand = Union[Value, float]


def add(a: Operand, b: Operand) -> Value:
    """a + b."""
    return one("add", a=a, b=b)


def sub(a: Operand, b: Operand) -> Value:
    """a - b."""
    return one("sub", a=a, b=b)


def mul(a: Operand, b: Operand) -> Value:
    """a * b."""
    return one("mul", a=a, b=b)


def div(a: Operand, b: Operand) -> Value:
    """a / b. Whole numbers: rounded toward 0; x / 0 is 0."""
    return one("div", a=a, b=b)


def maximum(a: Operand, b: Operand) -> Value:
    """The larger of each two."""
    return one("maximum", a=a, b=b)


def minimum(a: Operand, b: Operand) -> Value:
    """The smaller of each two."""
    return one("minimum", a=a, b=b)


def power(a: Operand, b: Operand) -> Value:
    """a to the power b; a > 0."""
    return one("power", a=a, b=b)


def negate(x: Value) -> Value:
    """-x."""
    return one("negate", x=x)


def exp(x: Value) -> Value:
    """e to the power x."""
    return one("exp", x=x)


def log(x: Value) -> Value:
    """The natural logarithm."""
    return one("log", x=x)


def sqrt(x: Value) -> Value:
    """The square root."""
    return one("sqrt", x=x)


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x)."""
    return one("rsqrt", x=x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    return one("tanh", x=x)


def erf(x: Value) -> Value:
    """The error function."""
    return one("erf", x=x)


def cos(x: Value) -> Value:
    """The cosine of x in radians."""
    return one("cos", x=x)


def abs(x: Value) -> Value:
    """x without its sign."""
    return one("abs", x=x)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return one("sigmoid", x=x)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return one("relu", x=x)


def silu(x: Value) -> Value:
    """x sigmoid(x)."""
    return one("silu", x=x)


def gelu(x: Value, form: str = "tanh") -> Value:
    """GELU: "erf", or "tanh", with which GPT-2 was trained. Hendrycks and Gimpel 2016."""
    return one("gelu", x=x, form=form)


def equal(a: Operand, b: Operand) -> Value:
    """a == b, as bool."""
    return one("equal", a=a, b=b)


def not_equal(a: Operand, b: Operand) -> Value:
    """a != b, as bool."""
    return one("not_equal", a=a, b=b)


def less(a: Operand, b: Operand) -> Value:
    """a < b, as bool."""
    return one("less", a=a, b=b)


def less_equal(a: Operand, b: Operand) -> Value:
    """a <= b, as bool."""
    return one("less_equal", a=a, b=b)


def logical_and(a: Value, b: Value) -> Value:
    """Both, of bools."""
    return one("logical_and", a=a, b=b)


def logical_or(a: Value, b: Value) -> Value:
    """One or both, of bools."""
    return one("logical_or", a=a, b=b)


def logical_not(x: Value) -> Value:
    """Not x, of bools."""
    return one("logical_not", x=x)


def is_finite(x: Value) -> Value:
    """True where x is neither infinite nor nan."""
    return one("is_finite", x=x)


def select(condition: Value, a: Operand, b: Operand) -> Value:
    """a where the condition (bool) holds, else b."""
    return one("select", condition=condition, a=a, b=b)


def cast(x: Value, dtype: object) -> Value:
    """The same numbers as "f32", "f64", "bf16", "f16", "i32", "i64" or "bool"."""
    return one("cast", x=x, dtype=dtype_name(dtype))


def identity(x: Value) -> Value:
    """The same value under a name of its own, that can be pinned."""
    return one("identity", x=x)


def whole_batch(x: Value) -> Value:
    """The same value [b, ...], whose rows may be mixed by what follows, also in micro-batches: a loss that compares
    samples reads them through it."""
    return one("whole_batch", x=x)


def stop_gradient(x: Value) -> Value:
    """The same value, through which no gradient flows."""
    return one("stop_gradient", x=x)


def constant(value: float, dtype: object = "f32") -> Value:
    """A number, as a value without dims."""
    return one("constant", value=value, dtype=dtype_name(dtype))


Dims = Optional[Sequence[int]]


def sum(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """The sum over dims, or over all. keep: reduced dims stay, with size 1."""
    return one("sum", x=x, dims=dims, keep=keep)


def max(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """The largest over dims, or over all; nan where there is one."""
    return one("max", x=x, dims=dims, keep=keep)


def min(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """The smallest over dims, or over all; nan where there is one."""
    return one("min", x=x, dims=dims, keep=keep)


def mean(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """The mean over dims, or over all.

    A loss that is a mean over rows is the same in micro-batches and on many devices.
    """
    return one("mean", x=x, dims=dims, keep=keep)


def any(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """Whether one is true, of bools."""
    return one("any", x=x, dims=dims, keep=keep)


def all(x: Value, dims: Dims = None, keep: bool = False) -> Value:
    """Whether each is true, of bools."""
    return one("all", x=x, dims=dims, keep=keep)


def sum_squares(x: Value) -> Value:
    """The sum of x * x over all elements, in one pass."""
    return one("sum_squares", x=x)


def broadcast_to(x: Value, shape: Sequence[int]) -> Value:
    """x repeated to a shape, by numpy's rules."""
    return one("broadcast_to", x=x, shape=shape)


def add_n(values: Sequence[Value]) -> Value:
    """The sum of many values of one type."""
    return one("add_n", values=values)


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """The same elements in row-major order; one size may be -1."""
    return one("reshape", x=x, shape=shape)


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    """Dim i of the result is dim permutation[i] of x."""
    return one("transpose", x=x, permutation=permutation)


def slice(x: Value, dim: int, start: int, size: int) -> Value:
    """Elements start, start + 1, ... of a dim, `size` of them: x[:, start:start + size]."""
    return one("slice", x=x, dim=dim, start=start, size=size)


def strided_slice(x: Value, dim: int, start: int, size: int, step: int) -> Value:
    """Elements start, start + step, ... of a dim, `size` of them."""
    return one("strided_slice", x=x, dim=dim, start=start, size=size, step=step)


def dynamic_slice(x: Value, dim: int, start: Value, size: int) -> Value:
    """As slice from a start that is a value, an i32 without dims; clamped so that all fits."""
    return one("dynamic_slice", x=x, dim=dim, start=start, size=size)


def dynamic_update(x: Value, update: Value, dim: int, start: Value) -> Value:
    """x with the elements of a dim from `start` on (an i32 without dims) replaced by `update`."""
    return one("dynamic_update", x=x, update=update, dim=dim, start=start)


def concat(values: Sequence[Value], dim: int) -> Value:
    """Values joined along a dim."""
    return one("concat", values=values, dim=dim)


def pad(x: Value, dim: int, start: int, size: int) -> Value:
    """Zeros around x in a dim, which gets `size` elements; x begins at `start`."""
    return one("pad", x=x, dim=dim, start=start, size=size)


def gather(ids: Value, table: Value, dim: int = 0) -> Value:
    """Rows of a table [v, ...] by ids (i32): [shape of ids, ...]; or elements of another dim, in
    whose place those of ids stand. Ids out of range read zeros."""
    return one("gather", ids=ids, table=table, dim=dim)


def scatter_add(ids: Value, dy: Value, rows: int) -> Value:
    """Adds rows dy [shape of ids, ...] into zeros [rows, ...] at ids (i32)."""
    return one("scatter_add", ids=ids, dy=dy, rows=rows)


def gather_nd(indices: Value, x: Value) -> Value:
    """Elements of x by indices [..., k] (i32) of its first k dims."""
    return one("gather_nd", indices=indices, x=x)


def pick(x: Value, ids: Value) -> Value:
    """x [..., v] at ids [...] (i32) of the last dim: [...]."""
    return one("pick", x=x, ids=ids)


def place(ids: Value, dy: Value, size: int) -> Value:
    """dy [...] at ids [...] (i32) of a last dim of `size`, zeros elsewhere."""
    return one("place", ids=ids, dy=dy, size=size)


def take_along(x: Value, ids: Value) -> Value:
    """x [..., v] at several ids [..., k] (i32) of the last dim: [..., k]."""
    return one("take_along", x=x, ids=ids)


def add_along(ids: Value, dy: Value, size: int) -> Value:
    """dy [..., k] added into zeros [..., size] at ids [..., k] (i32) of the last dim."""
    return one("add_along", ids=ids, dy=dy, size=size)


class TopK(NamedTuple):
    values: Value
    ids: Value


def top_k(x: Value, k: int) -> TopK:
    """The k largest elements of each row along the last dim, and their places (i32)."""
    return TopK(*call("top_k", x=x, k=k))


def within_capacity(ids: Value, keys: Value, capacity: int) -> Value:
    """ids [..., t, k] (i32), of which in each [t, k] at most `capacity` of equal ones stay: those of
    the largest keys [..., t, k], and of equal keys the first; the others become -1."""
    return one("within_capacity", ids=ids, keys=keys, capacity=capacity)


def arg_max(x: Value, dim: int = -1) -> Value:
    """The place of the largest element along a dim, as i32; of equal ones the first."""
    return one("arg_max", x=x, dim=dim)


def one_hot(ids: Value, size: int, dtype: object = "f32") -> Value:
    """[..., size]: 1 where the last index equals ids [...], else 0."""
    return one("one_hot", ids=ids, size=size, dtype=dtype_name(dtype))


def iota(shape: Sequence[int], dim: int, dtype: object = "i32") -> Value:
    """The index along a dim, of a tensor of that shape."""
    return one("iota", shape=shape, dim=dim, dtype=dtype_name(dtype))


def dropout(x: Value, step: Value, p: float, name: str) -> Value:
    """x / (1 - p), or 0 with probability p.

    step  an i64 that differs from step to step: tessera.samples_seen()
    name  no other random op of the block has it; the mask follows from seed, path and step
    """
    return one("dropout", x=x, step=step, p=p, name=name)


def random_uniform(shape: Sequence[int], step: Value, name: str) -> Value:
    """f32 from 0 to 1; step and name as of dropout."""
    return one("random_uniform", shape=shape, step=step, name=name)


def random_normal(shape: Sequence[int], step: Value, name: str) -> Value:
    """f32 of a standard normal distribution; step and name as of dropout."""
    return one("random_normal", shape=shape, step=step, name=name)


def random_truncated_normal(shape: Sequence[int], step: Value, name: str) -> Value:
    """The same, drawn again beyond two standard deviations."""
    return one("random_truncated_normal", shape=shape, step=step, name=name)


def matmul(a: Value, b: Value, trans_a: bool = False, trans_b: bool = False) -> Value:
    """a [..., m, k] x b [..., k, n] -> [..., m, n]; trans: the last two dims are exchanged first.
    Leading dims broadcast."""
    return one("matmul", a=a, b=b, trans_a=trans_a, trans_b=trans_b)


def einsum(rule: str, a: Value, b: Value) -> Value:
    """A product by a rule with a name for each dim: einsum("b s k, n k -> b s n", x, w)."""
    return one("einsum", rule=rule, a=a, b=b)


class LayerNorm(NamedTuple):
    y: Value
    mean: Value
    rstd: Value


def grouped_matmul(ids: Value, x: Value, w: Value, trans_w: bool = False) -> Value:
    """Row i of x [..., a] times the matrix of w [groups, a, b] that its id names -> [..., b].

    ids      i32 [...]; those out of range give zeros
    x        may lack the last dim of the ids: its rows are then multiplied by several matrices each
    trans_w  w is [groups, b, a]
    """
    return one("grouped_matmul", ids=ids, x=x, w=w, trans_w=trans_w)


def layer_norm(x: Value, weight: Value, bias: Optional[Value] = None, eps: float = 1e-5) -> LayerNorm:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dims, as many as weight has.
    Ba et al. 2016."""
    return LayerNorm(*call("layer_norm", x=x, weight=weight, bias=bias, eps=eps))


class RmsNorm(NamedTuple):
    y: Value
    rstd: Value


def rms_norm(x: Value, weight: Value, eps: float = 1e-5) -> RmsNorm:
    """x / sqrt(mean(x * x) + eps) * weight over the last dims. Zhang and Sennrich 2019."""
    return RmsNorm(*call("rms_norm", x=x, weight=weight, eps=eps))


def softmax(x: Value, dim: int = -1) -> Value:
    """exp(x) / sum(exp(x)) along a dim."""
    return one("softmax", x=x, dim=dim)


def log_softmax(x: Value, dim: int = -1) -> Value:
    """The logarithm of softmax."""
    return one("log_softmax", x=x, dim=dim)


class CrossEntropy(NamedTuple):
    loss: Value
    logsumexp: Value


def cross_entropy(logits: Value, labels: Value, ignore_index: int = -100) -> CrossEntropy:
    """-log softmax(logits)[label] of each row: logits [..., v] f32, labels [...] i32 -> [...]; 0
    where the label is ignore_index. A mean of it is tessera.nn.cross_entropy_mean."""
    return CrossEntropy(
        *call("cross_entropy", logits=logits, labels=labels, ignore_index=ignore_index)
    )


class Attention(NamedTuple):
    y: Value
    logsumexp: Value


def attention(
    q: Value,
    k: Value,
    v: Value,
    mask: Optional[Value] = None,
    step: Optional[Value] = None,
    causal: bool = True,
    window: int = 0,
    scale: float = 0.0,
    cap: float = 0.0,
    slopes: Optional[Value] = None,
    dropout: float = 0.0,
    name: str = "dropout",
) -> Attention:
    """softmax(q k^T * scale) v, with grouped queries. Dao et al. 2022.

    q            [b, s, g, r, e]: g key-value heads, r query heads for each
    k, v         [b, t, g, e]
    mask         bool [b, t] or [b, s, t]: the keys that may be seen; None: all
    causal       a query sees keys at its own position and before
    window       above 0: only keys less than so far away
    scale        of scores; 0: 1 / sqrt(e)
    cap          above 0: scores become cap * tanh(score / cap)
    slopes       [g, r]: slope * (key position - query position) is added to scores (ALiBi)
    dropout      of probabilities; needs step, and a name of its own in the block
    """
    return Attention(
        *call(
            "attention",
            q=q,
            k=k,
            v=v,
            mask=mask,
            step=step,
            causal=causal,
            window=window,
            scale=scale,
            cap=cap,
            slopes=slopes,
            dropout=dropout,
            name=name,
        )
    )


def rope(x: Value, positions: Value, base: float = 10000.0, inverse: bool = False) -> Value:
    """Rotary positions: turns channel pairs of x [b, s, ..., e] by positions [b, s] (i32). Su et al.
    2021."""
    return one("rope", x=x, positions=positions, base=base, inverse=inverse)
