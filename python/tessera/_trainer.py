"""tessera.Trainer: a model, samples of Python, scores of Python."""

from __future__ import annotations

import math
import os
import re
from typing import Callable, Dict, Optional, Union

from ._errors import UsageError
from ._flags import Flag
from ._train import Callbacks, Run, StepCall

# Names of transformers' TrainingArguments, as flags.
_THEIRS = {
    "output_dir": "output",
    "learning_rate": "lr",
    "max_steps": "steps",
    "num_train_epochs": "epochs",
    "max_grad_norm": "clip_grad",
    "adam_epsilon": "adam_eps",
    "warmup_steps": "lr_warmup_steps",
    "eval_steps": "eval_every",
    "save_steps": "save_every",
    "logging_steps": "log_every",
}
# What else they have, and who says it here.
_ELSEWHERE = {
    "per_device_train_batch_size": "global_batch_size counts the samples of a step, of all devices",
    "per_device_eval_batch_size": "global_batch_size counts the samples of a step, of all devices",
    "gradient_accumulation_steps": "global_batch_size counts the samples of a step, micro_batch_size those of a part",
    "lr_scheduler_type": "lr_decay_style is constant, linear or cosine",
    "shuffle": "tessera.Trainer(..., shuffle=False)",
}
# What a run says of itself is under these names.
_TAKEN = {"kind", "step", "epoch", "loss", "weights"}
# Flags of training alone.
_OF_TRAINING = ("output", "resume", "overwrite", "init_from", "allow_changes", "plan", "auto")


class TrainingArguments:
    """Flags of `tessera train`, as help(tessera.train) lists them; transformers' output_dir,
    learning_rate, max_steps and num_train_epochs are output, lr, steps and epochs.

        args = tessera.TrainingArguments(output="runs/mine", epochs=3, lr=2e-5, global_batch_size=32)

    remove_unused_columns  False: a column of texts is an error, or for the data_collator; else it is
                           left out, which is told, as are columns that the model does not read
    """

    def __init__(self, *, remove_unused_columns: bool = True, **flags: Flag):
        self.remove_unused_columns = remove_unused_columns
        self.flags: Dict[str, Flag] = {}
        for name, value in flags.items():
            if name in _ELSEWHERE:
                raise UsageError(f"{name} is no flag; {_ELSEWHERE[name]}")
            mine = _THEIRS.get(name, name)
            if mine in self.flags:
                raise UsageError(f"{name} and {mine} are the same flag; give one")
            self.flags[mine] = value

    def __repr__(self) -> str:
        return f"TrainingArguments({', '.join(f'{k}={v!r}' for k, v in self.flags.items())})"


class EvalPrediction:
    """What compute_metrics sees, in the order of the dataset.

    predictions  f32 [samples, ...], as the logits [samples, classes]; of a model that predicts
                 several things, a dict of them
    labels       [samples, ...], also called label_ids; of several, a dict; None: there are none
    """

    def __init__(self, predictions, labels):
        self.predictions = predictions
        self.labels = labels

    @property
    def label_ids(self):
        return self.labels

    def __iter__(self):
        return iter((self.predictions, self.labels))


class _Weights:
    """A model by its path or name, or of flags alone."""

    def __init__(self, source: Optional[str]):
        self.source = source
        self.flags: Dict[str, Flag] = {}

    def _trained(self, checkpoint: str) -> None:
        self.source = checkpoint


class Trainer:
    """Trains, evaluates and predicts with datasets of Python.

        trainer = tessera.Trainer(model, args=tessera.TrainingArguments(output="runs/mine", steps=50),
                                  train_dataset=rows, eval_dataset=held_out,
                                  compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(-1) == p.labels).mean()})
        trainer.train()
        trainer.evaluate()

    model            a tessera.Model, the path or name of a folder or a checkpoint, or None: args say
                     it, as preset="gpt2-tiny"
    train_dataset    a list of samples, an object with __len__ and __getitem__, a mapping of columns,
                     an iterable, or a DataLoader of torch. A sample is a mapping of numbers and rows
                     of numbers, with the names that transformers' models give them. None: the data
                     that args name
    eval_dataset     the same, of which all is measured: after eval_interval steps, and at the end
    data_collator    makes of a list of samples a mapping of arrays [samples, ...]
    compute_metrics  makes scores by name of an EvalPrediction, of each validation
    callbacks        functions of a Step, as of tessera.train
    compute_loss     the loss of a batch, where it is not the model's own: a function of the model and
                     of values by name, as tessera.compile traces it. It returns a scalar, as of
                     tessera.nn.cross_entropy(model(**batch).logits, ...), or that and what is predicted
    shuffle          the order in which samples train, anew in each epoch
    lines            hears what the command would print; None: nobody does

    Rows shorter than the others are filled up: ids and masks with 0, labels with -100. They are as
    long as the longest of a list, of columns or of a datasets.Dataset, else as those of the first
    sample; the flag `context` says otherwise. Datasets, collators, metrics and callbacks run in the
    thread that calls train(); samples of the next step are read while one runs.
    """

    _command = "train"  # as which a run shows itself
    _batch_kinds: Optional[tuple] = None  # that compute_loss is given

    def __init__(
        self,
        model=None,
        args: Optional[TrainingArguments] = None,
        train_dataset=None,
        eval_dataset=None,
        data_collator: Optional[Callable] = None,
        compute_metrics: Optional[Callable[[EvalPrediction], Dict[str, float]]] = None,
        callbacks: Callbacks = (),
        *,
        compute_loss: Optional[Callable] = None,
        shuffle: bool = True,
        lines: Optional[Callable[[str], object]] = print,
    ):
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise UsageError("tessera.Trainer needs numpy; pip install numpy") from None
        if args is not None and not isinstance(args, TrainingArguments):
            raise UsageError(f"args is a {type(args).__name__}; give tessera.TrainingArguments(...)")
        if model is None or isinstance(model, (str, os.PathLike)):
            model = _Weights(None if model is None else os.fspath(model))
        elif not (hasattr(model, "source") and hasattr(model, "flags")):
            raise UsageError(f"model is a {type(model).__name__}; give a tessera.Model or the path of one")
        for name, function in (("data_collator", data_collator), ("compute_metrics", compute_metrics)):
            if function is not None and not callable(function):
                raise UsageError(f"{name} is a {type(function).__name__}; give a function")
        self.model = model
        self.args = args or TrainingArguments()
        self.train_dataset = train_dataset
        self.eval_dataset = eval_dataset
        self.data_collator = data_collator
        self.compute_metrics = compute_metrics
        self.callbacks = callbacks
        self.compute_loss = compute_loss
        self.shuffle = shuffle
        self.lines = lines

    def train(self, resume: Optional[Union[str, os.PathLike]] = None) -> Run:
        """Trains. `resume`: "auto" goes on from the newest checkpoint of the output, a path from that
        one; the bits are those of a run that was never interrupted.

        What a function raises is raised here, once the run has saved.
        """
        program, flags = self._program_and_flags()
        if resume is not None:
            if not isinstance(resume, (str, os.PathLike)):
                raise UsageError(f'resume is {resume!r}; give "auto" or the path of a checkpoint')
            flags["resume"] = os.fspath(resume)
        call = StepCall(self.callbacks, self.lines)
        run = call.run(program.call(call, self._command, flags))
        if run.checkpoint is not None:
            self.model._trained(run.checkpoint)
        return run

    def _program_and_flags(self):
        """The datasets and scores as the library calls them, and all flags."""
        from ._batches import Batches, Lengths
        from ._program import Program
        from ._rows import ENDLESS, rows_of, whole

        flags = self._flags()
        train = valid = None
        if self.train_dataset is None and self.eval_dataset is not None:
            raise UsageError("there is an eval_dataset but no train_dataset; give both, or data by flags")
        if self.train_dataset is not None:
            both = [rows_of(self.train_dataset, "train_dataset")]
            if self.eval_dataset is not None:
                both.append(whole(rows_of(self.eval_dataset, "eval_dataset")))
                flags.setdefault("eval_iters", 0)
            if both[0].size == ENDLESS and not flags.get("steps"):
                raise UsageError("train_dataset has no length; give steps")
            lengths = Lengths(both, flags)
            train, valid = [
                self._batches(Batches, rows, lengths, keeps_labels=rows is not both[0])
                for rows in both
            ] + [None] * (2 - len(both))
            self._settle(flags, train, lengths)
            self._say_task(flags, train)
        score = self._score_of(valid) if self._scores() else None
        return Program(train, valid, score, self.shuffle, self.compute_loss, self._batch_kinds), flags

    def evaluate(self, dataset=None) -> Dict[str, float]:
        """The loss over a dataset, by default eval_dataset, and what compute_metrics says of it."""
        dataset = self.eval_dataset if dataset is None else dataset
        if dataset is None:
            raise UsageError("there is nothing to evaluate; give a dataset, or the trainer an eval_dataset")
        found, _, labelled = self._measure(dataset, "dataset", scores=self.compute_metrics is not None)
        loss = found["loss"]
        scores = {k: math.nan if v is None else v for k, v in found["scores"].items()}
        return {"loss": math.nan if loss is None or not labelled else loss, **scores}

    def predict(self, dataset):
        """What the model predicts of each sample, which may lack labels: f32 [samples, ...], as the
        logits of a model, or a dict where it predicts several things."""
        _, predictions, _ = self._measure(dataset, "dataset", scores=False)
        return predictions

    def _flags(self) -> Dict[str, Flag]:
        flags = {**self.model.flags, **self.args.flags}
        if self.model.source is not None and getattr(self.model, "config", {}).get("classes"):
            flags.setdefault("classes", self.model.config["classes"])
        if self.model.source is not None:
            flags.setdefault("init_from", self.model.source)
            return flags
        # A new model has places for its context, also where rows are shorter.
        config = getattr(self.model, "config", {})
        for places, length in [("positions", "context"), ("source_positions", "source_context")]:
            if config.get(places) == 0 and config.get(length):
                flags.setdefault(places, config[length])
        return flags

    def _scores(self) -> bool:
        return self.compute_metrics is not None and (
            self.train_dataset is None or self.eval_dataset is not None
        )

    def _batches(self, kind, rows, lengths, keeps_labels: bool):
        if rows.size == 0:
            raise_empty()
        return kind(rows, lengths, self.data_collator, self.args.remove_unused_columns, keeps_labels)

    def _settle(self, flags: Dict[str, Flag], batches, lengths) -> None:
        """Sizes that the first sample says."""
        batches.take([0])
        if lengths.targets is not None:
            flags.setdefault("context", lengths.targets)
        if lengths.apart:
            flags.setdefault("source_context", lengths.ids)
        if batches.left_out and self.lines is not None:
            names = ", ".join(batches.left_out)
            self.lines(f"notice: {names} of the dataset {'is' if len(batches.left_out) == 1 else 'are'} left out: no numbers")

    def _say_task(self, flags: Dict[str, Flag], batches) -> None:
        """Of fractions a classifier learns what transformers does, where nobody says it."""
        is_float, _ = batches.kind_of("labels")
        config = getattr(self.model, "config", {})
        if is_float and "task" not in flags and config.get("task") == "sequence_classification":
            flags["task"] = "regression" if config.get("classes") == 1 else "multi_label_classification"

    def _measure(self, dataset, use: str, scores: bool):
        from ._batches import Batches, Lengths
        from ._program import Program
        from ._rows import rows_of, whole

        flags = {k: v for k, v in self._flags().items() if k not in _OF_TRAINING}
        if self.model.source is not None:
            flags["init_from"] = self.model.source
            flags.pop("preset", None)  # it says less than the weights: these have places for longer rows
        rows = whole(rows_of(dataset, use))
        lengths = Lengths([rows], flags)
        batches = self._batches(Batches, rows, lengths, keeps_labels=True)
        self._settle(flags, batches, lengths)
        score = self._score_of(batches) if scores else lambda predictions: {}
        kept = []

        def keep(predictions):
            kept.append(predictions)
            return score(predictions)

        call = StepCall((), self.lines)
        found = Program(None, batches, keep, False, self.compute_loss, self._batch_kinds).call(call, "evaluate", flags)
        if not kept:
            raise KeyboardInterrupt
        return found, _one(without_labels(kept[0])), bool(batches.labels)

    def _score_of(self, batches):
        def score(predictions):
            labels = None
            if batches is not None and batches.labels:
                labels = _one({name: stacked(rows) for name, rows in batches.labels.items()})
            scores = self.compute_metrics(EvalPrediction(_one(without_labels(predictions)), labels))
            return _numbers_by_name(scores)

        return score


def raise_empty() -> None:
    from ._errors import DataError

    raise DataError("the dataset has no samples; give it some, or find out why it has none")


def without_labels(predictions: dict) -> dict:
    """Some tasks gather labels with what they predict."""
    others = {name: array for name, array in predictions.items() if name != "labels"}
    return others or predictions


def _one(named: dict):
    return next(iter(named.values())) if len(named) == 1 else named


def stacked(rows: dict):
    """Rows by the number of their sample as an array, in the order of samples."""
    import numpy

    out = numpy.stack([rows[number] for number in sorted(rows)])
    return out.astype(numpy.int64) if out.dtype == numpy.int32 else out


def _numbers_by_name(scores: object) -> Dict[str, float]:
    if not isinstance(scores, dict):
        raise UsageError(f"compute_metrics returned {scores!r}; return a dict of numbers by name")
    out = {}
    for name, value in scores.items():
        if not isinstance(name, str) or not re.fullmatch(r"[\w.@/+ -]+", name, re.ASCII) or name in _TAKEN:
            raise UsageError(
                f"compute_metrics calls a score {name!r}; call it otherwise, by letters and digits"
            )
        try:
            out[name] = float(value)
        except (TypeError, ValueError):
            raise UsageError(f"compute_metrics returned {name}={value!r}; give a number") from None
    return out
