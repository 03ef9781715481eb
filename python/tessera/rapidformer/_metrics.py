"""Metrics by the names that `datasets` gave them."""

from __future__ import annotations

import math
import os
from typing import Callable, Dict, Optional

from .._errors import UsageError

Scores = Dict[str, float]


def _accuracy(predictions, references) -> Scores:
    return {"accuracy": float((predictions == references).mean())}


def _f1(predictions, references) -> Scores:
    """Of class 1."""
    right = float(((predictions == 1) & (references == 1)).sum())
    all_of = float((predictions == 1).sum() + (references == 1).sum())
    return {"f1": 2 * right / all_of if all_of else 0.0}


def _both(predictions, references) -> Scores:
    return {**_accuracy(predictions, references), **_f1(predictions, references)}


def _perplexity(predictions, references) -> Scores:
    """Of mean losses: references are not read."""
    return {"perplexity": math.exp(float(predictions.mean()))}


_METRICS: Dict[str, Callable] = {"accuracy": _accuracy, "f1": _f1, "perplexity": _perplexity}
_GLUE: Dict[str, Callable] = {
    "mrpc": _both,
    "qqp": _both,
    **{name: _accuracy for name in ("sst2", "mnli", "qnli", "rte", "wnli")},
}


class Metric:
    """Collects predictions and what they should be: add_batch(), then compute()."""

    def __init__(self, name: str, function: Callable):
        self.name = name
        self._function = function
        self._predictions: list = []
        self._references: list = []

    def add_batch(self, *, predictions, references=()) -> None:
        import numpy

        mine, theirs = numpy.asarray(predictions).ravel(), numpy.asarray(references).ravel()
        if theirs.size and mine.size != theirs.size:
            raise UsageError(f"{mine.size} predictions and {theirs.size} references; give as many")
        self._predictions.append(mine)
        self._references.append(theirs)

    def compute(self, *, predictions=None, references=()) -> Scores:
        """The scores of all that was added, which is forgotten."""
        import numpy

        if predictions is not None:
            self.add_batch(predictions=predictions, references=references)
        if not self._predictions:
            raise UsageError(f"{self.name} has nothing to score; call add_batch() first")
        mine, theirs = numpy.concatenate(self._predictions), numpy.concatenate(self._references)
        self._predictions, self._references = [], []
        if self._function is not _perplexity and mine.size != theirs.size:
            raise UsageError(f"{self.name}: {mine.size} predictions and {theirs.size} references; give as many")
        return self._function(mine, theirs)

    def __repr__(self) -> str:
        return f"Metric({self.name})"


def load_metric(path: str, name: Optional[str] = None) -> Metric:
    """accuracy, f1 (of class 1), perplexity (of mean losses), or what belongs to a data set of GLUE:
    load_metric("glue", "mrpc"). Nothing is downloaded."""
    base = os.path.basename(os.path.normpath(os.fspath(path)))
    function = _METRICS.get(base) if name is None else _GLUE.get(name) if base == "glue" else None
    if function is None:
        known = [*_METRICS, *(f"glue {task}" for task in _GLUE)]
        raise UsageError(f"there is no metric {' '.join(filter(None, [base, name]))!r}; there are {', '.join(known)}")
    return Metric(" ".join(filter(None, [base, name])), function)
