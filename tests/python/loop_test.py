"""tessera.Loop: steps and predictions when a program asks for them."""

import concurrent.futures
import os
import tempfile
import threading
import unittest

import numpy

import tessera


class Dataset:
    """Rows whose reading calls `hears`."""

    def __init__(self, hears=None, **more):
        self.hears, self.more = hears, more

    def __len__(self):
        return 16

    def __getitem__(self, i):
        if self.hears:
            self.hears()
        row = [(7 * i + k) % 50 for k in range(8)]
        return {"input_ids": row, "attention_mask": [1] * 8, "labels": i % 2, **self.more}


class Loops(unittest.TestCase):
    def trainer(self, train, **more):
        """Of keywords, a Trainer."""
        flags = dict(preset="bert-tiny", task="sequence_classification", classes=2, vocab_size=50, layers=1, lr=1e-3,
                     global_batch_size=8, threads=1, dropout=0, lr_warmup_steps=0)
        args = tessera.TrainingArguments(**{**flags, **more})
        return lambda **how: tessera.Trainer(args=args, train_dataset=train, shuffle=False, **how)

    def loop(self, train=None, lines=None, **more):
        train = train or Dataset()
        return tessera.Loop(self.trainer(train, **more)(eval_dataset=Dataset(**train.more), lines=lines))

    def test_steps_are_those_of_a_run(self):
        with self.loop() as loop, tempfile.TemporaryDirectory() as folder:
            self.assertEqual((loop.batch, loop.batches(1)), (8, [0, 8]))
            losses = [loop.step(batch)["loss"] for batch in loop.batches(1)]
            loss, predictions = loop.predict()
            self.assertEqual(predictions["logits"].shape, (16, 2))
            loop.save_pretrained(os.fsencode(folder))
            with tessera.Model.from_pretrained(folder, task="sequence_classification", threads=1) as model:
                rows = [Dataset()[i]["input_ids"] for i in range(16)]
                numpy.testing.assert_allclose(model(input_ids=rows).logits, predictions["logits"], atol=1e-5)
            run = self.trainer(Dataset(), steps=2, output=os.path.join(folder, "run"))(lines=None).train()
        numpy.testing.assert_array_equal(numpy.float32(losses), run.losses)

    def test_the_rate_of_later_steps(self):
        with self.loop(lr_decay_style="constant") as loop:
            rates = [loop.step(0)["lr"]]
            for rate in (0.5, 0, None):
                loop.set_lr(rate)
                rates.append(loop.step(0)["lr"])
            for bad in (-1, 1e31, "much"):
                self.assertRaisesRegex(tessera.UsageError, "lr is .*; give", loop.set_lr, bad)
        numpy.testing.assert_allclose(rates, [1e-3, 0.5, 0, 1e-3], rtol=1e-6)

    def test_a_loss_that_is_none(self):
        with self.loop(lr=1e30) as loop:
            loop.step(0)
            step, (loss, _) = loop.step(0), loop.predict()
        self.assertTrue(step["skipped"])
        self.assertTrue(numpy.isnan([step["loss"], step["grad_norm"], loss]).all())

    def test_threads_take_turns(self):
        with self.loop() as loop, concurrent.futures.ThreadPoolExecutor(4) as threads:
            steps = list(threads.map(lambda _: loop.step(0)["step"], range(12)))
        self.assertEqual(sorted(steps), list(range(1, 13)))

    def test_a_function_of_the_loop_cannot_call_it(self):
        said = []

        def calls():
            if opened:
                with self.assertRaisesRegex(tessera.UsageError, "by a function that it runs") as caught:
                    loop.step(0)
                said.append(caught.exception)

        opened = False
        with self.loop(Dataset(calls)) as loop:
            opened = True
            self.assertEqual(loop.step(0)["step"], 1)
        self.assertEqual(len(said), 8)

    def test_lines_come_in_the_thread_that_calls(self):
        heard = []
        self.loop(Dataset(more=3), lines=lambda text: heard.append((threading.get_ident(), text))).close()
        self.assertEqual([thread for thread, _ in heard], [threading.get_ident()])
        self.assertIn("does not read more", heard[0][1])

        def fails(text):
            raise KeyError("of lines")

        with self.assertRaisesRegex(KeyError, "of lines"):
            self.loop(Dataset(more=3), lines=fails)

    def test_wrong_calls(self):
        loop = self.loop()
        with self.assertRaisesRegex(tessera.UsageError, "zero byte"):
            loop.save_pretrained("a\0b")
        with self.assertRaisesRegex(tessera.UsageError, "no whole number"):
            loop.step("a")
        loop.close()
        with self.assertRaisesRegex(tessera.UsageError, "closed"):
            loop.step(0)
        loop.close()


if __name__ == "__main__":
    unittest.main()
