"""Held-out samples as scripts go through them: batches with labels, of which all is predicted already."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator

from .._errors import UsageError
from .._model import Output

ROWS = 32  # of a batch


def as_script_wants(array):
    """A tensor of torch where the script has imported it, else numpy's, with torch's `dim`."""
    import sys

    import numpy

    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.from_numpy(numpy.ascontiguousarray(array))

    class Array(numpy.ndarray):
        def argmax(self, axis=None, out=None, *, dim=None, keepdims=False):
            found = numpy.ndarray.argmax(self, dim if axis is None else axis, keepdims=keepdims)
            return numpy.asarray(found)

    return array.view(Array)


class Unread:
    """A feature of a batch of the loop, which the model reads by itself."""

    def __init__(self, name: str):
        self._name = name

    def _same(self, *_: object, **__: object) -> "Unread":
        return self

    to = cuda = cpu = _same

    def __getattr__(self, name: str):
        raise UsageError(
            f"{self._name}.{name}: a batch of build_data_loader is not read by the script; call model(**batch), or "
            "write a loss of your own in run_forward_step of a Finetuner"
        )


class _Rows(Unread):
    """Of a batch that is predicted: its samples."""

    def __init__(self, name: str, rows: slice):
        super().__init__(name)
        self.rows = rows


class Batch(dict):
    def to(self, *_: object) -> "Batch":
        return self


def batches(samples: int, labels: Dict[str, object], names: Iterable[str] = ()) -> Iterator[Batch]:
    """Of so many samples, in their order: their labels, and features by name that nobody reads."""
    for begin in range(0, samples, ROWS):
        rows = slice(begin, min(begin + ROWS, samples))
        values: Dict[str, object] = {name: _Rows(name, rows) for name in (*names, "_rows")}
        values.update({name: as_script_wants(of[rows]) for name, of in labels.items()})
        yield Batch(values)


def predicted(predictions: Dict[str, object], features: Dict[str, object]) -> Output:
    """What is predicted of such a batch. Errors: the features are of none."""
    for value in features.values():
        if isinstance(value, _Rows):
            return Output({name: as_script_wants(of[value.rows]) for name, of in predictions.items()})
    raise UsageError("the model was called with something else than a batch of its data; call model(**batch)")
