"""Rapidformer's white box: a script of four functions, trained with all its switches.

    from tessera.rapidformer import (AutoModelForSequenceClassification, Finetuner, RapidformerEngine, get_args,
                                     load_dataset, load_metric)

    def encode(row):  # by any tokenizer; here bytes are tokens
        ids = list(row["sentence1"].encode())[:64]
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": int(row["label"])}

    class MyFinetuner(Finetuner):
        def train_valid_test_datasets_provider(self):
            data = load_dataset("glue", "mrpc")
            data = data.map(encode, remove_columns=data["train"].column_names)
            return data["train"], data["validation"], None  # and what makes a batch of samples, if need be

        def model_optimizer_lr_scheduler_provider(self):
            return AutoModelForSequenceClassification.from_pretrained(get_args().load), None, None

        def run_forward_step(self, batch, model):
            return model(**batch).loss

        def run_compute_metrics(self, model, eval_dataloader):
            metric = load_metric("glue", "mrpc")
            for batch in eval_dataloader:
                predictions = model(**batch).logits.argmax(-1)
                metric.add_batch(predictions=self.gather(predictions), references=self.gather(batch["labels"]))
            return metric.compute()

    engine = RapidformerEngine()
    MyFinetuner(engine=engine).train()

`rapidformer --user-script FILE.py --pretrained-model-name-or-path bert --epochs 3 --lr 2e-5 ...` runs it, and
so does `python FILE.py` with the same flags: get_args().load is that folder or name. Datasets are those of
tessera.Trainer; models are Tessera's.
"""

from ._datasets import Dataset, DatasetDict, load_dataset
from ._engine import RapidformerEngine, get_args, get_logger, get_timers
from ._forward import mpu
from ._metrics import Metric, load_metric
from ._models import (
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForPreTraining,
    BertForSequenceClassification,
)
from ._templates import (
    Finetuner,
    Pretrainer,
    PreTrainer,
    build_train_valid_test_datasets,
    build_train_valid_test_datasets_for_huggingface,
)

__all__ = [
    "AutoModelForCausalLM",
    "AutoModelForImageClassification",
    "AutoModelForMaskedLM",
    "AutoModelForMultipleChoice",
    "AutoModelForPreTraining",
    "AutoModelForQuestionAnswering",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
    "BertForPreTraining",
    "BertForSequenceClassification",
    "Dataset",
    "DatasetDict",
    "Finetuner",
    "Metric",
    "PreTrainer",
    "Pretrainer",
    "RapidformerEngine",
    "build_train_valid_test_datasets",
    "build_train_valid_test_datasets_for_huggingface",
    "get_args",
    "get_logger",
    "get_timers",
    "load_dataset",
    "load_metric",
    "mpu",
]
