"""Commands whose result is what they print, a text."""

from __future__ import annotations

import os
from typing import Callable, Optional, Union

from ._call import Call
from ._flags import Flag

Path = Union[str, os.PathLike]
Lines = Optional[Callable[[str], object]]


def _text(name: str, paths: tuple, lines: Lines, flags: dict) -> str:
    return Call(lines).command(name, {**flags, "": list(paths) or None})["text"]


def prepare(*sources: Path, lines: Lines = print, **flags: Flag) -> str:
    """Makes one clean text file from several, or from a corpus by name, as `tessera prepare` does.

    tessera.prepare("kjv", output="corpus.txt")
    """
    return _text("prepare", sources, lines, flags)


def preprocess_data(*, lines: Lines = print, **flags: Flag) -> str:
    """Makes token files from JSON lines, as Megatron-LM's tool and `tessera preprocess_data` do.

    tessera.preprocess_data(input="docs.jsonl", output_prefix="docs", tokenizer="gpt2")
    """
    return _text("preprocess_data", (), lines, flags)


def score(*, lines: Lines = print, **flags: Flag) -> str:
    """Scores translations by BLEU, as `tessera score` does.

    tessera.score(hypotheses="written.txt", references="wanted.txt")
    """
    return _text("score", (), lines, flags)


def report(*runs: Path, lines: Lines = print, **flags: Flag) -> str:
    """Writes a page about runs, as `tessera report` does.

    tessera.report("runs/mine", output="report.html")
    """
    return _text("report", runs, lines, flags)


def chart(*runs: Path, lines: Lines = print, **flags: Flag) -> str:
    """Draws the losses of runs, as `tessera chart` does: print() it.

    print(tessera.chart("runs/mine"))
    """
    return _text("chart", runs, lines, flags)


def doctor(*, lines: Lines = print, **flags: Flag) -> str:
    """What this machine offers, and problems, as `tessera doctor` prints it."""
    return _text("doctor", (), lines, flags)
