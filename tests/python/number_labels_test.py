"""Labels that are numbers, or 1 and 0 of several, in a Trainer and in calls; and losses of them."""

import os
import tempfile
import unittest

import numpy

import tessera

IDS = [[(7 * i + 3 * k) % 50 for k in range(8)] for i in range(44)]
BERT = dict(preset="bert-tiny", vocab_size=50, layers=1, dropout=0.0, threads=1)


def rows(labels):
    return [{"input_ids": ids, "attention_mask": [1] * 8, "labels": of} for ids, of in zip(IDS, labels)]


NUMBER = [float(numpy.sin(i)) for i in range(44)]
NUMBERS = [numpy.array([i % 5 / 2, -i % 3], numpy.float32) for i in range(44)]
SETS = [[float(i % 2), float(i % 3 == 0), float(i % 5 > 2)] for i in range(44)]


def squares(logits, labels):
    return ((logits - labels) ** 2).mean()


def entropies(logits, labels):
    return (numpy.maximum(logits, 0) - logits * labels + numpy.log1p(numpy.exp(-abs(logits)))).mean()


class NumberLabels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trainer(self, name, labels, model=None, **flags):
        data = rows(labels)
        args = tessera.TrainingArguments(epochs=1, lr=1e-3, global_batch_size=8, eval_interval=4, threads=1, dropout=0,
                                         output=os.path.join(self.folder, name), **flags)
        return tessera.Trainer(model, args=args, train_dataset=data[:32], eval_dataset=data[32:], lines=None,
                               compute_metrics=lambda p: {"shape": float(p.labels.size)})

    def test_a_trainer_learns_them_as_transformers_does(self):
        for name, labels, task, loss in [("number", NUMBER, "regression", squares),
                                         ("numbers", NUMBERS, "regression", squares),
                                         ("sets", SETS, "multi_label_classification", entropies)]:
            with self.subTest(name):
                trainer = self.trainer(name, labels, task=task, preset="bert-tiny", vocab_size=50, layers=1)
                run = trainer.train()
                # 12 rows in two batches of 8: the last four are none, and do not count.
                found = trainer.evaluate()["loss"]
                with tessera.Model.from_pretrained(run.checkpoint, threads=1) as model:
                    self.assertEqual(model.config["task"], task)
                    wanted = numpy.array(labels[32:], numpy.float32).reshape(12, -1)
                    said = model(input_ids=IDS[32:], attention_mask=numpy.ones((12, 8), numpy.int32),
                                 labels=numpy.array(labels[32:], numpy.float32))
                    self.assertEqual(said.logits.shape, wanted.shape)
                    self.assertAlmostEqual(said.loss, loss(said.logits, wanted), 5)
                    self.assertAlmostEqual(found, said.loss, 5)
                    model.save_pretrained(os.path.join(self.folder, name + "-hub"))
                with tessera.Model.from_pretrained(os.path.join(self.folder, name + "-hub"), threads=1) as again:
                    self.assertEqual(again.config["task"], task)

    def test_labels_say_what_is_learned(self):
        """As transformers: of fractions one is a number, several are labels; and whole numbers are classes."""
        for name, labels, task in [("one", NUMBER, "regression"), ("several", SETS, "multi_label_classification"),
                                   ("classes", [i % 3 for i in range(44)], "sequence_classification")]:
            with self.subTest(name):
                base = os.path.join(self.folder, name + "-base")
                with tessera.Model(task="sequence_classification", classes=3, **BERT) as new:
                    new.save_pretrained(base)
                flags = {"classes": 1} if name == "one" else {}
                with tessera.Model.from_pretrained(base, threads=1, **flags) as model:
                    self.trainer(name, labels, model).train()
                    self.assertEqual(model.config["task"], task)

    def test_what_does_not_fit_is_named(self):
        with tessera.Model(task="regression", classes=2, **BERT) as model:
            with self.assertRaisesRegex(tessera.UsageError, "labels is i32.*reads f32"):
                model(input_ids=IDS[:2], labels=[1, 0])
            with self.assertRaisesRegex(tessera.UsageError, "labels is f32.2,3., and the model predicts 2 for each row"):
                model(input_ids=IDS[:2], labels=numpy.zeros((2, 3), numpy.float32))
        with tessera.Model(task="sequence_classification", classes=2, **BERT) as model:
            with self.assertRaisesRegex(tessera.UsageError, "fractions those of regression or multi_label_class"):
                model(input_ids=IDS[:2], labels=numpy.zeros(2, numpy.float32))


class Losses(unittest.TestCase):
    def loss_of(self, function, x, y):
        with tessera.compile(lambda x, y: {"loss": function(x, y)}, dict(x=x, y=y), threads=1) as computed:
            return float(computed(x=x, y=y)["loss"])

    def test_are_those_of_their_formulas(self):
        x = numpy.linspace(-3, 3, 12, dtype=numpy.float32).reshape(4, 3)
        y = numpy.cos(x)
        d = abs(x - y)
        nn = tessera.nn
        self.assertAlmostEqual(self.loss_of(nn.mse_loss, x, y), squares(x, y), 5)
        self.assertAlmostEqual(self.loss_of(nn.binary_cross_entropy_with_logits, x, y), entropies(x, y), 5)
        self.assertAlmostEqual(self.loss_of(nn.huber_loss, x, y), numpy.where(d <= 1, d * d / 2, d - 0.5).mean(), 5)
        self.assertAlmostEqual(self.loss_of(lambda a, b: nn.smooth_l1_loss(a, b, 2.0), x, y),
                               numpy.where(d <= 2, d * d / 4, d - 1).mean(), 5)
        labels = numpy.array([0, 2, -100, 1], numpy.int32)
        logs = x - numpy.log(numpy.exp(x).sum(1, keepdims=True))
        known = labels >= 0
        right = logs[numpy.arange(4), labels * known]
        smoothed = -(0.8 * right + 0.2 * logs.mean(1))[known].mean()
        self.assertAlmostEqual(self.loss_of(lambda a, b: nn.cross_entropy(a, b, label_smoothing=0.2), x, labels),
                               smoothed, 5)
        focal = (-((1 - numpy.exp(right)) ** 2) * right)[known].mean()
        self.assertAlmostEqual(
            self.loss_of(lambda a, b: nn.masked_mean(nn.focal(a, b), nn.counted_labels(b)).value(), x, labels), focal, 5)


if __name__ == "__main__":
    unittest.main()
