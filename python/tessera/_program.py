"""A program's samples and scores, as the library calls them: tessera_program of c_api.h."""

from __future__ import annotations

import ctypes
import itertools
from contextlib import contextmanager, nullcontext
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy

from ._batches import Batches
from ._call import Call
from ._errors import UsageError
from ._library import library

_TEXT, _I64 = ctypes.c_char_p, ctypes.c_int64


class _Feature(ctypes.Structure):
    _fields_ = [("name", _TEXT), ("is_float", ctypes.c_int), ("row", _I64), ("numbers", ctypes.c_void_p)]


class _Features(ctypes.Structure):
    _fields_ = [("features", ctypes.POINTER(_Feature)), ("count", _I64), ("unmasked", _I64)]


class _Prediction(ctypes.Structure):
    _fields_ = [
        ("name", _TEXT),
        ("dims", ctypes.POINTER(_I64)),
        ("ndim", _I64),
        ("numbers", ctypes.POINTER(ctypes.c_float)),
    ]


class _Score(ctypes.Structure):
    _fields_ = [("name", _TEXT), ("value", ctypes.c_double)]


_POINTER = ctypes.POINTER
_READ = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, _POINTER(_I64), _I64, _POINTER(_Features)
)
_SCORE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    _POINTER(_Prediction),
    _I64,
    _POINTER(_POINTER(_Score)),
    _POINTER(_I64),
)
_PROBLEM = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_FORWARD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _TEXT, _POINTER(ctypes.c_void_p))


class _Struct(ctypes.Structure):
    _fields_ = [
        ("user", ctypes.c_void_p),
        ("train", _I64),
        ("valid", _I64),
        ("shuffled", ctypes.c_int),
        ("in_order", ctypes.c_int),
        ("digest", _TEXT),
        ("read", _READ),
        ("score", _SCORE),
        ("problem", _PROBLEM),
        ("forward", _FORWARD),
    ]


Predictions = Dict[str, numpy.ndarray]
_numbers_of_failures = itertools.count()


class Program:
    """Datasets, and a function of all that is predicted of the held-out one, which returns scores.

    The functions run in the thread that calls. What they raise is raised there, once the library
    has saved what was trained.
    """

    def __init__(
        self,
        train: Optional[Batches],
        valid: Optional[Batches],
        score: Optional[Callable[[Predictions], Dict[str, float]]],
        shuffled: bool,
        forward: Optional[Callable] = None,
        kinds: Optional[tuple] = None,
    ):
        self._datasets = (train, valid)
        self._score = score
        self._shuffled = shuffled
        self._forward = forward
        self._kinds = kinds  # of the batch and of its values, for `forward`
        self._written: Dict[str, List[str]] = {}  # by `forward`
        self._call: Optional[Call] = None
        self._kept: object = None  # what the library reads until the next call
        self._problem = ctypes.create_string_buffer(b"")
        self._failures: List[Tuple[str, BaseException]] = []

    @property
    def held_out(self) -> Optional[Batches]:
        return self._datasets[1]

    def call(self, call: Call, what: str, flags: dict) -> dict:
        batches = next((one for one in self._datasets if one is not None), None)
        with self.functions() as struct, batches.lengths.explained() if batches else nullcontext():
            return self.during(call, lambda: call.command(what, flags, struct))

    @contextmanager
    def functions(self) -> Iterator[ctypes.Structure]:
        """The struct of the library, which calls into this object while it lives."""
        train, valid = self._datasets
        try:
            yield _Struct(
                None,
                -1 if train is None else train.rows.size,
                -1 if valid is None else valid.rows.size,
                self._shuffled,
                train is not None and train.rows.in_order,
                " ".join(each.digest() for each in self._datasets if each is not None).encode() or None,
                _READ(lambda _user, *given: self._guarded(self._read, given)),
                _SCORE(lambda _user, *given: self._guarded(self._scores, given)) if self._score else _SCORE(),
                _PROBLEM(lambda _user: ctypes.addressof(self._problem)),
                _FORWARD(lambda _user, *given: self._guarded(self._write_loss, given))
                if self._forward
                else _FORWARD(),
            )
        finally:
            self._kept = None

    def during(self, call: Call, work: Callable[[], object]) -> object:
        """What `work` returns, which runs `call`: meanwhile the functions run in its thread."""
        self._call = call
        try:
            return work()
        except Exception as error:
            for mark, failure in self._failures:
                if mark in str(error):
                    raise failure from None
            raise
        finally:
            self._call = None
            self._failures.clear()  # their tracebacks hold this object

    def hear(self, text: bytes, lines: Callable[[str], object]) -> None:
        """A line of the library for people, in a thread of its own."""
        call = self._call
        if call is not None:
            call._line(None, text)
        else:
            lines(text.decode(errors="replace"))

    def _guarded(self, work: Callable, given: tuple) -> int:
        """In a thread of the library."""
        try:
            if self._call is None:
                raise UsageError("nobody calls, so that samples cannot be read")
            self._call.in_caller(lambda: work(*given))
            return 0
        except BaseException as failure:
            mark = f"[failure {next(_numbers_of_failures)}]"
            self._failures.append((mark, failure))
            said = f"{type(failure).__name__}: {failure} {mark}".replace("\0", " ")
            self._problem = ctypes.create_string_buffer(said.encode(errors="replace"))
            return 1

    def _read(self, held_out: int, numbers: object, count: int, out: object) -> None:
        batches = self._datasets[held_out]
        found = batches.take(numbers[:count])
        features = (_Feature * len(found))()
        for feature, (name, array) in zip(features, found.items()):
            feature.name = _name(name)
            feature.is_float = array.dtype == numpy.float32
            feature.row = array.shape[1] if array.ndim == 2 else -1
            feature.numbers = array.ctypes.data
        self._kept = (found, features)
        out[0] = _Features(features, len(found), batches.unmasked)

    def _write_loss(self, handle: int, batch: bytes, out: object) -> None:
        from ._forward import KINDS, written_loss

        written = written_loss(self._forward, handle, batch, self._kinds or KINDS, self._written)
        self._kept = ctypes.create_string_buffer(written)
        out[0] = ctypes.addressof(self._kept)

    def _scores(self, predictions: object, count: int, scores: object, num_scores: object) -> None:
        found: Predictions = {}
        for k in range(count):
            each = predictions[k]
            shape = tuple(each.dims[: each.ndim])
            if 0 in shape:
                found[each.name.decode()] = numpy.zeros(shape, numpy.float32)
            else:
                found[each.name.decode()] = numpy.ctypeslib.as_array(each.numbers, shape).copy()
        named = self._score(found)
        array = (_Score * max(1, len(named)))()
        for score, (name, value) in zip(array, named.items()):
            score.name, score.value = _name(name), value
        self._kept = array
        scores[0] = array
        num_scores[0] = len(named)


def _name(name: object) -> bytes:
    if not isinstance(name, str) or not name or "\0" in name:
        raise UsageError(f"a feature or score is called {name!r}; give it a name that is a text")
    return name.encode()


library.tessera_call_with.restype = ctypes.c_int
library.tessera_call_with.argtypes = [
    ctypes.c_void_p,
    _TEXT,
    _TEXT,
    ctypes.POINTER(_Struct),
    ctypes.c_void_p,
]
library.tessera_save.restype = None
library.tessera_save.argtypes = [ctypes.c_void_p]
