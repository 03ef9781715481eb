"""run_forward_step: what it is given, and what it may return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Iterable, Iterator

from .._errors import UsageError

_HOW = "return model(**batch).loss from run_forward_step"


class Symbol:
    """A tensor that is not computed yet. Conversions return it; nothing else is done with it here."""

    def __init__(self, name: str):
        self._name = name

    def _same(self, *_: object, **__: object) -> "Symbol":
        return self

    long = int = float = half = contiguous = clone = detach = to = cuda = cpu = _same

    def __getattr__(self, name: str):
        raise UsageError(f"{self._name}.{name}: a loss of one's own is written with tessera.compile; here {_HOW}")

    def _refuse(self, *_: object) -> None:
        raise UsageError(f"computing with {self._name}: a loss of one's own is written with tessera.compile; here {_HOW}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __neg__ = __pow__ = __getitem__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = _refuse


class SymbolicOutput:
    """What the model computes: output.loss, output["loss"], output[0]."""

    def __init__(self):
        self.loss = Symbol("the loss")
        self.logits = Symbol("logits")

    def __getitem__(self, which: object) -> Symbol:
        if which in (0, "loss"):
            return self.loss
        if which in (1, "logits"):
            return self.logits
        raise KeyError(which)


class SymbolicModel:
    """The model in run_forward_step."""

    def __init__(self):
        self.last: SymbolicOutput = None

    def __call__(self, **features: object) -> SymbolicOutput:
        self.last = SymbolicOutput()
        return self.last

    def __getitem__(self, which: int) -> "SymbolicModel":
        return self


class SymbolicBatch(Mapping):
    """The batch of a step, or the iterator of them: **batch, batch["labels"], next(batch)."""

    def __init__(self, names: Iterable[str]):
        self._values = {name: Symbol(name) for name in names}

    def __getitem__(self, name: str) -> Symbol:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __next__(self) -> "SymbolicBatch":
        return self

    def to(self, *_: object) -> "SymbolicBatch":
        return self


class mpu:
    """Megatron-LM's module of that name, as far as scripts of Rapidformer use it: every device has its
    part of the batch already."""

    @staticmethod
    def broadcast_data(keys: Iterable[str], data, dtype=None):
        """The data as it is; of a batch that is symbolic, also what it does not name."""
        if not isinstance(data, SymbolicBatch):
            return data
        return {key: data[key] if key in data else Symbol(key) for key in keys}


def require_own_loss(run_forward_step, names: Iterable[str], where: str) -> None:
    """Runs the function once. Errors: it returns something else than the model's own loss."""
    model = SymbolicModel()
    found = run_forward_step(SymbolicBatch(names), model)
    if model.last is None:
        raise UsageError(f"{where} does not call the model; {_HOW}")
    if isinstance(found, tuple) and found:
        found = found[0]
    if found is not model.last and found is not model.last.loss:
        raise UsageError(f"{where} returns {type(found).__name__}; {_HOW}")
