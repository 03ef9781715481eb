"""tessera.Model: calls, texts, parameters, folders, hostile arguments, memory. TESSERA is the command."""

import gc
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy

import tessera

COMMAND = os.environ["TESSERA"]


class OfTorch:
    """As a tensor of torch is asked."""

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array


class OfDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.run_folder = os.path.join(folder.name, "run")
        cls.hub_folder = os.path.join(folder.name, "hub")
        data = os.path.join(folder.name, "text.txt")
        with open(data, "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))
        tessera.train(
            preset="gpt2-tiny", layers=1, data=data, output=cls.run_folder, steps=30, threads=1, lines=None
        )
        cls.model = tessera.Model.from_pretrained(cls.run_folder, threads=1)
        cls.model.save_pretrained(cls.hub_folder)
        cls.vocabulary = cls.model.config["vocab_size"]
        cls.ids = numpy.random.default_rng(1).integers(0, cls.vocabulary, (3, 20))

    def logits(self, model=None, **more):
        return (model or self.model)(input_ids=self.ids, **more).logits

    def refused(self, act, *words):
        with self.assertRaises(tessera.Error) as caught:
            act()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_logits_and_loss(self):
        labels = self.ids.copy()
        labels[0, :5] = -100
        out = self.model(input_ids=self.ids, labels=labels)
        self.assertEqual(out.logits.shape, (3, 20, self.vocabulary))
        self.assertEqual(out.logits.dtype, numpy.float32)
        wide = out.logits[:, :-1].astype(numpy.float64)
        sums = numpy.log(numpy.exp(wide).sum(-1))
        after = labels[:, 1:]
        counts = after != -100
        losses = sums - numpy.take_along_axis(wide, numpy.maximum(after, 0)[..., None], -1)[..., 0]
        self.assertAlmostEqual(out.loss, losses[counts].mean(), places=5)
        self.assertIs(out.loss, out["loss"])
        self.assertIsNone(self.model(input_ids=self.ids).loss)
        with self.assertRaises(AttributeError):
            out.hidden_states

    def test_what_arrays_may_be(self):
        wanted = self.logits()
        folded = numpy.stack([self.ids, self.ids], 1)[:, 0]  # with gaps
        for given in [
            self.ids.tolist(),
            self.ids.astype(numpy.int32),
            self.ids.astype(numpy.uint8),
            numpy.asfortranarray(self.ids),
            folded,
            OfTorch(self.ids),
            OfDlpack(self.ids),
        ]:
            self.assertTrue(numpy.array_equal(self.model(input_ids=given).logits, wanted), type(given))
        masked = numpy.ma.MaskedArray(self.ids, self.ids == self.ids[0, 0])
        self.refused(lambda: self.model(input_ids=masked), "input_ids is a masked array")
        some = self.model(input_ids=self.ids[:, ::2]).logits
        self.assertTrue(numpy.array_equal(some, self.model(input_ids=self.ids[:, ::2].copy()).logits))

    def test_neither_batch_nor_mesh_counts(self):
        wanted = self.logits()
        for mesh in [dict(devices=2), dict(devices=2, tensor_model_parallel_size=2)]:
            with tessera.Model.from_pretrained(self.run_folder, threads=1, **mesh) as model:
                numpy.testing.assert_allclose(self.logits(model), wanted, atol=1e-5)
        for row in range(3):
            alone = self.model(input_ids=self.ids[row : row + 1]).logits
            numpy.testing.assert_allclose(alone[0], wanted[row], atol=1e-5)
        shorter = self.model(input_ids=self.ids[:, :7]).logits  # a causal model does not look ahead
        numpy.testing.assert_allclose(shorter, wanted[:, :7], atol=1e-5)
        mask = numpy.ones_like(self.ids)
        numpy.testing.assert_allclose(self.logits(attention_mask=mask), wanted, atol=1e-5)

    def test_losses_of_answers_are_over_all_places(self):
        model = tessera.Model(preset="bert-tiny", task="question_answering", vocab_size=50, threads=1)
        for length in [8, 9, 17]:
            ids = numpy.arange(2 * length).reshape(2, length) % 50
            out = model(input_ids=ids, start_positions=[0, 5], end_positions=[3, 6])
            wanted = 0
            for logits, at in [(out.start_logits, [0, 5]), (out.end_logits, [3, 6])]:
                wide = logits.astype(numpy.float64)
                self.assertEqual(wide.shape, (2, length))
                wanted += (numpy.log(numpy.exp(wide).sum(1)) - wide[[0, 1], at]).mean() / 2
            self.assertAlmostEqual(out.loss, wanted, places=5, msg=length)

    def test_choices_are_rows_of_a_row(self):
        model = tessera.Model(preset="bert-tiny", task="multiple_choice", vocab_size=50, threads=1)
        ids = numpy.arange(2 * 3 * 9).reshape(2, 3, 9) % 50
        out = model(input_ids=ids, labels=[2, 0])
        self.assertEqual(out.logits.shape, (2, 3))
        wide = out.logits.astype(numpy.float64)
        self.assertAlmostEqual(out.loss, (numpy.log(numpy.exp(wide).sum(1)) - wide[[0, 1], [2, 0]]).mean(), places=5)
        mask = numpy.ones_like(ids)
        mask[1, 2] = 0  # no choice
        fewer = model(input_ids=ids, attention_mask=mask).logits
        numpy.testing.assert_allclose(fewer[:, :2], wide[:, :2], atol=1e-5)
        self.assertLess(fewer[1, 2], -1e4)
        with self.assertRaisesRegex(tessera.UsageError, "choices, length"):
            model(input_ids=ids[0])
        with self.assertRaisesRegex(tessera.DataError, "labels has 3 in row 1; it must be from 0 to 2"):
            model(input_ids=ids, labels=[0, 3])

    def test_parameters_and_folders(self):
        ours = self.model.state_dict()
        self.assertTrue(all(value.dtype == numpy.float32 for value in ours.values()))
        theirs = self.model.state_dict("transformers")
        self.assertIn("transformer.wte.weight", theirs)
        self.assertEqual(sum(v.size for v in ours.values()), sum(v.size for v in theirs.values()))
        of_folder = tessera.Model.from_pretrained(self.hub_folder, threads=1)
        again = of_folder.state_dict()
        self.assertEqual(sorted(again), sorted(theirs))
        for name, value in theirs.items():
            self.assertTrue(numpy.array_equal(again[name], value), name)
        self.assertTrue(numpy.array_equal(self.logits(of_folder), self.logits()))
        self.refused(lambda: self.model.save_pretrained(self.hub_folder), "exists")
        self.refused(lambda: self.model.state_dict("hf"), "'hf'", "transformers")
        self.assertEqual(self.model.save_pretrained(self.hub_folder, dtype="bf16", overwrite=True), [])
        self.model.save_pretrained(self.hub_folder, overwrite=True)

    def test_texts_are_those_of_the_command(self):
        flags = dict(tokens=30, seed=7, temperature=0.9, top_k=20)
        words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        said = subprocess.run(
            [COMMAND, "sample", self.run_folder, "--prompt", "line 1", "--threads", "1", *words],
            check=True, capture_output=True, text=True,
        ).stdout
        written = self.model.generate("line 1", **flags)
        self.assertEqual(said, f"line 1{written}\n")
        self.assertEqual("".join(self.model.generate("line 1", stream=True, **flags)), written)
        several = self.model.generate(["line 1", "line"], samples=2, **flags)
        self.assertEqual(len(several), 4)
        self.assertEqual(several[0], written)
        ids = self.model.encode("line 1")
        self.assertEqual(self.model.decode(ids), "line 1")
        greedy = self.model.generate(ids, tokens=10, temperature=0)
        self.assertEqual(self.model.decode(greedy), self.model.generate("line 1", tokens=10, temperature=0))
        # The likeliest token, one after the other.
        far = list(ids)
        for _ in range(10):
            far.append(int(self.model(input_ids=[far]).logits[0, -1].argmax()))
        self.assertEqual(far[len(ids) :], greedy)
        until = self.model.generate("line", stop="\n", tokens=100)
        self.assertNotIn("\n", until)

    def test_what_a_tokenizer_returns_is_a_prompt(self):
        rows = [self.ids[0, :4].tolist(), self.ids[1, :7].tolist()]
        wanted = self.model.generate(rows, tokens=5, temperature=0)
        for before in [True, False]:
            filled = [[0] * 3 + rows[0] if before else rows[0] + [0] * 3, rows[1]]
            mask = [[0] * 3 + [1] * 4 if before else [1] * 4 + [0] * 3, [1] * 7]
            given = dict(input_ids=numpy.array(filled), attention_mask=numpy.array(mask))
            self.assertEqual(self.model.generate(**given, tokens=5, temperature=0), wanted)
        alone = self.model.generate(filled[0], attention_mask=mask[0], tokens=5, temperature=0)
        self.assertEqual(alone, wanted[0])
        self.refused(lambda: self.model.generate("a", attention_mask=[1]), "attention_mask is for ids")
        self.refused(lambda: self.model.generate(rows, attention_mask=mask), "attention_mask has 7", "have 4")

    def test_a_stream_that_nobody_reads_ends(self):
        begin = time.monotonic()
        stream = self.model.generate("line", tokens=1_000_000, stream=True)
        next(stream)
        del stream
        gc.collect()
        other = self.model.generate("line", tokens=1_000_000, stream=True)
        next(other)
        other.close()
        self.assertEqual(list(other), [])
        self.assertEqual(self.logits().shape[0], 3)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_stream_may_be_collected_in_the_thread_that_writes_it(self):
        loads, collected = json.loads, threading.Event()

        def collects(text):
            if dropped:
                gc.collect()
                collected.set()
            return loads(text)

        dropped = False
        self.addCleanup(gc.enable)
        gc.disable()
        with unittest.mock.patch.object(json, "loads", collects):
            held = [self.model.generate("line", tokens=1_000_000, stream=True)]
            next(held[0])
            held.append(held)
            del held
            dropped = True
            self.assertTrue(collected.wait(60))
            call = threading.Thread(target=self.logits, daemon=True)
            call.start()
            call.join(60)
        self.assertFalse(call.is_alive())

    def test_ctrl_c_ends_a_text(self):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.model.generate("line", tokens=1_000_000)
        timer.join()
        self.assertEqual(self.logits().shape[0], 3)

    def test_new_models(self):
        def new(**more):
            given = dict(preset="gpt2-tiny", vocab_size=self.vocabulary, threads=1)
            return tessera.Model(**{**given, **more})

        self.assertTrue(numpy.array_equal(self.logits(new()), self.logits(new())))
        self.assertFalse(numpy.array_equal(self.logits(new(seed=2)), self.logits(new(seed=3))))
        self.assertIsNone(new().source)
        self.assertEqual(len(new().generate([1, 2], tokens=4)), 4)
        self.refused(lambda: tessera.Model(preset="gpt2-tiny"), "vocab-size")
        self.refused(lambda: tessera.Model(preset="gpt2-tinny"), "gpt2-tiny")
        self.refused(lambda: tessera.Model(preset="gpt2-tiny", steps=3), "steps")
        self.refused(lambda: tessera.Model.from_pretrained("nowhere"), "nowhere")

    def test_closed_models_and_threads(self):
        model = tessera.Model.from_pretrained(self.run_folder, threads=1)
        wanted = self.logits()
        failures = []

        def call():
            try:
                for _ in range(10):
                    if not numpy.array_equal(self.logits(model), wanted):
                        failures.append("other numbers")
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        model.close()
        for thread in threads:
            thread.join()
        self.assertTrue(all(isinstance(one, tessera.UsageError) for one in failures), failures)
        self.assertIn("closed", repr(model))
        for act in [
            lambda: self.logits(model),
            lambda: model.state_dict(),
            lambda: model.generate("a"),
            lambda: model.encode("a"),
            lambda: list(model.generate("a", stream=True)),
            lambda: model.save_pretrained("a"),
        ]:
            self.refused(act, "closed")
        model.close()

    def test_a_child_of_a_fork_leaves_models_to_its_parent(self):
        model = tessera.Model.from_pretrained(self.run_folder, threads=1)
        wanted = self.logits(model)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                model.close()
                del model
            finally:
                os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(numpy.array_equal(self.logits(model), wanted))

    def test_hostile_arguments(self):
        draws = random.Random(1)
        ids = self.ids
        values = [
            None, 1, -1, 2**70, 1.5, float("nan"), "", "a", b"a", [], [[]], [[[1]]], [[1], [2, 3]], {}, set(),
            object(), ids.astype("f8"), ids.astype("f4"), ids.astype("f2"), ids.astype("c8"), ids.astype("O"),
            ids > 3, ids.astype("u8"), -ids, ids + 10**9, ids + 10**12, ids[:0], ids[:, :0], ids[0], ids[None],
            numpy.zeros((1,) * 20, "i4"), numpy.array(3), numpy.array("a"), numpy.array([["a"]]), ids.view("M8[s]"),
            numpy.zeros((2, 100_000), "i4"), OfTorch(None), OfDlpack(3), range(3), memoryview(b"abc"), iter([1]),
        ]
        names = ["input_ids", "ids", "attention_mask", "labels", "token_type_ids", "pixel_values", "", "\0", "é"]
        refused = 0
        for _ in range(2000):
            given = {draws.choice(names): draws.choice(values) for _ in range(draws.randint(0, 3))}
            if draws.random() < 0.5:
                given["input_ids"] = ids
            try:
                self.model(**given)
            except tessera.Error:
                refused += 1
        self.assertGreater(refused, 1000)
        for prompt in values:
            for flags in [{}, dict(tokens=-1), dict(temperature="a"), dict(stop=""), dict(beams=10**9), dict(no=1)]:
                try:
                    self.model.generate(prompt, **{"tokens": 1, **flags})
                except (tessera.Error, TypeError):
                    pass
        self.assertTrue(numpy.isfinite(self.logits()).all())

    def test_dropped_models_leave_nothing(self):
        def drop(count):
            for _ in range(count):
                tessera.Model.from_pretrained(self.hub_folder, threads=1)(input_ids=self.ids)
            gc.collect()
            return resident()

        before = drop(20)
        after = drop(60)
        # A model and what it compiles are some 10 MB.
        self.assertLess(after - before, 60 << 20)
        self.assertLess(threading.active_count(), 5)


if __name__ == "__main__":
    unittest.main()
