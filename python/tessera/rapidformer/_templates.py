"""Finetuner and Pretrainer: templates of training scripts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional

from .._errors import UsageError
from .._model import Model, Output
from .._train import Run
from .._trainer import EvalPrediction, Trainer, TrainingArguments
from ._datasets import Dataset
from ._engine import RapidformerEngine
from ._forward import ScriptBatch, ScriptValue
from ._held_out import ROWS, Batch, batches, predicted

if TYPE_CHECKING:
    from ._own_loop import DataLoader


class DataOfFlags:
    """A dataset that is what flags name: --data-path, --split, ..."""


def build_train_valid_test_datasets(*_: object, **__: object):
    """Megatron-LM's function: token files that the flags name (--data-path, --split), for training,
    validating and testing. What it is called with are those flags again."""
    return DataOfFlags(), DataOfFlags(), DataOfFlags()


def build_train_valid_test_datasets_for_huggingface(*_: object, **__: object):
    """The same, as samples of masked tokens, or of another task: --task."""
    return DataOfFlags(), DataOfFlags(), DataOfFlags()


class _Predicted:
    """The model in run_compute_metrics: what all devices have predicted already."""

    def __init__(self, predictions: Dict[str, object]):
        self._predictions = predictions

    def __call__(self, **features: object) -> Output:
        return predicted(self._predictions, features)

    def __getitem__(self, which: int) -> "_Predicted":
        return self

    def eval(self) -> "_Predicted":
        return self


class _EvalLoader:
    def __init__(self, labels: Dict[str, object], samples: int):
        self._labels, self._samples = labels, samples

    def __len__(self) -> int:
        return -(-self._samples // ROWS)

    def __iter__(self) -> Iterator[Batch]:
        return batches(self._samples, self._labels)


def columns_of(dataset):
    """Of a table its columns: rows are as long as the longest."""
    return dataset.columns if isinstance(dataset, Dataset) else dataset


class _Run(Trainer):
    """A Trainer that shows what Rapidformer does."""

    _command = "rapidformer"
    _batch_kinds = (ScriptBatch, ScriptValue)


class _Template:
    _shuffles = False

    def __init__(self, engine: Optional[RapidformerEngine] = None):
        self.engine = engine or RapidformerEngine._current or RapidformerEngine()

    # What a script writes.

    def train_valid_test_datasets_provider(self, *_: object):
        """Returns train, valid, test and what makes a batch of samples; or the first of these. Without
        it the data is that of the flags."""
        return None

    def model_optimizer_lr_scheduler_provider(self):
        """Returns a tessera.Model or None, and None twice: optimizer and schedule are told by flags."""
        return None, None, None

    def run_forward_step(self, batch, model):
        """Returns the loss of a batch: model(**batch).loss, or a scalar that is computed of values, as
        tessera.compile traces them. It is called once for each program, with tensors that are not
        computed yet."""
        return model(**batch).loss

    # What it calls.

    def build_data_loader(self, dataset, collate_fn=None) -> "DataLoader":
        """Batches for a loop of the script's own: of the dataset that trains at the first call, of the
        one that is held out at the second. Then engine.compose() says the model."""
        return self.engine.build_data_loader(dataset, collate_fn)

    def gather(self, values):
        """What all devices predict: it is gathered already."""
        return values

    def train(self) -> Run:
        """Trains as the flags say; the model is in OUTPUT/hf at the end, as transformers loads it."""
        train, valid, test, collate = self._datasets()
        model = self._model()
        own_data = train is not None
        args = self.engine.args if own_data else self.engine.args_of_data()
        for notice in args._notices:
            print(f"notice: {notice}")
        flags = dict(args._flags)
        if isinstance(model, Model):
            flags.update(model.flags)
            flags.pop("init_from", None)
        trainer = _Run(
            model,
            TrainingArguments(**flags),
            columns_of(train),
            columns_of(valid),
            data_collator=collate,
            compute_metrics=self._metrics(),
            compute_loss=self._loss(),
            shuffle=self._shuffles,
        )
        run = trainer.train()
        if test is not None:
            scores = trainer.evaluate(columns_of(test))
            print("test: " + ", ".join(f"{name} {value:.6g}" for name, value in scores.items()))
        return run

    def _metrics(self):
        return None

    def _provided(self):
        return self.train_valid_test_datasets_provider()

    def _datasets(self):
        found = self._provided()
        parts: List[object] = list(found) if isinstance(found, tuple) else [found]
        where = f"{type(self).__name__}.train_valid_test_datasets_provider"
        if not 1 <= len(parts) <= 4:
            raise UsageError(
                f"{where} returns {len(parts)} things; return train, valid, test and what collates samples"
            )
        parts += [None] * (4 - len(parts))
        of_flags = [isinstance(part, DataOfFlags) for part in parts[:3]]
        if any(of_flags):
            if not of_flags[0]:
                raise UsageError(f"{where} returns a dataset of its own and data of the flags; return either")
            parts[:3] = [None] * 3
        return parts

    def _model(self):
        found = self.model_optimizer_lr_scheduler_provider()
        model, *others = found if isinstance(found, tuple) else (found,)
        where = f"{type(self).__name__}.model_optimizer_lr_scheduler_provider"
        for other, flags in zip(others, ("--optimizer, --weight-decay, ...", "--lr, --lr-decay-style, ...")):
            if other is not None:
                raise UsageError(f"{where} returns a {type(other).__name__}; return None, and give {flags}")
        if model is None or isinstance(model, (Model, str, os.PathLike)):
            return model
        raise UsageError(
            f"{where} returns a {type(model).__module__}.{type(model).__name__}; return a tessera.Model, as "
            "AutoModelForSequenceClassification.from_pretrained(path) of tessera.rapidformer"
        )

    def _loss(self):
        """run_forward_step, where the script has written one."""
        if type(self).run_forward_step is _Template.run_forward_step:
            return None
        return lambda model, batch: self.run_forward_step(batch, model)


class Finetuner(_Template):
    """Trains for so many epochs on samples in a new order for each, and scores what it predicts."""

    _shuffles = True

    def run_compute_metrics(self, model, eval_dataloader):
        """Scores by name, after each epoch: model(**batch).logits is what was predicted of a batch of
        eval_dataloader, which has the labels."""
        raise NotImplementedError

    def _metrics(self):
        if type(self).run_compute_metrics is Finetuner.run_compute_metrics:
            return None

        def scores(found: EvalPrediction):
            predictions = found.predictions if isinstance(found.predictions, dict) else {"logits": found.predictions}
            labels = found.labels if isinstance(found.labels, dict) else {"labels": found.labels}
            samples = len(next(iter(predictions.values())))
            labels = {name: values for name, values in labels.items() if values is not None}
            return self.run_compute_metrics(_Predicted(predictions), _EvalLoader(labels, samples))

        return scores

    finetune = _Template.train


class Pretrainer(_Template):
    """Trains for so many steps on samples in the order of their dataset."""

    def _provided(self):
        wanted = self.engine.args
        steps, batch = wanted.steps or 0, wanted.global_batch_size or 1
        return self.train_valid_test_datasets_provider([steps * batch, 0, 0])

    pretrain = _Template.train


PreTrainer = Pretrainer
