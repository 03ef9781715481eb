"""The shared library of Tessera, src/tessera/c_api/c_api.h, through ctypes."""

from __future__ import annotations

import ctypes
import os

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtessera_c.so")

EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Listener(ctypes.Structure):
    _fields_ = [("user", ctypes.c_void_p), ("event", EVENT), ("line", LINE)]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(_PATH)  # it releases the GIL during a call

    def function(name: str, result: object, *arguments: object) -> None:
        getattr(library, name).restype = result
        getattr(library, name).argtypes = arguments

    run = ctypes.c_void_p
    function("tessera_version", ctypes.c_char_p)
    function("tessera_run_new", run)
    function("tessera_run_free", None, run)
    text = ctypes.c_char_p
    function("tessera_call", ctypes.c_int, run, text, text, ctypes.POINTER(Listener))
    function("tessera_stop", None, run)
    function("tessera_result", ctypes.c_char_p, run)
    function("tessera_error", ctypes.c_char_p, run)
    return library


library = _load()
