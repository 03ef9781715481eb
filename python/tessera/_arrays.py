"""Arrays in and out: numpy, torch, jax and whatever else speaks DLPack or numpy's protocols."""

from __future__ import annotations

import ctypes
from typing import Dict, List, Tuple

from ._errors import UsageError
from ._library import Array, library


def require_numpy():
    try:
        import numpy
    except ImportError:
        raise UsageError("this needs numpy; pip install numpy") from None
    return numpy


def to_numpy(name: str, value: object):
    """An array of numpy, of the same memory where that is possible. Refused: what is none, such as a
    list of rows of different lengths."""
    numpy = require_numpy()
    try:
        if isinstance(value, numpy.ndarray):
            array = value
        elif hasattr(value, "detach") and hasattr(value, "numpy"):  # torch, whose bf16 numpy lacks
            array = value.detach().cpu().numpy()
        elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            array = numpy.from_dlpack(value)
        else:
            array = numpy.asarray(value)
    except Exception as error:
        raise UsageError(
            f"{name} is no array, as its rows are not alike or of another kind: {error}"
        ) from None
    if not isinstance(array, numpy.ndarray):
        raise UsageError(f"{name} is {type(value).__name__}, which is no array; give one of numpy")
    if isinstance(array, numpy.ma.MaskedArray):
        raise UsageError(f"{name} is a masked array; fill it, as by {name}.filled(0)")
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{name} is of dtype {array.dtype}; give whole numbers or float32")
    return array


def _as_read(name: str, value: object):
    """What the library takes: f32, i32 or i64, row-major."""
    numpy = require_numpy()
    array = to_numpy(name, value)
    if array.dtype.kind == "f" and array.dtype != numpy.float32:
        raise UsageError(
            f"{name} is {array.dtype}; give float32, as by {name}.astype('float32'), "
            "so that nothing is rounded unseen"
        )
    if array.dtype == numpy.uint64:
        raise UsageError(f"{name} is uint64; give int64 or int32")
    if array.dtype.kind in "biu" and array.dtype not in (numpy.int32, numpy.int64):
        array = array.astype(numpy.int64)
    return numpy.ascontiguousarray(array).reshape(array.shape)  # what has no dims keeps none


class Inputs:
    """Arrays by name as the library reads them; they live as long as this."""

    def __init__(self, values: Dict[str, object]):
        self._held: List[object] = []
        arrays: List[Array] = []
        for name, value in values.items():
            if not isinstance(name, str) or not name or "\0" in name:
                raise UsageError(f"an input is called {name!r}; give a name, as input_ids")
            array = _as_read(name, value)
            shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            dtype = {"f": b"f32"}.get(array.dtype.kind) or (b"i32" if array.itemsize == 4 else b"i64")
            self._held += [array, shape]
            arrays.append(Array(name.encode(), dtype, array.ndim, shape, array.ctypes.data))
        self.count = len(arrays)
        self.arrays = (Array * max(self.count, 1))(*arrays)


def arrays_of(run: object) -> List[Tuple[str, object]]:
    """Copies of what a call left, by name."""
    numpy = require_numpy()
    out = []
    for i in range(library.tessera_array_count(run)):
        array = library.tessera_array_at(run, i).contents
        shape = tuple(array.shape[k] for k in range(array.ndim))
        copy = numpy.empty(shape, numpy.float32 if array.dtype == b"f32" else numpy.int32)
        ctypes.memmove(copy.ctypes.data, array.data, copy.nbytes)
        out.append((array.name.decode(), copy))
    return out
