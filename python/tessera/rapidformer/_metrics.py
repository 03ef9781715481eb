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


def _matthews(predictions, references) -> Scores:
    """Of any number of classes, as scikit-learn's matthews_corrcoef."""
    import numpy

    classes = numpy.union1d(predictions, references)
    found, wanted = (numpy.array([(side == one).sum() for one in classes], float) for side in (predictions, references))
    n, right = float(len(references)), float((predictions == references).sum())
    vary = (n * n - (found**2).sum()) * (n * n - (wanted**2).sum())
    return {"matthews_correlation": float((right * n - (found * wanted).sum()) / math.sqrt(vary)) if vary else 0.0}


def _ranks(values):
    """Equal numbers share the mean of their ranks."""
    import numpy

    _, place, count = numpy.unique(values, return_inverse=True, return_counts=True)
    last = numpy.cumsum(count)
    return ((2 * last - count + 1) / 2)[place]


def _correlations(predictions, references) -> Scores:
    import numpy

    def pearson(x, y) -> float:
        x, y = x - x.mean(), y - y.mean()
        scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
        return float((x * y).sum()) / scale if scale else math.nan

    x, y = (numpy.asarray(side, float) for side in (predictions, references))
    return {"pearson": pearson(x, y), "spearmanr": pearson(_ranks(x), _ranks(y))}


def _word_errors(predictions, references) -> Scores:
    """Of texts: the fewest words to change, leave out and add, by the words of the references."""
    errors = words = 0
    for found, wanted in ((str(f).split(), str(w).split()) for f, w in zip(predictions, references)):
        row = list(range(len(found) + 1))
        for i, word in enumerate(wanted, 1):
            before, row[0] = row[0], i
            for j, other in enumerate(found, 1):
                before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
        errors, words = errors + row[-1], words + len(wanted)
    if not words:
        raise UsageError("the references have no word; give texts")
    return {"wer": errors / words}


def _perplexity(predictions, references) -> Scores:
    """Of mean losses: references are not read."""
    return {"perplexity": math.exp(float(predictions.mean()))}


_METRICS: Dict[str, Callable] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews_correlation": _matthews,
    "perplexity": _perplexity,
    "wer": _word_errors,
}
_GLUE: Dict[str, Callable] = {
    "cola": _matthews,
    "mrpc": _both,
    "qqp": _both,
    "stsb": _correlations,
    **{name: _accuracy for name in ("sst2", "mnli", "mnli_matched", "mnli_mismatched", "qnli", "rte", "wnli")},
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
    """accuracy, f1 (of class 1), matthews_correlation, perplexity (of mean losses), wer (of texts), or what belongs to a data set of GLUE:
    load_metric("glue", "mrpc"). Nothing is downloaded."""
    base = os.path.basename(os.path.normpath(os.fspath(path)))
    function = _METRICS.get(base) if name is None else _GLUE.get(name) if base == "glue" else None
    if function is None:
        known = [*_METRICS, *(f"glue {task}" for task in _GLUE)]
        raise UsageError(f"there is no metric {' '.join(filter(None, [base, name]))!r}; there are {', '.join(known)}")
    return Metric(" ".join(filter(None, [base, name])), function)
