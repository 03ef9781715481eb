"""What nobody should pass: exceptions that say so, and nothing else. hostile_test.py [CALLS [SEED]] tries so many."""

import os
import random
import sys
import tempfile
import threading
import unittest

import numpy

import tessera
from tessera import _call, _flags

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
FUNCTIONS = (tessera.plan, tessera.inspect, tessera.export, tessera.evaluate, tessera.verify)
FUNCTIONS += (tessera.train, tessera.predict, tessera.bench)


class Liar:
    """Says that it is a path or an array, and fails."""

    def __fspath__(self):
        return 7

    def tolist(self):
        raise RuntimeError("no list")


class Odd(str):
    def __str__(self):
        raise RuntimeError("no text")


def itself():
    out = []
    out.append(out)
    return out


def deep(levels):
    out = []
    for _ in range(levels):
        out = [out]
    return out


VALUES = (
    lambda: random.choice([-1, 0, 1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**30, 10**4000]),
    lambda: random.choice([0.5, -0.0, 1e308, float("inf"), float("nan"), 1e-320]),
    lambda: random.choice(["", "\0", "a\0b", "\ud800", "\x1b[2J", "é" * 50, "--steps", "-1", "1e9", "nan"]),
    lambda: random.choice([b"", b"\xff\xfe", bytearray(b"a"), memoryview(b"a")]),
    lambda: random.choice([True, False, None, [], [[]], [[1]], {}, {"a": 1}, {1: 2}, set(), (), [None]]),
    lambda: random.choice([object(), print, int, Liar(), Odd("a"), 1j, range(3), iter([1]), ...]),
    lambda: random.choice([numpy.zeros(0), numpy.ones((2, 2)), numpy.float16(2), numpy.array("a")]),
    lambda: random.choice([itself(), deep(100000), ["a"] * 1000, "x" * 10000, ["--help"], "/dev/null"]),
)
NAMES = ("preset", "steps", "devices", "lr", "vocab_size", "bf16", "context", "zero_stage", "config", "seed")
NAMES += ("machine", "tensor_model_parallel_size", "layers", "width", "heads", "threads", "optimizer")
NAMES += ("global_batch_size", "micro_batch_size", "init_from", "offload", "task", "family", "help")
NAMES += ("no_such_flag", "", "=", "--steps", "st\0eps", "\ud800", "digest", "output", "data", "lines")


class Hostile(unittest.TestCase):
    def setUp(self):
        random.seed(SEED)
        numpy.random.seed(SEED)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)  # for what a value that is a path makes

    def hostile_call(self):
        """True: it was refused."""
        function = random.choice(FUNCTIONS)
        given = dict(preset="gpt2-tiny", vocab_size=65, layers=1, threads=1, steps=1)
        if function is tessera.bench:
            given.update(planned=True, turns=1)
        if function is tessera.train:
            given.update(data="nothing.txt", output="run")
        paths = ()
        if function in (tessera.inspect, tessera.export, tessera.evaluate, tessera.predict):
            given, paths = {}, (random.choice(VALUES)(),)
        for name in random.sample(NAMES, random.randint(1, 3)):
            given[name] = random.choice(VALUES)()
        given["lines"] = random.choice([None, [].append])
        devices = given.get("devices")
        if isinstance(devices, int) and 2 < devices < 10:
            given["devices"] = 2  # what is tried is the refusal, not the machine
        if function is tessera.verify:
            given["steps"] = 1
        try:
            function(*paths, **given)
        except tessera.InternalError:
            raise
        except (tessera.Error, TypeError):
            return True
        return False

    def test_calls(self):
        refused = sum(self.hostile_call() for _ in range(CALLS))
        self.assertGreater(refused, CALLS * 0.6)

    def test_calls_from_several_threads(self):
        wrong = []

        def call():
            try:
                for _ in range(max(CALLS // 20, 5)):
                    self.hostile_call()
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_models(self):
        model = tessera.Model(preset="gpt2-tiny", vocab_size=65, layers=1, context=8, threads=1)
        ids = (
            lambda: numpy.random.randint(-2, 67, size=random.choice([(0,), (3,), (1, 8), (2, 9), (1, 1, 1)])),
            lambda: random.choice([[[1, 2], [3]], [[10**30]], [["a"]], numpy.ones((1, 4), "complex64")]),
            lambda: random.choice(VALUES)(),
        )
        calls = (
            lambda: model(input_ids=random.choice(ids)()),
            lambda: model(input_ids=[[1, 2]], attention_mask=random.choice(ids)()),
            lambda: model(**{random.choice(NAMES): random.choice(ids)()}),
            lambda: model.generate(random.choice(ids)(), tokens=random.choice([1, 0, -1, 10**30, "a", None])),
            lambda: model.generate([1], tokens=1, **{random.choice(NAMES): random.choice(VALUES)()}),
            lambda: model.decode(random.choice(ids)()),
            lambda: model.encode(random.choice(VALUES)()),
            lambda: model.state_dict(random.choice(VALUES)()),
            lambda: model.save_pretrained(random.choice(VALUES)(), dtype=random.choice(VALUES)()),
            lambda: tessera.Model.from_pretrained(random.choice(VALUES)()),
        )
        refused = 0
        for _ in range(CALLS // 2):
            try:
                random.choice(calls)()
            except tessera.InternalError:
                raise
            except (tessera.Error, TypeError, ValueError):
                refused += 1
        self.assertGreater(refused, CALLS // 2 * 0.5)
        self.assertEqual(model(input_ids=[[1, 2, 3]]).logits.shape, (1, 3, 65))  # still
        model.close()
        for call in (lambda: model(input_ids=[[1]]), lambda: model.generate([1]), model.state_dict):
            with self.assertRaises(tessera.UsageError):
                call()

    def test_words_that_are_no_flags(self):
        for value in [float("nan"), itself(), deep(100000), b"a", object(), Liar(), {1: object()}]:
            with self.assertRaises(tessera.UsageError):
                _flags.flags_text({"steps": value})

    def test_half_made_objects(self):
        for kind in (tessera.Run, tessera.Plan, tessera.Step, tessera.Verification, tessera.Benchmark):
            made = kind.__new__(kind)
            for show in (repr, lambda one: one._repr_html_()):
                with self.assertRaises(AttributeError):
                    show(made)
        del made
        call = _call.Call()
        with self.assertRaisesRegex(tessera.UsageError, "no function 'nothing'"):
            call.command("nothing", {})

    def test_calls_leave_nothing_behind(self):
        def once():
            tessera.plan(preset="gpt2-tiny", vocab_size=65, layers=1, threads=1, lines=None)
            with self.assertRaises(tessera.UsageError):
                tessera.plan(preset="gpt2-tinny", lines=None)

        def held():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        for _ in range(20):
            once()
        before, threads, files = held(), threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(max(CALLS // 10, 20)):
            once()
        self.assertLess(held() - before, 32 << 20)
        self.assertEqual((threading.active_count(), len(os.listdir("/proc/self/fd"))), (threads, files))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
