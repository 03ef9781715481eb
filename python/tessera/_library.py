"""The shared library of Tessera, src/tessera/c_api/c_api.h, through ctypes."""

from __future__ import annotations

import ctypes
import os

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtessera_c.so")

EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Listener(ctypes.Structure):
    _fields_ = [("user", ctypes.c_void_p), ("event", EVENT), ("line", LINE)]


class Array(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    ]


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
    function("tessera_flags", ctypes.c_int, run, text)
    function("tessera_stop", None, run)
    function("tessera_result", ctypes.c_char_p, run)
    function("tessera_error", ctypes.c_char_p, run)
    function("tessera_array_count", ctypes.c_int64, run)
    function("tessera_array_at", ctypes.POINTER(Array), run, ctypes.c_int64)
    model, arrays = ctypes.c_void_p, ctypes.POINTER(Array)
    function("tessera_model_open", model, run, text)
    function("tessera_model_free", None, model)
    function("tessera_model_call", ctypes.c_int, run, model, arrays, ctypes.c_int64)
    function("tessera_model_parameters", ctypes.c_int, run, model, ctypes.c_int)
    function(
        "tessera_model_write", ctypes.c_int, run, model, text, text, ctypes.POINTER(Listener)
    )
    function("tessera_model_save", ctypes.c_int, run, model, text)
    function("tessera_model_tokens", ctypes.c_int, run, model, text)
    loop, listener = ctypes.c_void_p, ctypes.POINTER(Listener)
    function("tessera_loop_open", loop, run, text, ctypes.c_void_p, listener)
    function("tessera_loop_free", None, loop)
    function("tessera_loop_batches", ctypes.c_int, run, loop, ctypes.c_int64)
    function("tessera_loop_step", ctypes.c_int, run, loop, ctypes.c_int64)
    function("tessera_loop_set_lr", ctypes.c_int, run, loop, ctypes.c_double)
    function("tessera_set_lr", ctypes.c_int, run, ctypes.c_double)
    function("tessera_loop_predict", ctypes.c_int, run, loop)
    function("tessera_graph_model", ctypes.c_int, ctypes.c_void_p, text)
    function("tessera_loop_save", ctypes.c_int, run, loop, text)
    _declare_steps(function)
    return library


def _declare_steps(function) -> None:
    """Graphs, and steps that are compiled from them."""
    handle, text, code = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    graphs = ctypes.POINTER(ctypes.c_void_p)
    function("tessera_graph_new", handle)
    function("tessera_graph_free", None, handle)
    function("tessera_graph_call", code, handle, text)
    function("tessera_graph_text", code, handle)
    function("tessera_graph_result", text, handle)
    function("tessera_graph_error", text, handle)
    function("tessera_graph_calls", text)
    function("tessera_step_new", handle)
    function("tessera_step_free", None, handle)
    function("tessera_step_compile", code, handle, graphs, code, text)
    function("tessera_step_place", code, handle, graphs, code, text)
    function("tessera_step_run", code, handle, text, handle, code)
    function("tessera_step_call", code, handle, text)
    function("tessera_step_write", code, handle, handle, code)
    function("tessera_step_read", code, handle, text, handle, ctypes.c_int64)
    function("tessera_step_result", text, handle)
    function("tessera_step_error", text, handle)


library = _load()
