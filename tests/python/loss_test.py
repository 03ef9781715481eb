"""compute_loss of tessera.Trainer: losses that Python functions write."""

import os
import tempfile
import unittest

import numpy

import tessera

ROWS = [
    {"input_ids": [(7 * i + k) % 50 for k in range(8)], "attention_mask": [1] * 8, "labels": i % 2, "weight": 1.0 + i % 3}
    for i in range(40)
]
PLAIN = [{name: value for name, value in row.items() if name != "weight"} for row in ROWS]


def own(model, batch):
    return model(**batch).loss


def scalar(model, batch):
    return tessera.nn.cross_entropy(model(**batch).logits, batch["labels"])


def weighted(model, batch):
    features = {name: value for name, value in batch.items() if name != "weight"}
    logits = model(**features).logits
    losses = -tessera.ops.pick(tessera.ops.log_softmax(logits), batch["labels"])
    total = tessera.ops.sum(losses * batch["weight"], [0])
    return total / tessera.ops.sum(batch["weight"], [0])


class Losses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.runs = 0

    def trainer(self, loss, rows=PLAIN, **flags):
        self.runs += 1
        args = dict(preset="bert-tiny", task="sequence_classification", classes=2, vocab_size=50, epochs=2, lr=1e-3,
                    global_batch_size=8, threads=1, dropout=0, output=os.path.join(self.folder, str(self.runs)))
        return tessera.Trainer(
            args=tessera.TrainingArguments(**{**args, **flags}), train_dataset=rows[:32], eval_dataset=rows[32:],
            compute_loss=loss, compute_metrics=lambda p: {"right": float((p.predictions.argmax(-1) == p.labels).mean())},
            lines=None)

    def test_the_models_own(self):
        usual = self.trainer(None).train()
        mine = self.trainer(own).train()
        self.assertTrue(numpy.array_equal(usual.losses, mine.losses))
        self.assertEqual(usual.metrics[-1]["right"], mine.metrics[-1]["right"])
        same = self.trainer(scalar).train()
        numpy.testing.assert_allclose(same.losses, usual.losses, rtol=1e-6)
        self.assertEqual(same.metrics[-1]["right"], usual.metrics[-1]["right"])

    def test_neither_mesh_nor_batch_counts(self):
        for loss, rows in [(scalar, PLAIN), (weighted, ROWS)]:
            one = self.trainer(loss, rows).train().losses
            for mesh in [dict(devices=2, tensor_model_parallel_size=2), dict(devices=2, pipeline_model_parallel_size=2,
                         micro_batch_size=8)]:
                with self.subTest(loss=loss.__name__, **mesh):
                    numpy.testing.assert_allclose(self.trainer(loss, rows, **mesh).train().losses, one, rtol=1e-5)
        # A mean of each batch is one over all devices too.
        one = self.trainer(scalar).train().losses
        numpy.testing.assert_allclose(self.trainer(scalar, devices=2).train().losses, one, rtol=1e-5)

    def test_features_that_the_model_does_not_read(self):
        trainer = self.trainer(weighted, ROWS, epochs=0, steps=1)
        before = self.trainer(None, PLAIN, epochs=0, steps=1)
        self.assertFalse(numpy.array_equal(trainer.train().losses, before.train().losses))
        self.assertEqual(sorted(trainer.evaluate()), ["loss", "right"])

    def test_what_is_predicted(self):
        def halves(model, batch):
            out = model(**batch)
            return out.loss, {"half": out.logits * 0.5}

        self.assertEqual(self.trainer(halves).predict(PLAIN[:5]).shape, (5, 2))

    def test_what_is_no_loss(self):
        for loss, says in [
            (lambda model, batch: 3, "the loss is a int; return model"),
            (lambda model, batch: model(**batch).logits, r"the loss is of shape \[8,2\]"),
            (lambda model, batch: model(input_ids=[[1]]).loss, "input_ids is a list; give values of the batch"),
            (lambda model, batch: (model(**batch).loss, {"a": 3}), "predicted as 'a' is a int"),
            (lambda model, batch: (model(**batch).loss, batch["labels"]), "what is predicted is a Value; return it by"),
            (lambda model, batch: model(**batch).hidden, "there is no hidden; there are loss, logits"),
            (lambda model, batch: tessera.ops.relu(batch["no"]), "the batch has no 'no'"),
        ]:
            with self.subTest(says), self.assertRaisesRegex((tessera.Error, AttributeError, KeyError), says):
                self.trainer(loss).train()
        with self.assertRaises(ZeroDivisionError):
            self.trainer(lambda model, batch: 1 / 0).train()
        with self.assertRaisesRegex(tessera.UsageError, "weight"):
            self.trainer(own, ROWS).train()

    def test_a_loss_that_is_another_each_time(self):
        calls = []

        def changes(model, batch):
            calls.append(1)
            return scalar(model, batch) * float(len(calls))

        for devices in (1, 2):  # with one, of training and of validations
            calls.clear()
            with self.assertRaisesRegex(tessera.UsageError, r"writes .*\d\.0.* where it wrote .*\d\.0.* alone"):
                self.trainer(changes, devices=devices, steps=2, epochs=0).train()

        def other_values(model, batch):
            calls.append(1)
            loss = scalar(model, batch)
            return [loss * 1.0, loss * 2.0][len(calls) % 2]

        with self.assertRaisesRegex(tessera.UsageError, "writes 'return .* where it wrote 'return "):
            self.trainer(other_values, steps=2, epochs=0).train()

    def test_without_labels_the_model_has_no_loss(self):
        unlabelled = [{name: value for name, value in row.items() if name != "labels"} for row in PLAIN]
        with self.assertRaisesRegex(tessera.UsageError, "called without labels, so it has no loss"):
            self.trainer(own, unlabelled).train()
        with self.assertRaisesRegex(tessera.UsageError, "called without labels, so it has no loss"):
            self.trainer(lambda model, batch: model(**batch), unlabelled).train()

        def of_logits(model, batch):
            logits = model(**{name: value for name, value in batch.items() if name != "labels"}).logits
            return tessera.nn.cross_entropy(logits, batch["labels"])

        numpy.testing.assert_array_equal(self.trainer(of_logits).train().losses, self.trainer(scalar).train().losses)
        logits = self.trainer(own).predict(unlabelled[:5])  # nothing trains
        self.assertEqual(logits.shape, (5, 2))

    def test_what_outlives_its_function(self):
        kept = []

        def first_loss(model, batch):
            kept.append((model, dict(batch), scalar(model, batch)))
            return kept[0][2]

        def first_prediction(model, batch):
            return scalar(model, batch), {"one": kept[0][2]}

        for loss in (first_loss, first_prediction):
            with self.assertRaisesRegex(tessera.UsageError, "of another graph"):
                self.trainer(loss).train()
        model, batch, _ = kept[0]
        with self.assertRaisesRegex(tessera.UsageError, "called after the function"):
            model(**batch)


if __name__ == "__main__":
    unittest.main()
