"""What can go wrong, as docs/reference/errors.md has it."""

from __future__ import annotations


class Error(Exception):
    """What was wrong, with both values, and what to do. `code` is the exit code of the command."""

    code = 8


class UsageError(Error, ValueError):
    """A flag or a configuration file is wrong."""

    code = 2


class DataError(Error):
    """Data is missing, damaged or does not fit the model; the message names file and line."""

    code = 3


class CheckpointError(Error):
    """A checkpoint is missing, damaged, or of another model or version."""

    code = 4


class ResourceError(Error):
    """Disk, memory or permission."""

    code = 5


class NumericsError(Error):
    """Losses or parameters are inf or nan."""

    code = 6


class PeerError(Error):
    """Another rank died, hung or disagrees."""

    code = 7


class InternalError(Error):
    """A bug of Tessera: please report it."""

    code = 8


def shown(value: object) -> str:
    """A value in a message, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # a list that is too deep, or what fails when it is asked
        return f"a {type(value).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."


def error_of(failure: dict) -> Error:
    """The exception of a {"kind", "message", "code"} of the library."""
    kind = globals().get(failure["kind"] + "Error", InternalError)
    return kind(failure["message"])
