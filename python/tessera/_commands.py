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

    output     the file to write; of "wmt14" the folder
    input      of "wmt14": the folder of its .sgm files
    overwrite  replace an output with other contents
    """
    return _text("prepare", sources, lines, flags)


def preprocess_data(*, lines: Lines = print, **flags: Flag) -> str:
    """Makes token files from JSON lines, as Megatron-LM's tool and `tessera preprocess_data` do.

    tessera.preprocess_data(input="docs.jsonl", output_prefix="docs", tokenizer_model="gpt2")

    Also json_keys, split_sentences, keep_newlines, tokenizer_type, vocab_file, merge_file, vocab_size,
    append_eod, overwrite, workers, log_interval: docs/reference/flags.md.
    """
    return _text("preprocess_data", (), lines, flags)


def score(*, lines: Lines = print, **flags: Flag) -> str:
    """Scores texts by BLEU or word errors, or predictions with labels, as `tessera score` does.

    tessera.score(hypotheses="written.txt", references="wanted.txt")
    tessera.score(metric="cola", predictions="predictions.tsv")
    """
    return _text("score", (), lines, flags)


def report(*runs: Path, lines: Lines = print, **flags: Flag) -> str:
    """Writes a page about runs, as `tessera report` does.

    tessera.report("runs/mine", output="report.html")

    output  by default report.html
    """
    return _text("report", runs, lines, flags)


def chart(*runs: Path, lines: Lines = print, **flags: Flag) -> str:
    """Draws the losses of runs in an SVG file, as `tessera chart` does.

    tessera.chart("runs/mine", "runs/other", output="losses.svg")

    output  by default losses.svg
    """
    return _text("chart", runs, lines, flags)


def doctor(*, lines: Lines = print, **flags: Flag) -> str:
    """What this machine offers, and problems, as `tessera doctor` prints it.

    no_measure  True: the rates of products and memory are not measured
    calibrate   a machine file to write, from measurements of `devices`
    """
    return _text("doctor", (), lines, flags)
