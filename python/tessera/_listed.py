"""Flags of commands as keywords of functions: what help() and editors say of them."""

from __future__ import annotations

import inspect
import json
import textwrap
from typing import Any, Callable, List, TypeVar

from ._library import library

_COLUMNS = 100
_NOT_OURS = ("json",)  # of the command alone

Function = TypeVar("Function", bound=Callable[..., Any])


def flags_of(command: str) -> List[dict]:
    """What a command takes: dicts with name, also, value, many, group and help."""
    run = library.tessera_run_new()
    try:
        library.tessera_flags(run, command.encode())
        return [f for f in json.loads(library.tessera_result(run)) if f["name"] not in _NOT_OURS]
    finally:
        library.tessera_run_free(run)


def keywords_of(command: str) -> Callable[[Function], Function]:
    """Lists the flags of a command in the signature of a function, and below what it says."""

    def listed(function: Function) -> Function:
        flags = flags_of(command)
        given = inspect.signature(function)
        parameters = [p for p in given.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(_name(flag), inspect.Parameter.KEYWORD_ONLY, default=None)
            for flag in flags
            if _name(flag) not in given.parameters
        ]
        signature = given.replace(parameters=parameters)
        setattr(function, "__signature__", signature)
        if function.__doc__:
            function.__doc__ = inspect.cleandoc(function.__doc__) + "\n\n" + _lines(flags)
        return function

    return listed


def _name(flag: dict) -> str:
    return flag["name"].replace("-", "_")


def _lines(flags: List[dict]) -> str:
    out, group = ["The flags:", ""], ""
    for flag in flags:
        if flag["group"] != group:
            group = flag["group"]
            out += ["", group]
        value = "=" + flag["value"] if flag["value"] else ""
        head = f"  {_name(flag)}{value}  "
        out.append(head + textwrap.shorten(flag["help"], _COLUMNS - len(head), placeholder=" ..."))
    return "\n".join(out) + "\n"
