"""tessera.Trainer: samples and scores of Python make the run that the same numbers make elsewhere."""

import gc
import glob
import itertools
import json
import os
import signal
import sqlite3
import tempfile
import threading
import time
import traceback
import unittest

import numpy

import tessera
from tessera.rapidformer import Dataset as Table

TINY = dict(preset="gpt2-tiny", layers=1, vocab_size=65, global_batch_size=4, threads=1, lr=1e-3, lr_warmup_steps=0)
BERT = dict(preset="bert-tiny", task="sequence_classification", classes=2, layers=1, vocab_size=65, threads=1)
BERT.update(global_batch_size=4, lr=1e-3, lr_warmup_steps=0)


def texts(count=24, length=16):
    """Samples of a causal model."""
    rows = [(numpy.arange(length) * (i + 1)) % 50 for i in range(count)]
    return [{"input_ids": row, "labels": row} for row in rows]


def marked(count=8, lengths=(5, 9, 7)):
    """Samples of a classifier, of several lengths."""
    out = []
    for i in range(count):
        ids = [(i * 7 + k) % 60 + 1 for k in range(lengths[i % len(lengths)])]
        out.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": i % 2})
    return out


class Mapped:
    def __init__(self, rows, get=None):
        self.rows, self.get = rows, get
        self.asked = []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        self.asked.append(i)
        return self.get(i) if self.get else self.rows[i]


class ManyAtOnce(Mapped):
    def __getitems__(self, numbers):
        return [self.rows[i] for i in numbers]

    def __getitem__(self, i):
        raise AssertionError("one at a time")


class Stream:
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


class Tensor:
    """As torch's, which numpy reads."""

    def __init__(self, array):
        self._array = numpy.asarray(array)
        self.shape = self._array.shape

    def detach(self):
        return self

    def __len__(self):
        return len(self._array)

    def __getitem__(self, i):
        return Tensor(self._array[i])

    def __array__(self, dtype=None):
        return self._array


class Loader:
    """As torch.utils.data.DataLoader."""

    batch_sampler = collate_fn = None

    def __init__(self, rows, batch_size):
        self.dataset, self.batch_size = rows, batch_size

    def __len__(self):
        return -(-len(self.dataset) // self.batch_size)

    def __iter__(self):
        for first in range(0, len(self.dataset), self.batch_size):
            rows = self.dataset[first : first + self.batch_size]
            yield {name: Tensor([row[name] for row in rows]) for name in rows[0]}


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.lines = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def trainer(self, rows, flags=TINY, output="run", model=None, **more):
        names = ("train_dataset", "eval_dataset", "data_collator", "compute_metrics", "callbacks", "shuffle", "lines")
        given = {k: more.pop(k) for k in names if k in more}
        columns = more.pop("remove_unused_columns", True)
        flags = {**flags, "output": self.path(output), **more}
        args = tessera.TrainingArguments(remove_unused_columns=columns, **flags)
        given.setdefault("lines", self.lines.append)
        return tessera.Trainer(model, args, train_dataset=rows, **given)

    def losses(self, rows, **more):
        name = f"run{len(os.listdir(self.folder))}"
        return self.trainer(rows, output=name, **{"steps": 6, **more}).train().losses.tolist()

    def metrics(self, output):
        with open(self.path(output) + "/metrics.jsonl") as file:
            lines = [json.loads(line) for line in file]
        return [{k: v for k, v in line.items() if k not in ("tokens_per_s", "step_seconds")} for line in lines]


class Samples(Test):
    def test_classes_are_those_of_the_weights(self):
        rows = [{"input_ids": [(7 * i + k) % 50 for k in range(8)], "attention_mask": [1] * 8, "labels": i % 3} for i in range(24)]
        output = tempfile.TemporaryDirectory()
        self.addCleanup(output.cleanup)
        args = dict(preset="bert-tiny", task="sequence_classification", classes=3, vocab_size=50, steps=2, threads=1)
        tessera.Trainer(args=tessera.TrainingArguments(global_batch_size=8, output=output.name + "/run", **args),
                        train_dataset=rows, lines=None).train()
        one = [row for row in rows if row["labels"] == 0]
        with tessera.Model.from_pretrained(output.name + "/run", task="sequence_classification", threads=1) as model:
            want = model(input_ids=[row["input_ids"] for row in one], attention_mask=[[1] * 8] * len(one)).logits
            for of in (model, output.name + "/run"):
                for more in ({}, {"task": "sequence_classification"}):
                    lines = []
                    trainer = tessera.Trainer(of, tessera.TrainingArguments(threads=1, **more), lines=lines.append)
                    numpy.testing.assert_allclose(trainer.predict(one), want, atol=1e-5)
                    self.assertNotIn("random", "".join(lines))

    def test_datasets_of_every_kind_are_the_same_bits(self):
        rows = texts()
        columns = {name: numpy.stack([row[name] for row in rows]) for name in rows[0]}
        shuffled = self.losses(rows)
        table = Table({name: [row[name].tolist() for row in rows] for name in rows[0]})
        for kind in [Mapped(rows), ManyAtOnce(rows), columns, table, [{k: v.tolist() for k, v in r.items()} for r in rows]]:
            self.assertEqual(self.losses(kind), shuffled, type(kind))
        in_order = self.losses(rows, shuffle=False, steps=9)  # beyond an epoch
        self.assertNotEqual(in_order[:6], shuffled)
        for kind in [Stream(rows), Loader(rows, 4), Loader(rows, 5), itertools.cycle(rows)]:
            self.assertEqual(self.losses(kind, steps=9), in_order, type(kind))
        tensors = [{k: Tensor(v.astype(numpy.int16)) for k, v in row.items()} for row in rows]
        self.assertEqual(self.losses(tensors), shuffled)
        collate = lambda rows: {k: Tensor(numpy.stack([r[k] for r in rows])) for k in rows[0]}
        self.assertEqual(self.losses(rows, data_collator=collate), shuffled)

    def test_every_mesh_is_the_same_within_rounding(self):
        for flags, rows in [(TINY, texts()), (BERT, marked())]:
            one = self.losses(rows, flags=flags)
            for mesh in [dict(devices=2), dict(devices=2, tensor_model_parallel_size=2)]:
                numpy.testing.assert_allclose(self.losses(rows, flags=flags, **mesh), one, rtol=1e-5)

    def test_shorter_rows_are_filled_up(self):
        """A causal model's loss is that of full rows that say what counts."""
        rows = [{"input_ids": r["input_ids"][: 9 + i % 4], "labels": r["labels"][: 9 + i % 4]} for i, r in enumerate(texts())]
        full = []
        for row in rows:
            n = len(row["labels"])
            ids, labels = numpy.zeros(12, int), numpy.full(12, -100)
            ids[:n], labels[:n] = row["input_ids"], row["labels"]
            full.append({"input_ids": ids, "labels": labels})
        self.assertEqual(self.losses(rows), self.losses(full))
        # As long as the longest, or as context says; what is behind a token is not seen.
        numpy.testing.assert_allclose(self.losses(rows, context="12"), self.losses(rows))
        with self.assertRaisesRegex(tessera.UsageError, "--context"):
            self.losses(rows, context="twelve")
        table = Table({name: [row[name] for row in rows] for name in rows[0]})
        self.assertEqual(self.losses(table), self.losses(rows))
        first = Mapped(rows[3:])  # whose first has 12
        self.losses(first)
        with self.assertRaisesRegex(tessera.DataError, r"sample \d+ .*has 1\d numbers, and rows have 9; .*context=1"):
            self.losses(Mapped(rows))

    def test_padding_without_a_mask_is_refused_where_it_is_read(self):
        rows = [{k: v for k, v in row.items() if k != "attention_mask"} for row in marked()]
        with self.assertRaisesRegex(tessera.DataError, "shorter than the context.*attention_mask"):
            self.losses(rows, flags=BERT)
        self.losses([dict(row, input_ids=(row["input_ids"] * 3)[:9]) for row in rows], flags=BERT)

    def test_unread_columns_are_told(self):
        rows = [dict(row, text="abc", idx=i, none=None, nested={"a": 1}) for i, row in enumerate(texts())]
        self.assertEqual(self.losses(rows), self.losses(texts()))
        said = "\n".join(line for line in self.lines if line.startswith("notice"))
        self.assertIn("nested, none, text of the dataset are left out", said)
        self.assertIn("does not read idx of the dataset, which is left out", said)
        with self.assertRaisesRegex(tessera.DataError, "sample 0 .*'text' is 'abc'"):
            self.losses(rows, remove_unused_columns=False)

    def test_every_head_is_trained_and_predicts(self):
        n = 10
        ids = [[(i * 7 + k) % 60 + 1 for k in range(6 + i % 4)] for i in range(n)]
        mask = [[1] * len(row) for row in ids]
        rows = [dict(input_ids=ids[i], attention_mask=mask[i]) for i in range(n)]
        pixels = numpy.random.default_rng(1).normal(size=(n, 1, 8, 8)).astype(numpy.float32)
        vit = dict(family="vit", task="image_classification", classes=3, image_size=8, image_channels=1, patch_size=4)
        vit.update(layers=1, heads=2, width=16, preset=None, vocab_size=None)
        bert = dict(BERT, classes=None)
        cases = [
            (dict(bert, task="masked_lm"), [dict(r, labels=r["input_ids"]) for r in rows], (n, 9, 65)),
            (dict(bert, task="token_classification", classes=4), [dict(r, labels=[k % 4 for k in r["input_ids"]]) for r in rows], (n, 9, 4)),
            (dict(bert, task="question_answering"), [dict(r, start_positions=1, end_positions=2) for r in rows], {"start": (n, 9), "end": (n, 9)}),
            (dict(TINY, task="sequence_classification", classes=3), [dict(r, labels=i % 3) for i, r in enumerate(rows)], (n, 3)),
            (dict(TINY, preset="transformer-tiny", task="seq2seq_lm"), [dict(r, labels=r["input_ids"][:4]) for r in rows], (n, 4, 65)),
            (dict(BERT, **vit), [dict(pixel_values=pixels[i], labels=i % 3) for i in range(n)], (n, 3)),
        ]
        for flags, rows, shape in cases:
            with self.subTest(flags["task"]):
                seen = []
                metrics = lambda p: seen.append(p) or {"mine": 1}
                one = self.trainer(rows, flags=flags, output=flags["task"], eval_dataset=rows, compute_metrics=metrics, steps=3)
                losses = one.train().losses
                shapes = lambda p: {k: v.shape for k, v in p.items()} if isinstance(p, dict) else p.shape
                self.assertEqual(shapes(seen[0].predictions), shape)
                self.assertEqual(shapes(one.predict(rows)), shape)
                other = self.trainer(rows, flags=dict(flags, global_batch_size=5), model=one.model)
                self.assertAlmostEqual(other.evaluate(rows)["loss"], one.evaluate()["loss"], places=5)
                numpy.testing.assert_allclose(self.losses(rows, flags=flags, steps=3, devices=2), losses, rtol=1e-5)

    def test_a_dataset_that_changes_its_size(self):
        class Changing(Mapped):
            def __getitem__(self, i):
                if len(self.asked) > 40:
                    self.rows = self.rows[:2]
                return super().__getitem__(i)

        with self.assertRaises(IndexError):
            self.losses(Changing(texts()), steps=50)
        grown = texts()
        more = Mapped(grown, lambda i: (grown.append(grown[0]), grown[i])[1])
        self.assertEqual(self.losses(more), self.losses(texts()))

    def test_others_may_be_shorter(self):
        for flags, rows in [(BERT, marked()), (TINY, texts(length=9))]:
            trainer = self.trainer(rows, flags=flags, output=flags["preset"], steps=2)
            trainer.train()
            short = [{k: v[:4] if k != "labels" or "task" not in flags else v for k, v in row.items()} for row in rows]
            batch = {name: numpy.array([row[name] for row in short]) for name in short[0]}
            wanted = tessera.Model.from_pretrained(trainer.model.source)(**batch)
            numpy.testing.assert_allclose(trainer.predict(short), wanted.logits, atol=1e-5)
            self.assertAlmostEqual(trainer.evaluate(short)["loss"], wanted.loss, places=5)

    def test_a_new_model_stays_itself(self):
        mine = dict(vocab_size=65, layers=1, threads=1)
        bert = dict(preset="bert-tiny", task="sequence_classification", classes=2)
        pairs = [dict(input_ids=row["input_ids"][:9], labels=row["labels"][:4]) for row in texts()]
        for flags, rows in [
            (dict(preset="gpt2-tiny"), texts(length=9)),
            (dict(preset="gpt2-tiny", context=16), texts(length=9)),
            (bert, marked()),
            (dict(preset="transformer-tiny", task="seq2seq_lm"), pairs),
        ]:
            with self.subTest(**flags):
                model = tessera.Model(**flags, **mine)
                shapes = {name: array.shape for name, array in model.state_dict("tessera").items()}
                args = dict(output=self.path(f"{len(flags)}{flags['preset']}"), steps=2, lr=1e-3, global_batch_size=4)
                trainer = tessera.Trainer(model, tessera.TrainingArguments(**args), rows, lines=None)
                trainer.train()
                found = {name: array.shape for name, array in model.state_dict("tessera").items()}
                if "task" not in flags or flags["task"] != "seq2seq_lm":  # whose sources have no flag for theirs
                    self.assertEqual(found, shapes)
                batch = {name: numpy.array([rows[0][name]]) for name in rows[0]}
                self.assertAlmostEqual(trainer.evaluate(rows[:1])["loss"], model(**batch).loss, places=5)
                trainer.args.flags["steps"] = 3
                self.assertEqual(len(trainer.train(resume="auto").losses), 1)

    def test_a_label_is_called_labels(self):
        rows = [{"label" if k == "labels" else k: v for k, v in row.items()} for row in marked()]
        self.assertEqual(self.losses(rows, flags=BERT), self.losses(marked(), flags=BERT))

    def test_a_collator_of_texts(self):
        words = [{"text": " ".join(str(k) for k in row["input_ids"])} for row in texts()]

        def collate(samples):
            ids = [[int(word) for word in sample["text"].split()] for sample in samples]
            return {"input_ids": ids, "labels": ids}

        self.assertEqual(self.losses(words, data_collator=collate), self.losses(texts()))

    def test_samples_are_read_in_the_callers_thread(self):
        store = sqlite3.connect(self.path("rows.db"))
        store.execute("create table rows (i integer, ids text)")
        rows = texts()
        store.executemany("insert into rows values (?, ?)", [(i, json.dumps(r["labels"].tolist())) for i, r in enumerate(rows)])

        def get(i):
            ids = json.loads(store.execute("select ids from rows where i = ?", (i,)).fetchone()[0])
            return {"input_ids": ids, "labels": ids}

        for devices in (1, 2):
            self.assertEqual(self.losses(Mapped(rows, get), devices=devices), self.losses(rows, devices=devices))
        store.close()

    def test_hostile_samples(self):
        rows = texts()

        def with_(i, **features):
            return [dict(row, **features) if k == i else row for k, row in enumerate(rows)]

        nan = dict(with_x=numpy.full(3, numpy.nan))
        cases = [
            ([], "no samples"),
            (with_(5, labels=numpy.arange(7)), "sample 5 .*'labels' has 7 numbers and 'input_ids' 16"),
            (with_(5, more=1), "sample 5 .*has input_ids, labels, more, but the first one has input_ids, labels"),
            ([{"input_ids": rows[0]["input_ids"]}] + rows[1:], "has input_ids, labels, but the first one|reads 'labels'"),
            (with_(5, labels=3), "sample 5 .*'labels' is one whole number, 3, but .*a row of whole numbers"),
            (with_(5, input_ids=numpy.arange(17)), "sample 5 .*'labels' has 16 numbers and 'input_ids' 17"),
            (with_(5, input_ids=numpy.arange(16) / 2), "sample 5 .*'input_ids' is a row of floats.*a row of whole"),
            (with_(5, input_ids=[[1, 2]] * 16), r"sample 5 .*'input_ids' is .* of shape \[16, 2\]"),
            (with_(5, input_ids="abc"), "sample 5 .*'input_ids' is 'abc'"),
            (with_(5, input_ids=None), "sample 5 .*'input_ids' is None"),
            (with_(5, input_ids=[1, "a"]), r"sample 5 .*'input_ids' is \[1, 'a'\]"),
            (with_(5, input_ids=numpy.full(16, 2**40)), "sample 5 .*'input_ids' has 1099511627776 at 0"),
            (with_(5, input_ids=numpy.full(16, 65)), "sample 5 .*'input_ids' has 65 at 0"),
            (with_(5, labels=numpy.full(16, -1)), "sample 5 .*'labels' has -1 at 0"),
            (rows[:5] + ["abc"] * 20, "sample .* is a str"),
            (rows[:5] + [None] * 20, "sample .* is a NoneType"),
            ([{"x": 0.5, **row} for row in rows[:4]] + [{**nan, **row} for row in rows[4:]], "sample .* has"),
            ([{"text": "abc"}] * 8, "no numbers, only text"),
            ([{}] * 8, "no numbers, only nothing"),
        ]
        for k, (data, words) in enumerate(cases):
            with self.subTest(k):
                with self.assertRaisesRegex(tessera.Error, words):
                    self.losses(Mapped(data) if data else data, steps=12)
        for value, words in [(float("nan"), "has nan at 1"), (1e300, r"has 1e\+300 at 1"), (-float("inf"), "has -inf at 1")]:
            data = [dict(row, x=[0.5, value if i == 5 else 1]) for i, row in enumerate(rows)]
            with self.assertRaisesRegex(tessera.DataError, "sample 5 .*'x' " + words):
                self.losses(data, steps=12)
        for what in (3, "abc", b"abc", object()):
            with self.assertRaises(tessera.UsageError):
                self.losses(what)
        for value in (numpy.array(3), 3, "abc"):
            with self.assertRaisesRegex(tessera.UsageError, "train_dataset is a"):
                self.losses(value)
        for name in (3, None, "", "batch.is_sample", "a\0"):
            with self.assertRaisesRegex(tessera.DataError, "has a feature called"):
                self.losses([{**row, name: 1} for row in rows])
        with self.assertRaisesRegex(tessera.UsageError, "context is 1099511627776"):
            self.losses(rows, context=2**40)
        for columns, words in [
            ({"a": [1], "b": [1, 2]}, "other lengths"),
            ({"a": 3}, "column 'a' of a dataset is a int"),
            ({}, "no samples"),
        ]:
            with self.assertRaisesRegex(tessera.DataError, words):
                self.losses(columns)

    def test_hostile_collators(self):
        rows = texts()
        whole = lambda rows: {k: numpy.stack([r[k] for r in rows]) for k in rows[0]}
        for collate, words in [
            (lambda rows: {k: v[len(v) > 1 :] for k, v in whole(rows).items()}, "returned 3 of 'input_ids' for 4 samples"),
            (lambda rows: [], "data_collator returned a list"),
            (lambda rows: {"input_ids": 3}, "returned no row of 'input_ids'"),
            (lambda rows: {**whole(rows), "labels": ["a"] * len(rows)}, "'labels' is 'a'"),
        ]:
            with self.assertRaisesRegex(tessera.DataError, words):
                self.losses(rows, data_collator=collate)
        calls = []

        def drops_later(rows):
            calls.extend([1] * (len(rows) > 1))
            return {k: v[: len(rows) - (len(calls) > 4)] for k, v in whole(rows).items()}

        with self.assertRaisesRegex(tessera.DataError, "returned 3 of 'input_ids' for 4 samples"):
            self.losses(rows, data_collator=drops_later, steps=50)

    def test_lengths_of_loaders(self):
        rows = texts(16)
        steps = lambda data: len(self.losses(data, steps=None, epochs=2))
        half = Loader(rows, 4)
        half.sampler = range(8)
        self.assertEqual(steps(half), steps(rows[:8]))
        alone = Stream(rows)  # as a DataLoader with batch_size=None
        alone.batch_sampler = alone.collate_fn = alone.batch_size = None
        self.assertEqual(self.losses(alone), self.losses(Stream(rows)))

        class Sampled(Loader):
            batch_sampler = [[0, 1], [2, 3]]

            def __len__(self):
                return 2

        with self.assertRaisesRegex(tessera.UsageError, "no length; give steps"):
            steps(Sampled(rows, None))

        class Batches(Stream):
            def __len__(self):
                return 4

        batches = Batches(list(Loader(rows, 4)))
        with self.assertRaisesRegex(tessera.DataError, "length is that of its batches"):
            steps(batches)
        self.losses(rows, eval_dataset=batches)  # of which all is read

    def test_streams_end(self):
        rows = texts(8)
        with self.assertRaisesRegex(tessera.DataError, "read up to 8 and cannot begin again"):
            self.losses(iter(rows))
        self.losses(iter(rows), steps=2)
        with self.assertRaisesRegex(tessera.DataError, "empty"):
            self.losses(iter([]))
        with self.assertRaisesRegex(tessera.UsageError, "no length; give steps"):
            self.losses(Stream(rows), steps=None, epochs=1)


class Ends(Test):
    def test_an_exception_keeps_its_traceback_and_the_run_is_saved(self):
        rows = texts()
        got = []

        def fail_in_dataset(i):
            got.append(i)
            if len(got) > 60:
                raise KeyError("mine")
            return rows[i]

        for devices in (1, 2):
            got.clear()
            name = f"run{devices}"
            text = ""
            try:
                self.trainer(Mapped(rows, fail_in_dataset), output=name, steps=50, devices=devices).train()
            except KeyError:
                text = traceback.format_exc()
            self.assertIn("fail_in_dataset", text)
            done = len(self.metrics(name))
            self.assertGreater(done, 1)
            stop = lambda step: step.number == done + 2 and step.stop()
            more = dict(steps=50, devices=devices, callbacks=stop)
            run = self.trainer(rows, output=name, **more).train(resume="auto")
            self.assertEqual(len(run.losses), 2)
            self.trainer(rows, output="whole" + name, **more).train()
            self.assertEqual(self.metrics(name), self.metrics("whole" + name))

        def fail_in_metrics(_):
            raise ZeroDivisionError("metrics")

        trainer = self.trainer(rows, output="metrics", eval_dataset=rows[:4], compute_metrics=fail_in_metrics, steps=9, eval_every=3)
        with self.assertRaisesRegex(ZeroDivisionError, "metrics"):
            trainer.train()
        self.assertTrue(os.path.isdir(self.path("metrics/checkpoints/step-00000003")))

        def fail_in_callback(step):
            if step.number == 2:
                raise OSError("callback")

        with self.assertRaisesRegex(OSError, "callback"):
            self.trainer(rows, output="callback", callbacks=fail_in_callback, steps=9).train()
        with self.assertRaisesRegex(ValueError, "first"):
            self.losses(Mapped(rows, lambda i: (_ for _ in ()).throw(ValueError("first"))))

    def test_ctrl_c_in_a_dataset_saves(self):
        rows, got = texts(), []

        def get(i):
            got.append(i)
            if len(got) == 60:
                os.kill(os.getpid(), signal.SIGINT)
            return rows[i]

        for devices in (1, 2):
            got.clear()
            with self.assertRaises(KeyboardInterrupt):
                self.trainer(Mapped(rows, get), output=f"run{devices}", steps=100000, devices=devices).train()
            done = len(self.metrics(f"run{devices}"))
            run = self.trainer(rows, output=f"run{devices}", steps=done + 1, devices=devices).train(resume="auto")
            self.assertEqual(len(run.losses), 1)

    def test_a_resumed_run_is_the_one_that_was_not_interrupted(self):
        rows = texts()
        scores = lambda p: {"mine": float(p.predictions.sum())}
        for name, more in [
            ("list", dict(train_dataset=rows)),
            ("stream", dict(train_dataset=Stream(rows))),
            ("dropout", dict(train_dataset=rows, dropout=0.1)),
        ]:
            more.update(eval_dataset=rows[:6], compute_metrics=scores, steps=9, eval_every=4)
            data = more.pop("train_dataset")
            self.trainer(data, output=name + "whole", **more).train()
            stop = lambda step: step.number == 5 and step.stop()
            first = self.trainer(data, output=name, callbacks=[stop], **more)
            self.assertEqual(first.train().ending, "stopped")
            second = self.trainer(data, output=name, **more).train(resume="auto")
            self.assertEqual(len(second.losses), 4)
            self.assertEqual(self.metrics(name), self.metrics(name + "whole"))

    def test_a_step_can_stop_at_once_and_save(self):
        rows = texts()
        run = self.trainer(rows, steps=50, callbacks=lambda step: step.stop()).train()
        self.assertEqual((len(run.losses), run.ending), (1, "stopped"))
        saved = []

        def watch(step):
            saved.append(os.path.isdir(self.path("saves/checkpoints/step-00000003")))
            if step.number == 3:
                step.save()

        run = self.trainer(rows, output="saves", steps=12, callbacks=watch).train()
        self.assertTrue(saved[-1])
        self.assertEqual(run.checkpoint, self.path("saves/checkpoints/step-00000012"))

    def test_functions_may_take_longer_than_devices_wait(self):
        rows, slept = texts(), []

        def slow(_):
            if len(slept) < 3:
                slept.append(1)
                time.sleep(1.5)
            return {"mine": 1}

        def get(i):
            slow(i)
            return rows[i]

        more = dict(devices=2, distributed_timeout=1)
        self.losses(rows, callbacks=slow, **more)
        slept.clear()
        self.losses(Mapped(rows, get), **more)
        slept.clear()
        self.losses(rows, eval_dataset=rows[:4], compute_metrics=slow, **more)

    def test_two_trainers_at_once(self):
        alone = self.losses(texts(), steps=20)
        found = {}
        threads = [
            threading.Thread(target=lambda i=i: found.update({i: self.trainer(texts(), output=f"both{i}", steps=20).train().losses.tolist()}))
            for i in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, {0: alone, 1: alone})

    def test_trainers_leave_no_memory(self):
        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        rows = texts()

        def one(i):
            trainer = self.trainer(rows, output="memory", steps=1, overwrite=True, eval_dataset=rows[:4])
            trainer.train()
            trainer.predict(rows[:4])

        for i in range(10):
            one(i)
        before = resident()
        for i in range(20):
            one(i)
        self.assertLess(resident() - before, 8 << 20)


class Scores(Test):
    def test_metrics_see_all_that_is_held_out(self):
        rows, seen = marked(10), []

        def metrics(p):
            seen.append((p.predictions, p.labels, p.label_ids))
            predictions, labels = p
            return {"accuracy": (predictions.argmax(-1) == labels).mean(), "n": len(labels)}

        for devices in (1, 2):
            seen.clear()
            trainer = self.trainer(
                marked(), flags=BERT, output=f"run{devices}", eval_dataset=rows, compute_metrics=metrics,
                steps=6, eval_every=3, devices=devices,
            )
            run = trainer.train()
            self.assertEqual([p.shape for p, _, _ in seen], [(10, 2), (10, 2)])
            for _, labels, ids in seen:
                numpy.testing.assert_array_equal(labels, [i % 2 for i in range(10)])
                self.assertIs(labels, ids)
            valid = [line for line in run.metrics if line["kind"] == "valid"]
            self.assertEqual([line["step"] for line in valid], [3, 6])
            self.assertEqual([line["n"] for line in valid], [10, 10])
            self.assertEqual(valid, [m for m in self.metrics(f"run{devices}") if m["kind"] == "valid"])
            # The weights at the end are those that are evaluated.
            found = trainer.evaluate()
            self.assertAlmostEqual(found["loss"], valid[-1]["loss"], places=6)
            self.assertEqual((found["accuracy"], found["n"]), (valid[-1]["accuracy"], 10))
            numpy.testing.assert_allclose(trainer.predict(rows), seen[-1][0], rtol=1e-6)
            without = [{k: v for k, v in row.items() if k != "labels"} for row in rows]
            numpy.testing.assert_array_equal(trainer.predict(without), trainer.predict(rows))
            self.assertTrue(numpy.isnan(self.trainer(None, flags=BERT, model=trainer.model).evaluate(without)["loss"]))
            self.assertEqual(trainer.predict(Stream(rows[:3])).shape, (3, 2))

    def test_a_model_is_trained_and_called(self):
        """Also on rows that are shorter than those that it began with."""
        rows = texts(8, 24)
        first = self.trainer(rows, output="first", steps=2)
        first.train()
        model = tessera.Model.from_pretrained(self.path("first"))
        self.addCleanup(model.close)
        rows = texts(8)
        ids = numpy.stack([row["input_ids"] for row in rows])
        before = model(input_ids=ids).logits
        flags = {k: v for k, v in TINY.items() if k not in ("preset", "layers", "vocab_size")}
        trainer = self.trainer(rows, flags=flags, model=model, steps=4)
        numpy.testing.assert_allclose(trainer.predict(rows), before, atol=1e-5)
        run = trainer.train()
        self.assertEqual(model.source, run.checkpoint)
        after = model(input_ids=ids).logits
        self.assertGreater(abs(after - before).max(), 1e-3)
        numpy.testing.assert_allclose(trainer.predict(rows), after, atol=1e-5)
        self.assertEqual(model.config["positions"], 24)
        by_path = self.trainer(rows, flags=flags, model=self.path("run"))
        numpy.testing.assert_array_equal(by_path.predict(rows), trainer.predict(rows))

    def test_predictions_are_what_a_called_model_returns(self):
        """Of rows that are filled up; and a called model is compared with transformers elsewhere."""
        random = numpy.random.default_rng(1)
        for folder in sorted(glob.glob(os.path.join(os.path.dirname(__file__), "../golden/hub/*"))):
            with self.subTest(folder), tessera.Model.from_pretrained(folder) as model:
                sizes = model.config
                if sizes["task"] == "image_classification":
                    shape = (3, sizes["image_channels"], sizes["image_size"], sizes["image_size"])
                    rows = [dict(pixel_values=x) for x in random.normal(size=shape).astype("f4")]
                else:
                    ids = [random.integers(3, sizes["vocab_size"], size=n) for n in (4, 6, 5)]
                    rows = [dict(input_ids=row, attention_mask=row * 0 + 1) for row in ids]
                if sizes["task"] == "seq2seq_lm":
                    rows = [dict(row, decoder_input_ids=row["input_ids"][:3]) for row in rows]
                args = tessera.TrainingArguments(global_batch_size=2)
                found = tessera.Trainer(model, args, lines=None).predict(rows)
                several = found if isinstance(found, dict) else {"logits": found}
                for i, row in enumerate(rows):
                    out = model(**{name: value[None] for name, value in row.items()})
                    for name, arrays in several.items():
                        want = out[name if name in out else name + "_logits"][0]
                        mine = arrays[i] if arrays[i].ndim == 0 else arrays[i][: len(want)]
                        numpy.testing.assert_allclose(mine, want, atol=1e-5)

    def test_logits_of_a_causal_model_are_those_of_its_loss(self):
        rows = texts()
        trainer = self.trainer(rows, steps=3)
        trainer.train()
        logits = trainer.predict(rows[:5]).astype(numpy.float64)
        self.assertEqual(logits.shape, (5, 16, 65))
        labels = numpy.stack([row["labels"] for row in rows[:5]])[:, 1:]
        log = logits[:, :-1] - numpy.log(numpy.exp(logits[:, :-1]).sum(-1, keepdims=True))
        loss = -numpy.take_along_axis(log, labels[..., None], -1).mean()
        self.assertAlmostEqual(trainer.evaluate(rows[:5])["loss"] / loss, 1, places=5)

    def test_epochs(self):
        n = []
        trainer = self.trainer(
            marked(), flags=BERT, eval_dataset=marked(4), compute_metrics=lambda p: n.append(1) or {"mine": len(n)}, epochs=3,
        )
        run = trainer.train()
        self.assertEqual(len(run.losses), 6)
        self.assertEqual([m["mine"] for m in run.metrics if m["kind"] == "valid"], [1, 2, 3])

    def test_metrics_that_return_no_numbers(self):
        for returned, words in [
            (None, "returned None; return a dict"),
            (3, "returned 3"),
            ({"a": "b"}, "a='b'; give a number"),
            ({"a": None}, "a=None"),
            ({3: 1}, "calls a score 3"),
            ({"loss": 1}, "calls a score 'loss'"),
            ({'a"b': 1}, "calls a score"),
        ]:
            trainer = self.trainer(texts(), steps=1, overwrite=True, eval_dataset=texts(4), compute_metrics=lambda p: returned)
            with self.assertRaisesRegex(tessera.UsageError, words):
                trainer.train()
        trainer = self.trainer(texts(), steps=1, overwrite=True, eval_dataset=texts(4), compute_metrics=lambda p: {"a": float("nan")})
        trainer.train()
        self.assertTrue(numpy.isnan(trainer.evaluate()["a"]))

    def test_the_flags_data_with_a_metric_of_ones_own(self):
        with open(self.path("text.txt"), "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))
        flags = {k: v for k, v in TINY.items() if k != "vocab_size"}
        seen = []
        metrics = lambda p: seen.append(p) or {"mine": 2}
        trainer = self.trainer(None, flags=flags, data=self.path("text.txt"), steps=2, eval_iters=1, compute_metrics=metrics)
        run = trainer.train()
        self.assertEqual(run.metrics[-1]["mine"], 2)
        self.assertEqual(seen[0].predictions.ndim, 3)
        plain = tessera.train(lines=None, output=self.path("plain"), data=self.path("text.txt"), steps=2, eval_iters=1, **flags)
        numpy.testing.assert_array_equal(run.losses, plain.losses)

    def test_wrong_calls(self):
        with self.assertRaisesRegex(tessera.UsageError, "no train_dataset"):
            self.trainer(None, eval_dataset=texts()).train()
        with self.assertRaisesRegex(tessera.UsageError, "nothing to evaluate"):
            self.trainer(texts()).evaluate()
        with self.assertRaisesRegex(tessera.UsageError, "model is a int"):
            tessera.Trainer(3)
        for more in (dict(data_collator=3), dict(compute_metrics=3), dict(callbacks=3), dict(callbacks=[print, 3])):
            with self.assertRaisesRegex(tessera.UsageError, "is a int; give"):
                self.trainer(texts(), steps=1, **more).train()
        with self.assertRaisesRegex(tessera.UsageError, "resume is 3"):
            self.trainer(texts(), steps=1).train(resume=3)
        with self.assertRaisesRegex(tessera.UsageError, "args is a dict"):
            tessera.Trainer(args={})
        with self.assertRaisesRegex(tessera.UsageError, "the same flag"):
            tessera.TrainingArguments(lr=1, learning_rate=1)
        with self.assertRaisesRegex(tessera.UsageError, r"shuffle is no flag; tessera.Trainer\(..., shuffle=False\)"):
            tessera.TrainingArguments(shuffle=False)
        with self.assertRaisesRegex(tessera.UsageError, "per_device_train_batch_size is no flag; global_batch_size"):
            tessera.TrainingArguments(per_device_train_batch_size=4)
        theirs = tessera.TrainingArguments(warmup_steps=3, eval_steps=4, max_grad_norm=2)
        self.assertEqual(theirs.flags, dict(lr_warmup_steps=3, eval_every=4, clip_grad=2))
        for labels, problem in [
            ([1, 0, 1], "sample 0 of the dataset has 5 input_ids and 3 labels"),
            (0.5, "'labels' is f32.*reads i32.*; give whole numbers"),
        ]:
            wrong = self.trainer([dict(row, labels=labels) for row in marked()], flags=BERT, steps=1)
            for act in [wrong.train, lambda: wrong.evaluate(wrong.train_dataset)]:
                with self.assertRaisesRegex(tessera.Error, problem):
                    act()
        with self.assertRaisesRegex(tessera.DataError, "no samples"):
            self.trainer(texts()).evaluate([])
        with self.assertRaisesRegex(tessera.DataError, "no samples"):
            self.trainer(texts(), eval_dataset=[], steps=1).train()
        masked = numpy.ma.MaskedArray(range(16), [0] * 15 + [1])
        with self.assertRaisesRegex(tessera.DataError, "masked array"):
            self.trainer([{"input_ids": masked, "labels": masked}] * 8, steps=1).train()
        with self.assertRaisesRegex(tessera.CheckpointError, "nowhere"):
            self.trainer(texts(), model=self.path("nowhere"), steps=1).train()


if __name__ == "__main__":
    unittest.main()
