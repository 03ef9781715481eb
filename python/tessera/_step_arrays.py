"""Arrays in and out: numpy's, and what numpy can take without changing numbers."""

from __future__ import annotations

import ctypes
from typing import Sequence

from ._errors import UsageError
from ._graph import dtype_name
from ._library import Array

_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64"}
_NUMPY["bool"] = "bool"


def numpy():
    try:
        import numpy
    except ImportError:
        raise UsageError("steps take and give arrays of numpy; install numpy") from None
    return numpy


def taken(what: str, value: object, dtype: str):
    """`value` as an array of numpy in row-major order, of the dtype that is wanted.

    Only what has no dtype itself, numbers and lists of Python, is converted."""
    np = numpy()
    wanted = _NUMPY.get(dtype)
    if wanted is None:
        raise UsageError(f"{what} is taken as {dtype}, which numpy has not; cast it in the function")
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(f"{what} is a masked array; fill it")
    if isinstance(value, (bool, int, float, list, tuple)):
        return _of_python(np, what, value, dtype, wanted)
    if isinstance(value, (np.ndarray, np.generic)):
        out = np.asarray(value)
    elif hasattr(value, "__dlpack__"):
        try:
            out = np.from_dlpack(value)
        except Exception as error:  # on a device, with a gradient, of bf16: each library's own
            raise UsageError(f"{what} is no array that numpy can read: {error}") from None
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        out = np.asarray(value)
    else:
        raise UsageError(f"{what} is a {type(value).__name__}; give an array")
    if out.dtype != np.dtype(wanted):
        raise UsageError(
            f"{what} is {out.dtype}{list(out.shape)}, and {wanted} is wanted; "
            f"convert it yourself, as x.astype('{wanted}')"
        )
    return np.asarray(out, dtype=wanted, order="C")  # of this machine's byte order


def _of_python(np, what: str, value: object, dtype: str, wanted: str):
    try:
        out = np.asarray(value)
        exact = out.astype(np.float64) if out.dtype.kind in "iuf" else out
        with np.errstate(over="ignore"):
            made = out.astype(wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{what} is no list of numbers: {error}") from None
    kinds = {"f32": "iuf", "f64": "iuf", "f16": "iuf", "i32": "iu", "i64": "iu", "bool": "b"}[dtype]
    if out.size and out.dtype.kind not in kinds:
        raise UsageError(f"{what} is a list of {out.dtype}, and {wanted} is wanted")
    whole = kinds == "iu" and out.size and not np.array_equal(made.astype(np.float64), exact)
    if whole or (kinds == "iuf" and (np.isinf(made) & np.isfinite(exact)).any()):
        raise UsageError(f"{what} has numbers that {wanted} does not hold")
    return np.asarray(made, order="C")


def described(name: str, array) -> Array:
    """An Array over the memory of `array`, which has to outlive it."""
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    return Array(
        name.encode(), dtype_name(str(array.dtype)).encode(), array.ndim, shape, array.ctypes.data
    )


def empty(shape: Sequence[int], dtype: str):
    """Room for an array, and what turns it into numbers of numpy."""
    np = numpy()
    if dtype == "bf16":  # widened, which changes no number
        bits = np.empty(shape, dtype=np.uint16)
        return bits, lambda: (bits.astype(np.uint32) << 16).view(np.float32)
    out = np.empty(shape, dtype=_NUMPY[dtype])
    return out, lambda: out


__all__ = ["Array", "described", "empty", "numpy", "taken"]
