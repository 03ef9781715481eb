"""What run_forward_step is given: tensors as scripts for torch treat them, which are not computed yet."""

from __future__ import annotations

from typing import Dict, Iterable

from .. import ops
from .._forward import TracedBatch
from .._graph import Value

# transformers' names, where data of the flags has others.
_ALSO = {
    "input_ids": "ids",
    "attention_mask": "mask",
    "token_type_ids": "types",
    "position_ids": "positions",
    "next_sentence_label": "next",
}


class ScriptValue(Value):
    """A feature: a tessera.Value with conversions of torch."""

    __slots__ = ()

    def long(self) -> Value:
        return self if self.dtype == "i32" else ops.cast(self, "i32")

    int = long

    def float(self) -> Value:
        return self if self.dtype == "f32" else ops.cast(self, "f32")

    def _same(self, *_: object, **__: object) -> Value:
        return self

    contiguous = clone = detach = to = cuda = cpu = _same

    def view(self, *shape: int) -> Value:
        return ops.reshape(self, _whole(shape, self.shape))

    reshape = view


def _whole(shape: tuple, of: tuple) -> list:
    """With -1 as torch has it."""
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape)
    if sizes.count(-1) == 1:
        known, numel = 1, 1
        for size in sizes:
            known *= size if size != -1 else 1
        for size in of:
            numel *= size
        sizes[sizes.index(-1)] = numel // known if known else 0
    return sizes


class ScriptBatch(TracedBatch):
    """The batch of a step, or the iterator of them: **batch, batch["labels"], next(batch)."""

    def __getitem__(self, name: str) -> Value:
        other = _ALSO.get(name, name)
        return super().__getitem__(other if name not in self._values and other in self._values else name)


class mpu:
    """Megatron-LM's module of that name, as far as scripts of Rapidformer use it: every device has its
    part of the batch already."""

    @staticmethod
    def broadcast_data(keys: Iterable[str], data, dtype=None) -> Dict[str, Value]:
        return {key: data[key] for key in keys}
