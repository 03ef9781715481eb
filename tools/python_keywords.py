"""Writes the types of keywords of the Python package, for editors and mypy, from what a library takes."""

import ctypes
import json
import textwrap

NOT_OURS = ("json",)  # of the command alone
COMMANDS = ("train", "plan", "verify", "bench", "inspect", "export", "merge_adapter", "evaluate", "predict",
            "compile")
RUN = COMMANDS[:4]  # they share most
WHOLE, REAL = ("N", "SECONDS", "ID"), ("NUMBER", "FRACTION", "PERCENT")
HEAD = '''"""Keywords of functions, by the flags of commands. Made by tools/python_keywords.py."""

from os import PathLike
from typing import Literal, Optional, Sequence, TypedDict, Union

_Text = Union[None, str, PathLike[str]]
_Texts = Union[None, str, PathLike[str], Sequence[Union[str, PathLike[str]]]]
'''


def keywords_stub(library: str) -> str:
    """The text of tessera/_keywords.pyi."""
    tables = {command: flags_of(library, command) for command in COMMANDS}
    shared = {name: flag for name, flag in tables["train"].items() if is_shared(flag, tables)}
    out = HEAD + class_of("Run", "TypedDict", shared)
    for command, flags in tables.items():
        of_run = command in RUN
        own = {name: flag for name, flag in flags.items() if not of_run or name not in shared}
        out += class_of(command.title().replace("_", ""), "Run" if of_run else "TypedDict", own)
    return out


def is_shared(flag: dict, tables: dict) -> bool:
    return all(tables[command].get(flag["name"]) == flag for command in RUN)


def class_of(name: str, base: str, flags: dict) -> str:
    out = f"\nclass {name}({base}, total=False):\n"
    for flag in flags.values():
        out += f"    {keyword(flag['name'])}: {type_of(flag)}\n"
        help_text = flag["help"].replace("\\", "\\\\").replace('"', '\\"')
        lines = textwrap.wrap(f'"""{help_text}"""', 96, break_on_hyphens=False)
        out += textwrap.indent("\n".join(lines), "    ") + "\n"
        for other in flag["also"]:
            out += f"    {keyword(other)}: {type_of(flag)}\n"
    return out + ("" if flags else "    ...\n")


def keyword(name: str) -> str:
    return name.replace("-", "_")


def type_of(flag: dict) -> str:
    value = flag["value"]
    if flag["many"]:
        return "_Texts"
    if not value:
        return "Optional[bool]"
    if value in WHOLE or value in REAL:
        return "Optional[int]" if value in WHOLE else "Optional[float]"
    words = value.split("|")
    if len(words) > 1 and value == value.lower():
        return f"Optional[Literal[{', '.join(json.dumps(word) for word in words)}]]"
    return "_Text"


def flags_of(library: str, command: str) -> dict:
    """By name."""
    loaded = ctypes.CDLL(library)
    for function, result in [("tessera_run_new", ctypes.c_void_p), ("tessera_result", ctypes.c_char_p)]:
        getattr(loaded, function).restype = result
    run = ctypes.c_void_p(loaded.tessera_run_new())
    try:
        if loaded.tessera_flags(run, command.encode()) != 0:
            raise SystemExit(f"python_keywords.py: {library} has no function {command}")
        flags = json.loads(loaded.tessera_result(run))
        return {flag["name"]: flag for flag in flags if flag["name"] not in NOT_OURS}
    finally:
        loaded.tessera_run_free(run)
