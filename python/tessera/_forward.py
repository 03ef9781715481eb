"""Losses of one's own: compute_loss of a Trainer, run_forward_step of a script of Rapidformer."""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Callable, Dict, Iterator, List, Mapping, Match, Optional, Sequence

from ._errors import UsageError, shown
from ._graph import Graph, Value, shape_text
from ._library import library


_ID = r'"%[\d.]+"'


class _BatchGraph(Graph):
    """The graph of a batch, which is the library's, and only while the function runs."""

    def __init__(self, handle: int):
        self.handle = handle
        self.scopes = []
        self.ended = False
        self.written: List[str] = []  # what was called, with values by their order
        self._order: Dict[str, int] = {}

    def call(self, op: str, arguments: dict) -> List[Value]:
        made = super().call(op, arguments)
        plain = {name: self._plain(each, name) for name, each in arguments.items()}
        self.note(op, plain, [each._id for each in made])
        return made

    def note(self, what: str, arguments: dict, makes: Sequence[str] = ()) -> None:
        def placed(match: Match) -> str:
            return f'"value {self._order.setdefault(match.group(), len(self._order))}"'

        self.written.append(f"{what} {re.sub(_ID, placed, json.dumps(arguments))}")
        re.sub(_ID, placed, json.dumps(list(makes)))  # whose places are those in which they are made

    def model(self, features: Dict[str, object]) -> dict:
        if self.ended:
            raise UsageError("the model is called after the function of its batch has returned; call it in there")
        given = {name: self._plain(value, name) for name, value in features.items()}
        self._require(library.tessera_graph_model(self.handle, json.dumps(given).encode()))
        made = json.loads(library.tessera_graph_result(self.handle))
        self.note("model", given, [each["id"] for _, each in sorted(made["predictions"].items())])
        return made


class ModelLoss(Value):
    """The model's own loss, a mean: as it is, batches weigh as much as counts in each."""

    __slots__ = ("parts",)


class ModelOutput(Mapping):
    """What model(**batch) computes: output.loss, output.logits; also by name or place. Without labels
    it has no loss."""

    def __init__(self, loss: Optional[ModelLoss], predictions: Dict[str, Value]):
        self._values: Dict[str, Value] = dict(predictions) if loss is None else {"loss": loss, **predictions}

    def __getattr__(self, name: str) -> Value:
        if name in self._values or name == "loss":
            return self[name]
        raise AttributeError(f"there is no {name}; there are {', '.join(self._values)}")

    def __getitem__(self, which: object) -> Value:
        if isinstance(which, int):
            return list(self._values.values())[which]
        if which == "loss" and which not in self._values:
            raise UsageError(
                "the model was called without labels, so it has no loss; give it labels, or compute a loss of what "
                "it predicts"
            )
        return self._values[which]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class TracedModel:
    """The model in a function that writes the loss of a batch: model(**batch)."""

    def __init__(self, graph: _BatchGraph):
        self._graph = graph
        self.last: Optional[ModelOutput] = None

    def __call__(self, **features: object) -> ModelOutput:
        for name, value in features.items():
            if not isinstance(value, Value):
                raise UsageError(f"model(**batch): {name} is a {type(value).__name__}; give values of the batch")
        found = self._graph.model(features)
        loss: Optional[ModelLoss] = None
        if found["loss"] is not None:
            loss = ModelLoss(self._graph, found["loss"], "the loss")
            loss.parts = {"sum": found["sum"]["id"], "count": found["count"]["id"]}
        predictions = {k: Value(self._graph, v, k) for k, v in found["predictions"].items()}
        self.last = ModelOutput(loss, predictions)
        return self.last

    def __getitem__(self, which: int) -> "TracedModel":
        return self


class TracedBatch(Mapping):
    """Values by name: **batch, batch["labels"]; next(batch) is the batch itself."""

    def __init__(self, values: Dict[str, Value]):
        self._values = values

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            raise KeyError(f"the batch has no {name!r}; it has {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __next__(self) -> "TracedBatch":
        return self

    def to(self, *_: object) -> "TracedBatch":
        return self


KINDS = (TracedBatch, Value)


def written_loss(
    function: Callable, handle: int, batch: bytes, kinds: tuple, earlier: Dict[str, List[str]]
) -> bytes:
    """Calls function(model, batch) on a graph of the library; what it returned, as tessera_program::
    forward sets it. `earlier`: what it wrote for batches of these shapes."""
    graph = _BatchGraph(handle)
    of_batch, of_value = kinds
    values = {name: of_value(graph, made, name) for name, made in json.loads(batch).items()}
    graph.note("batch", {}, [value._id for _, value in sorted(values.items())])
    model = TracedModel(graph)
    try:
        with graph:
            found = function(model, of_batch(values))
    finally:
        graph.ended = True
    loss, predictions = _parts(found, model)
    of_loss = graph._plain(loss, "the loss")
    out: Dict[str, object] = dict(loss.parts) if isinstance(loss, ModelLoss) else {"loss": of_loss}
    out["predictions"] = {name: graph._plain(value, f"prediction {name!r}") for name, value in predictions.items()}
    graph.note("return", out)
    shapes = ", ".join(f"{name} {shape_text(each.dtype, each.shape)}" for name, each in sorted(values.items()))
    _require_same(earlier.setdefault(shapes, graph.written), graph.written)
    return json.dumps(out).encode()


def _require_same(first: List[str], now: List[str]) -> None:
    """Each device writes its own graph: others would compute something else."""
    for one, other in zip_longest(first, now, fillvalue="nothing"):
        if one != other:
            raise UsageError(
                f"the function of a loss writes {shown(other)} where it wrote {shown(one)} for another device or "
                "program; it may depend on its arguments alone"
            )


def _parts(found: object, model: TracedModel):
    """The loss, and what is predicted: what the function returned, or the model's last call."""
    predictions: Optional[Mapping] = None
    if isinstance(found, tuple) and len(found) == 2:
        found, predictions = found
    if isinstance(found, Mapping):
        predictions = found if predictions is None else predictions
        found = found.get("loss")
    if not isinstance(found, Value):
        raise UsageError(
            f"the loss is a {type(found).__name__}; return model(**batch).loss, or a scalar that is computed of "
            "values of the batch"
        )
    if predictions is None:
        predictions = model.last or {}
    if not isinstance(predictions, Mapping):
        raise UsageError(
            f'what is predicted is a {type(predictions).__name__}; return it by name, as loss, {{"logits": logits}}'
        )
    named = {name: value for name, value in predictions.items() if name != "loss"}
    for name, value in named.items():
        if not isinstance(value, Value):
            raise UsageError(f"what is predicted as {name!r} is a {type(value).__name__}; give a value")
    return found, named
