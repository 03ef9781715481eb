"""transformers' names of models, as models of Tessera."""

from __future__ import annotations

from typing import Optional

from .._model import Model, Path


class _ForTask:
    """transformers' class of a task; from_pretrained() returns a tessera.Model."""

    task = ""
    labels = False  # it has as many outputs as there are labels

    @classmethod
    def from_pretrained(cls, path: Path, *, num_labels: Optional[int] = None, **flags) -> Model:
        """The model at a path, or by its name. num_labels: 2 where neither the folder nor the caller
        says it, as in transformers."""
        if num_labels is not None:
            flags["classes"] = num_labels
        elif cls.labels:
            flags = {**flags, "classes": _classes_of(path, cls.task, flags)}
        return Model.from_pretrained(path, task=cls.task, **flags)


def _classes_of(path: Path, task: str, flags: dict) -> int:
    """Those of a folder of the same task, else 2."""
    with Model.from_pretrained(path, **flags) as model:
        return model.config.get("classes") or 2 if model.config["task"] == task else 2


class AutoModelForSequenceClassification(_ForTask):
    task, labels = "sequence_classification", True


class AutoModelForTokenClassification(_ForTask):
    task, labels = "token_classification", True


class AutoModelForImageClassification(_ForTask):
    task, labels = "image_classification", True


class AutoModelForQuestionAnswering(_ForTask):
    task = "question_answering"


class AutoModelForMultipleChoice(_ForTask):
    task = "multiple_choice"


class AutoModelForMaskedLM(_ForTask):
    task = "masked_lm"


class AutoModelForCausalLM(_ForTask):
    task = "causal_lm"


class AutoModelForSeq2SeqLM(_ForTask):
    task = "seq2seq_lm"


class AutoModelForPreTraining(_ForTask):
    task = "pretraining"


BertForSequenceClassification = AutoModelForSequenceClassification
BertForPreTraining = AutoModelForPreTraining
