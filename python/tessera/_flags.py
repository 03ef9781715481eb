"""Keywords as the library reads flags."""

from __future__ import annotations

import json
import os
from typing import Callable, Mapping, Sequence, Union

from ._errors import UsageError, shown

Flag = Union[None, bool, int, float, str, os.PathLike, Sequence[Union[int, float, str, os.PathLike]]]


def flags_text(flags: Mapping[str, object]) -> bytes:
    """Keywords as the library reads them."""

    def plain(value: object) -> object:
        try:
            if isinstance(value, os.PathLike):
                return os.fspath(value)
            if hasattr(value, "tolist"):  # a number or an array of numpy
                return value.tolist()
        except Exception as error:
            raise UsageError(f"a flag is a {type(value).__name__} that fails: {error}") from None
        raise UsageError(f"a flag is {shown(value)}; give a number, a text, True or False, or a list")

    try:
        return json.dumps(dict(flags), default=plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # nan, a list that holds itself
        if isinstance(error, UsageError):
            raise
        name = next((name for name, value in flags.items() if not _is_json(value, plain)), "a flag")
        raise UsageError(f"{name} is no finite number, text or list of these: {error}") from None


def _is_json(value: object, plain: Callable[[object], object]) -> bool:
    try:
        json.dumps(value, default=plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
