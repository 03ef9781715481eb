"""tessera.rapidformer: templates, flags, tables, metrics; scripts by `rapidformer --user-script`. TESSERA is the command."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy

import tessera
from tessera import rapidformer
from tessera.rapidformer._engine import Args

RAPIDFORMER = os.path.join(os.path.dirname(os.environ["TESSERA"]), "rapidformer")

FINETUNER = """
    import sys
    from tessera.rapidformer import *

    class MyFinetuner(Finetuner):
        def __init__(self, engine):
            super().__init__(engine=engine)

        def train_valid_test_datasets_provider(self):
            args = get_args()

            def tokenize_function(examples):
                ids = [[2, *(3 + len(word) for word in text.split()), 1] for text in examples["sentence1"]]
                return {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}

            datasets = load_dataset(args.dataset_path, args.dataset_name)
            tokenized_datasets = datasets.map(
                tokenize_function,
                batched=True,
                remove_columns=["idx", "sentence1"],
            )
            tokenized_datasets.rename_column_("label", "labels")

            def collate_fn(examples):
                longest = max(len(one["input_ids"]) for one in examples)
                return {
                    "input_ids": [one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in examples],
                    "attention_mask": [one["attention_mask"] + [0] * (longest - len(one["input_ids"])) for one in examples],
                    "labels": [one["labels"] for one in examples],
                }

            return (tokenized_datasets["train"], tokenized_datasets["validation"], tokenized_datasets["test"],
                    collate_fn)

        def model_optimizer_lr_scheduler_provider(self):
            args = get_args()
            model = BertForSequenceClassification.from_pretrained(args.load)
            return model, None, None

        def run_forward_step(self, batch, model):
            output_tensor = model(**batch)
            return output_tensor.loss

        def run_compute_metrics(self, model, eval_dataloader):
            model = model[0]
            metric = load_metric("glue", "mrpc")
            for step, batch in enumerate(eval_dataloader):
                outputs = model(**batch)
                predictions = outputs.logits.argmax(dim=-1)
                metric.add_batch(
                    predictions=self.gather(predictions),
                    references=self.gather(batch["labels"]),
                )
            return metric.compute()

    engine = RapidformerEngine()
    trainer = MyFinetuner(engine=engine)
    run = trainer.train()
    get_logger().info(f"epochs: {[round(line['accuracy'], 3) for line in run.metrics if line['kind'] == 'eval']}")
"""

LOOP = """
    from functools import partial
    from tessera.rapidformer import *

    def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
        raise AssertionError("it is a flag")

    args = get_args()
    table = load_dataset("glue", "mrpc")
    ids = lambda row: {"input_ids": [2] + [3 + len(word) for word in row["sentence1"].split()] + [1],
                       "labels": row["label"]}
    rows = table.map(ids).remove_columns(["idx", "sentence1", "label"])
    def pad(examples):
        longest = max(len(one["input_ids"]) for one in examples)
        out = {"labels": [one["labels"] for one in examples]}
        out["input_ids"] = [one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in examples]
        out["attention_mask"] = [[int(i != 0) for i in row] for row in out["input_ids"]]
        return out

    engine = RapidformerEngine()
    finetuner = Finetuner(engine=engine)
    train_dataloader = finetuner.build_data_loader(rows["train"], pad)
    eval_dataloader = finetuner.build_data_loader(rows["validation"], pad)
    model = AutoModelForSequenceClassification.from_pretrained(args.load)
    lr_scheduler = partial(get_linear_schedule_with_warmup, num_warmup_steps=2, num_training_steps=12)
    model, optimizer, lr_scheduler = engine.compose(model_obj=model, lr_scheduler_fn=lr_scheduler)
    metric = load_metric("glue", "mrpc")
    for epoch in range(args.epochs):
        model.train()
        for step, batch in enumerate(train_dataloader):
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            print(f"loss {loss.item():.9g}")
        model.eval()
        for step, batch in enumerate(eval_dataloader):
            outputs = model(**batch)
            predictions = outputs.logits.argmax(dim=-1)
            metric.add_batch(predictions=engine.gather(predictions), references=engine.gather(batch["labels"]))
        print(f"epoch {epoch}: {metric.compute()}")
    model.save_pretrained("saved-model")

    optimizer.param_groups[0]["lr"] = 0.5
    loss = model(**next(iter(train_dataloader))).loss
    loss.backward()
    assert loss._step["lr"] == 0.5
"""

PRETRAINER = """
    from tessera.rapidformer import *

    class MyGPTPreTrainer(PreTrainer):
        def train_valid_test_datasets_provider(self, train_val_test_num_samples):
            args = get_args()
            return build_train_valid_test_datasets(
                data_prefix=args.data_path, splits_string=args.split,
                train_valid_test_num_samples=train_val_test_num_samples, seq_length=args.seq_length, seed=args.seed)

        def run_forward_step(self, data_iterator, model):
            data = next(data_iterator)
            data_b = mpu.broadcast_data(["input_ids", "labels"], data, "int64")
            output_tensor = model(input_ids=data_b["input_ids"].long(), labels=data_b["labels"].long())
            return output_tensor["loss"]

    engine = RapidformerEngine()
    print(len(MyGPTPreTrainer(engine=engine).train().losses), "steps")
"""


class Rapidformer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with open(cls.path("text.txt"), "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))
        tessera.train(preset="bert-tiny", layers=1, data=cls.path("text.txt"), output=cls.path("bert"), steps=2,
                      threads=1, lines=None)
        cls.bert = str(cls.path("bert-folder"))
        tessera.Model.from_pretrained(cls.path("bert"), threads=1).save_pretrained(cls.bert)
        os.makedirs(cls.path("glue/mrpc"))
        for part, count in [("train", 64), ("dev", 24), ("test", 16)]:
            with open(cls.path(f"glue/mrpc/{part}.tsv"), "w") as file:
                file.write("idx\tsentence1\tlabel\n")
                for i in range(count):
                    file.write(f"{i}\t{'a bb ccc' if i % 2 else 'dddddd eeeeee'}{' ff' * (i % 3)}\t{i % 2}\n")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def script(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)

    def run_script(self, script, *flags, code=0):
        done = subprocess.run([RAPIDFORMER, "--user-script", script, *flags], capture_output=True, text=True,
                              cwd=self.folder, env={**os.environ, "PYTHON": sys.executable})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def losses(self, output):
        with open(os.path.join(self.path(output), "metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        return [line["loss"] for line in lines if line["kind"] == "train"]

    def test_the_finetuner_of_the_page(self):
        script = self.script("finetune.py", FINETUNER)
        flags = ["--task", "sequence_classification", "--pretrained-model-name-or-path", self.bert, "--data-path",
                 self.path("glue"), "--data-name", "mrpc", "--epochs", "3", "--micro-batch-size", "8",
                 "--global-batch-size", "16", "--lr", "2e-2", "--lr-decay-style", "linear", "--weight-decay", "1e-2",
                 "--clip-grad", "1.0", "--threads", "1"]
        said = self.run_script(script, *flags, "--save", "one")
        self.assertIn("epochs: [", said)
        self.assertIn("test: loss", said)
        self.assertTrue(os.path.isfile(self.path("one/hf/config.json")))
        one = self.losses("one")
        self.assertEqual(len(one), 12)
        self.run_script(script, *flags, "--save", "two", "--devices", "2", "--zero-3-memory-optimization",
                        "--onnx-runtime-training")
        numpy.testing.assert_allclose(self.losses("two"), one, rtol=1e-4)
        self.run_script(script, *flags, "--save", "mixed", "--mixed-precision")
        self.assertEqual(len(self.losses("mixed")), 12)

    def test_the_script_of_help(self):
        said = rapidformer.__doc__
        script = self.script("helped.py", said[said.index("    from tessera") : said.index("`rapidformer --user")])
        bert = str(self.path("bert-of-bytes"))
        tessera.Model(preset="bert-tiny", layers=1, vocab_size=256, threads=1).save_pretrained(bert)
        said = self.run_script(script, "--task", "sequence_classification", "--pretrained-model-name-or-path", bert,
                               "--epochs", "1", "--micro-batch-size", "8", "--global-batch-size", "16", "--lr", "1e-3",
                               "--threads", "1", "--save", "helped")
        self.assertIn("accuracy", said)
        self.assertEqual(len(self.losses("helped")), 4)

    def test_the_pretrainer_of_the_page(self):
        with open(self.path("docs.jsonl"), "w") as file:
            for i in range(100):
                file.write(json.dumps({"text": f"line {i * 7919 % 1000} of some text"}) + "\n")
        tessera.preprocess_data(input=self.path("docs.jsonl"), output_prefix=self.path("docs"), append_eod=True,
                                tokenizer_type="bytes", lines=None)
        script = self.script("pretrain.py", PRETRAINER)
        flags = ["--family", "gpt2", "--num-layers", "1", "--hidden-size", "32", "--num-attention-heads", "2",
                 "--seq-length", "16", "--train-iters", "4", "--global-batch-size", "4", "--micro-batch-size", "2", "--lr",
                 "1e-2", "--data-path", self.path("docs_text_document"), "--split", "90,10", "--vocab-size", "300",
                 "--eval-iters", "1", "--dropout", "0", "--threads", "1"]
        self.assertIn("4 steps", self.run_script(script, *flags, "--save", "pretrained"))
        subprocess.run([RAPIDFORMER, "--task", "causal_lm", *flags, "--save", "command"], check=True, capture_output=True,
                       cwd=self.folder)
        self.assertEqual(self.losses("pretrained"), self.losses("command"))

    def test_a_loss_of_its_own(self):
        script = self.script("own.py", FINETUNER.replace("return output_tensor.loss", """
            import tessera
            labels = batch["labels"].long().view(-1)
            return tessera.nn.cross_entropy(output_tensor.logits, labels) * 2 - output_tensor["loss"]"""))
        flags = ["--task", "sequence_classification", "--pretrained-model-name-or-path", self.bert, "--data-path",
                 self.path("glue"), "--data-name", "mrpc", "--epochs", "1", "--micro-batch-size", "8",
                 "--global-batch-size", "16", "--lr", "2e-2", "--threads", "1"]
        self.run_script(script, *flags, "--save", "own")
        self.run_script(self.script("models.py", FINETUNER), *flags, "--save", "models")
        numpy.testing.assert_allclose(self.losses("own"), self.losses("models"), rtol=1e-5)

    def test_a_loop_of_its_own(self):
        flags = ["--task", "sequence_classification", "--pretrained-model-name-or-path", self.bert, "--data-path",
                 self.path("glue"), "--data-name", "mrpc", "--epochs", "3", "--micro-batch-size", "8",
                 "--global-batch-size", "16", "--lr", "2e-2", "--threads", "1"]
        said = self.run_script(self.script("loop.py", LOOP), *flags)
        losses = [float(line.split()[1]) for line in said.splitlines() if line.startswith("loss ")]
        # The same by a Finetuner, with the schedule as flags.
        self.run_script(self.script("finetune.py", FINETUNER), *flags, "--save", "as-loop", "--lr-decay-style", "linear",
                        "--lr-warmup-iters", "2", "--lr-decay-iters", "12")
        self.assertEqual([float(f"{loss:.9g}") for loss in self.losses("as-loop")], losses)
        self.assertEqual(said.count("accuracy"), 3)
        with tessera.Model.from_pretrained(self.path("saved-model"), threads=1) as model:
            self.assertEqual(model.config["classes"], 2)
        for old, new, says in [
            ("loss.backward()", "(loss * 2).backward()", "a loss is not computed with"),
            ("loss.backward()", "loss.item()", "known once backward"),
            ("model(**batch)", "model(input_ids=[[1]])", "something else than a batch"),
            ("num_training_steps=12", "num_cycles=2", "num_cycles, which no flag says"),
            ("model_obj=model", "model_obj=3", "model_obj is a builtins.int; give a tessera.Model"),
        ]:
            with self.subTest(new):
                self.assertIn(old, LOOP)
                self.assertIn(says, self.run_script(self.script("bad.py", LOOP.replace(old, new)), *flags, code=1))

    def test_flags(self):
        args = Args(["--train-iters", "3", "--lr", "2e-5", "--num-layers", "2", "--mixed-precision", "--data-path", "a", "b",
                     "--pretrained-model-name-or-path", self.bert], own_data=True)
        self.assertEqual((args.lr, args.num_layers, args.mixed_precision), (2e-5, 2, True))
        self.assertEqual(args.data_path, ["a", "b"])
        self.assertEqual(args.load, self.bert)
        self.assertEqual(args.seed, 1234)
        self.assertIsNone(args.data_name)
        with self.assertRaisesRegex(AttributeError, "no flag num_layer; nearest: num_layers"):
            args.num_layer
        with self.assertRaisesRegex(tessera.UsageError, "num-layer"):
            Args(["--train-iters", "3", "--num-layer", "2"], own_data=True)

    def test_tables(self):
        glue = rapidformer.load_dataset(self.path("glue"), "mrpc")
        self.assertEqual(list(glue), ["train", "validation", "test"])
        self.assertEqual(glue["train"].column_names, ["idx", "sentence1", "label"])
        self.assertEqual(glue["train"][3]["label"], 1)
        self.assertEqual(glue["train"][:2]["idx"], [0, 1])
        upper = glue.map(lambda row: {"upper": row["sentence1"].upper()})
        self.assertEqual(upper["test"]["upper"][0], "DDDDDD EEEEEE")
        self.assertEqual(len(glue["train"].filter(lambda row: row["label"] == 1)), 32)
        self.assertEqual(sorted(glue["test"].shuffle(seed=1)["idx"]), list(range(16)))
        csv = self.script("a.csv", 'text,score\n"a, b",1.5\nc,2\n')
        found = rapidformer.load_dataset("csv", data_files=csv, split="train")
        self.assertEqual(found[0], {"text": "a, b", "score": 1.5})
        words = self.script("b.csv", "code,big,n\n007,1_000,-1\n8,2,2\n")
        found = rapidformer.load_dataset("csv", data_files=words, split="train")
        self.assertEqual(found[0], {"code": "007", "big": "1_000", "n": -1})
        lines = self.script("a.jsonl", '{"a": 1}\n{"a": 2}\n')
        self.assertEqual(rapidformer.load_dataset("json", data_files=lines, split="train")["a"], [1, 2])
        some = glue["train"].select(range(3))
        with self.assertRaisesRegex(tessera.UsageError, "of row 1 the function makes nothing, and of the first b"):
            some.map(lambda row: {} if row["label"] else {"b": 1}, remove_columns=some.column_names)
        self.assertEqual(len(some.map(lambda row: {"b": 1}, remove_columns=some.column_names)), 3)
        for text, says in [
            ("a\tb\n1\n", "row 2 has 1 columns, and the first has 2"), ("", "is empty"), ("a\ta\n1\t2\n", "two .*'a'"),
            ("a\n" + "x" * 200_000, "cannot be read: field larger"),
        ]:
            bad = self.script("bad.tsv", text)
            with self.assertRaisesRegex(tessera.DataError, says):
                rapidformer.load_dataset("csv", data_files=bad)
        with self.assertRaisesRegex(tessera.DataError, "no table in"):
            rapidformer.load_dataset(self.path("nowhere"))
        with self.assertRaisesRegex(tessera.UsageError, "no column 'x'.*idx"):
            glue["train"]["x"]

    def test_metrics(self):
        metric = rapidformer.load_metric("glue", "mrpc")
        metric.add_batch(predictions=[1, 0, 1], references=[1, 1, 0])
        metric.add_batch(predictions=[1], references=[1])
        self.assertEqual(metric.compute(), {"accuracy": 0.5, "f1": 2 * 2 / (3 + 3)})
        with self.assertRaisesRegex(tessera.UsageError, "nothing to score"):
            metric.compute()
        with self.assertRaisesRegex(tessera.UsageError, "2 predictions and 1 references"):
            metric.add_batch(predictions=[1, 2], references=[1])
        self.assertAlmostEqual(
            rapidformer.load_metric("perplexity").compute(predictions=[1.0, 3.0])["perplexity"], numpy.exp(2)
        )
        with self.assertRaisesRegex(tessera.UsageError, "no metric 'bleu'; there are accuracy"):
            rapidformer.load_metric("bleu")

    def test_metrics_are_those_of_scikit_learn_and_scipy(self):
        """tools/golden/label_scores.py has made the file."""
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(folder, "golden", "label_scores.json"), encoding="utf-8") as file:
            golden = json.load(file)
        for kind, metric, name, found, wanted, value in (
            ("labels", ("glue", "cola"), "matthews_correlation", "predicted", "labels", "matthews"),
            ("numbers", ("glue", "stsb"), "pearson", "y", "x", "pearson"),
            ("numbers", ("glue", "stsb"), "spearmanr", "y", "x", "spearman"),
            ("words", ("wer",), "wer", "hypotheses", "references", "rate"),
        ):
            for case in golden[kind]:
                scores = rapidformer.load_metric(*metric).compute(predictions=case[found], references=case[wanted])
                self.assertAlmostEqual(scores[name], case[value], 12)

    def test_batches_may_be_collected_before_the_model_is_called(self):
        logits, labels = numpy.arange(150.0).reshape(75, 2), numpy.arange(75)

        class Collects(rapidformer.Finetuner):
            def run_compute_metrics(self, model, eval_dataloader):
                batches = list(eval_dataloader)
                found = numpy.concatenate([model(**batch).logits for batch in batches])
                right = numpy.concatenate([batch["labels"] for batch in batches])
                with_others = {"ids": 3, "labels": batches[0]["labels"]}
                try:
                    model(**with_others)
                except tessera.UsageError as error:
                    return {"batches": len(eval_dataloader), "same": (found == logits).all() and (right == labels).all(),
                            str(error): 1}

        scores = Collects(engine=object())._metrics()(tessera.EvalPrediction(logits, labels))
        self.assertEqual((scores["batches"], bool(scores["same"])), (3, True))
        self.assertIn("something else than a batch", list(scores)[2])

    def test_scripts_that_are_wrong(self):
        def failing(old, new):
            self.assertIn(old, FINETUNER)
            script = self.script("wrong.py", FINETUNER.replace(old, new))
            return self.run_script(script, "--task", "sequence_classification", "--pretrained-model-name-or-path",
                                   self.bert, "--data-path", self.path("glue"), "--data-name", "mrpc", "--epochs", "1",
                                   "--micro-batch-size", "8", "--lr", "1e-3", "--save", f"wrong{hash((old, new))}",
                                   "--threads", "1", code=1)

        for old, new, says in [
            ("return output_tensor.loss", "return 3", "the loss is a int; return model"),
            ("return output_tensor.loss", "return batch['labels']", "the loss is of shape"),
            ("return output_tensor.loss", "return batch['lables']", "the batch has no 'lables'; it has"),
            ("return model, None, None", "return model, 3, None", "returns a int; return None, and give --optimizer"),
            ("return model, None, None", "return object(), None, None", "returns a builtins.object; return a tessera"),
            ("return metric.compute()", "return 3", "compute_metrics returned 3"),
            ("return metric.compute()", "raise KeyError('mine')", "KeyError: 'mine'"),
            ("args.dataset_name", "'nowhere'", "no table in"),
        ]:
            with self.subTest(new):
                self.assertRegex(failing(old, new), says)

    def test_an_engine_is_needed(self):
        with self.assertRaisesRegex(tessera.UsageError, "RapidformerEngine"):
            rapidformer.get_logger()


if __name__ == "__main__":
    unittest.main()
