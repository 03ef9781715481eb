"""engine.compose: a training loop of the script's own."""

from __future__ import annotations

import functools
from typing import Callable, Dict, Iterator, Optional, Tuple

from .._errors import UsageError
from .._loop import Loop
from .._model import Model
from .._trainer import Trainer, TrainingArguments, stacked
from ._held_out import ROWS, Batch, Unread, batches, predicted
from ._templates import columns_of

# transformers' functions of a schedule, as flags.
_SCHEDULES = {
    "get_linear_schedule_with_warmup": "linear",
    "get_cosine_schedule_with_warmup": "cosine",
    "get_constant_schedule_with_warmup": "constant",
    "get_constant_schedule": "constant",
}


class _Numbered(Unread):
    """Of a batch that trains: its first sample."""

    def __init__(self, name: str, number: int):
        super().__init__(name)
        self.number = number


class StepLoss:
    """The loss of a batch: backward() is the whole step, gradients and update, which are one compiled
    program; float() of it is known from then on."""

    def __init__(self, loop: Loop, number: int):
        self._loop, self._number = loop, number
        self._step: Optional[dict] = None

    def backward(self) -> None:
        if self._step is not None:
            raise UsageError("backward() of a loss is called twice; call the model again")
        self._step = self._loop.step(self._number)

    def item(self) -> float:
        if self._step is None:
            raise UsageError("a loss is known once backward() was called; call it first")
        return self._step["loss"]

    __float__ = item

    def detach(self) -> "StepLoss":
        return self

    def __format__(self, how: str) -> str:
        return format(self.item(), how)

    def __repr__(self) -> str:
        return "StepLoss(before backward())" if self._step is None else f"StepLoss({self.item():.6g})"

    def _refuse(self, *_: object) -> None:
        raise UsageError("a loss is not computed with: backward() is the step of the model's own loss")

    __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __sub__ = _refuse


class _Composed:
    """What belongs to one loop, which is opened by its first batch."""

    def __init__(self):
        self.model: object = None
        self.schedule: Dict[str, object] = {}
        self.datasets: list = []
        self.collate: Optional[Callable] = None
        self.composed = False
        self._loop: Optional[Loop] = None

    def opened(self, engine) -> Loop:
        if self._loop is None:
            if not self.composed:
                raise UsageError("call engine.compose(model_obj=...) before the first batch")
            flags = {**engine.args._flags, **self.schedule}
            for written in ("output", "keep_best", "checkpoint_names", "resume"):
                flags.pop(written, None)
            if isinstance(self.model, Model):
                flags.update(self.model.flags)
                flags.pop("init_from", None)
            train, valid = [columns_of(one) for one in self.datasets] + [None] * (2 - len(self.datasets))
            trainer = Trainer(self.model, TrainingArguments(**flags), train, valid, data_collator=self.collate)
            self._loop = Loop(trainer)
        return self._loop

    def held_out(self, engine) -> Tuple[Dict[str, object], Dict[str, object]]:
        """Predictions, and labels, of all held-out samples."""
        loop = self.opened(engine)
        _, predictions = loop.predict()
        return predictions, {name: stacked(rows) for name, rows in loop.labels().items()}


class DataLoader:
    """Batches of a dataset. Those that train are not read by the script: model(**batch) takes them as
    they are; those that are held out have the labels."""

    def __init__(self, engine, composed: _Composed, place: int):
        self._engine, self._composed, self._place = engine, composed, place
        self._epoch = 0

    def __len__(self) -> int:
        if self._place:
            return -(-len(self._composed.datasets[1]) // ROWS)
        return len(self._composed.opened(self._engine).batches(self._epoch + 1))

    def __iter__(self) -> Iterator[Batch]:
        names = self._names()
        if self._place == 0:
            self._epoch += 1
            for number in self._composed.opened(self._engine).batches(self._epoch):
                yield Batch({name: _Numbered(name, number) for name in names})
            return
        predictions, labels = self._composed.held_out(self._engine)
        self._engine._predictions = predictions
        yield from batches(len(next(iter(predictions.values()))), labels, names)

    def _names(self):
        first = self._composed.datasets[self._place][0]
        return list(first.keys())


class ComposedModel:
    """The model of a loop: model(**batch).loss.backward() trains, and model(**batch).logits of a
    held-out batch are what it predicts."""

    def __init__(self, engine, composed: _Composed):
        self._engine, self._composed = engine, composed

    def __call__(self, **features: object):
        for value in features.values():
            if isinstance(value, _Numbered):
                return _TrainOutput(StepLoss(self._composed.opened(self._engine), value.number))
        return predicted(self._engine._predictions, features)

    def train(self, mode: bool = True) -> "ComposedModel":
        return self

    def eval(self) -> "ComposedModel":
        return self

    def __getitem__(self, which: int) -> "ComposedModel":
        return self

    def save_pretrained(self, folder) -> None:
        """The model as it is now, as transformers loads it."""
        self._composed.opened(self._engine).save_pretrained(folder)


class _TrainOutput:
    def __init__(self, loss: StepLoss):
        self.loss = loss

    def __getitem__(self, which: object) -> StepLoss:
        if which in (0, "loss"):
            return self.loss
        raise KeyError(which)


class _NoOp:
    """An optimizer, or a schedule: both are in the compiled step."""

    def step(self) -> None:
        pass


class _Group(Dict[str, float]):
    """All parameters: a rate that is set is that of later steps."""

    def __init__(self, engine, composed: _Composed):
        super().__init__()
        self._engine, self._composed = engine, composed

    def __setitem__(self, name: str, value: float) -> None:
        if name != "lr":
            raise UsageError(f"{name} of an optimizer is in the compiled step; only lr can be set")
        self._composed.opened(self._engine).set_lr(value)
        super().__setitem__(name, value)


class _Optimizer(_NoOp):
    def __init__(self, group: _Group):
        self.param_groups = [group]

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass


def schedule_flags(function: Optional[Callable]) -> Dict[str, object]:
    """Flags of a functools.partial of transformers' functions. Errors: another function."""
    if function is None:
        return {}
    name = getattr(getattr(function, "func", function), "__name__", repr(function))
    if not isinstance(function, functools.partial) or name not in _SCHEDULES:
        raise UsageError(
            f"lr_scheduler_fn is {name}; give functools.partial of {', '.join(_SCHEDULES)}, or None and the flags "
            "--lr-decay-style, --lr-warmup-steps"
        )
    given = dict(function.keywords)
    out: Dict[str, object] = {"lr_decay_style": _SCHEDULES[name]}
    for theirs, ours in (("num_warmup_steps", "lr_warmup_steps"), ("num_training_steps", "lr_decay_steps")):
        if given.pop(theirs, None) is not None:
            out[ours] = int(function.keywords[theirs])
    if given or function.args:
        raise UsageError(f"lr_scheduler_fn has {', '.join(given) or 'arguments without names'}, which no flag says")
    return out


def compose(engine, composed: _Composed, model_obj: object, lr_scheduler_fn: Optional[Callable]):
    if model_obj is not None and not isinstance(model_obj, (Model, str)):
        raise UsageError(
            f"model_obj is a {type(model_obj).__module__}.{type(model_obj).__name__}; give a tessera.Model, as "
            "AutoModelForSequenceClassification.from_pretrained(path) of tessera.rapidformer"
        )
    composed.model, composed.schedule = model_obj, schedule_flags(lr_scheduler_fn)
    composed.composed = True
    return ComposedModel(engine, composed), _Optimizer(_Group(engine, composed)), _NoOp()
