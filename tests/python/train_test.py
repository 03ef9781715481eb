"""tessera.train: the command's numbers, callbacks, errors, Ctrl-C. TESSERA is the command."""

import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import tessera
from tessera._call import Call

COMMAND = os.environ["TESSERA"]
TINY = dict(preset="gpt2-tiny", layers=1, eval_iters=1, threads=1)


def flags_of(keywords):
    """As one types them: the test's own way from keywords to flags."""
    return [word for name, value in keywords.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def numbers_of(lines):
    """Lines of metrics, less what no two runs have alike."""
    return [{k: v for k, v in line.items() if k not in ("tokens_per_s", "step_seconds")} for line in lines]


class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = self.path("text.txt")
        with open(self.data, "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))
        self.lines = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, output, **more):
        given = dict(TINY, data=self.data, output=self.path(output), lines=self.lines.append)
        return tessera.train(**{**given, **more})

    def metrics(self, output):
        with open(self.path(output) + "/metrics.jsonl") as file:
            return numbers_of(map(json.loads, file))

    def test_folders_of_pictures(self):
        golden = os.path.join(os.path.dirname(__file__), "..", "golden", "pictures")
        for label, names in {"cat": ["photo.png", "grey.jpg"], "dog": ["bits.png", "inks.jpg"]}.items():
            os.makedirs(self.path(f"pictures/{label}"))
            for name in names:
                shutil.copy(os.path.join(golden, name), self.path(f"pictures/{label}"))
        given = dict(family="vit", image_size=16, patch_size=8, layers=1, heads=2, width=8, threads=1, steps=4,
                     data=self.path("pictures"), held_out=0.25, global_batch_size=2)
        words = flags_of(dict(given, output=self.path("command")))
        subprocess.run([COMMAND, "train", *words], check=True, stdout=subprocess.DEVNULL)
        run = tessera.train(**given, output=self.path("run"), lines=self.lines.append)
        self.assertEqual(self.metrics("run"), self.metrics("command"))
        predicted = tessera.predict(run.output, data=self.path("pictures/cat"))
        self.assertEqual(predicted.columns[:2], ["file", "prediction"])

    def test_the_bits_of_the_command(self):
        for more in [
            {},
            dict(devices=2, tensor_model_parallel_size=2),
            dict(devices=2, zero_stage=1, bf16=True, global_batch_size=8),
        ]:
            with self.subTest(**more):
                name = f"run{len(more)}"
                words = flags_of(dict(TINY, data=self.data, output=self.path("command" + name), steps=6))
                words += flags_of({k: v for k, v in more.items() if v is not True})
                words += ["--" + k for k, v in more.items() if v is True]
                subprocess.run([COMMAND, "train", *words], check=True, stdout=subprocess.DEVNULL)
                run = self.train(name, steps=6, **more)
                want = self.metrics("command" + name)
                self.assertEqual(self.metrics(name), want)
                self.assertEqual(numbers_of(run.metrics), want)
                losses = [line["loss"] for line in want if line["kind"] == "train"]
                self.assertEqual(run.losses.dtype, numpy.float32)
                numpy.testing.assert_array_equal(run.losses, numpy.array(losses, numpy.float32))
                self.assertEqual(len(losses), 6)
                with open(run.output + "/summary.json") as file:
                    self.assertEqual(run.summary, json.load(file))
                self.assertEqual((run.ending, run.output), ("finished", self.path(name)))
                self.assertTrue(os.path.isdir(run.checkpoint), run.checkpoint)
                self.assertTrue(self.lines[-1].startswith("done: step 6 of 6"), self.lines[-1])

    def test_a_callback_sees_each_step_and_stops(self):
        seen = []

        def see(step):
            self.assertIs(threading.current_thread(), threading.main_thread())
            seen.append(step)
            if step.number == 3:
                step.stop()

        for devices in (1, 2):
            seen.clear()
            run = self.train(f"run{devices}", steps=50, devices=devices, callbacks=[see])
            self.assertEqual([step.number for step in seen], [1, 2, 3])
            self.assertEqual([numpy.float32(step.loss) for step in seen], list(run.losses))
            self.assertTrue(all(step.lr >= 0 and step.grad_norm > 0 for step in seen))
            self.assertEqual((run.ending, run.summary["steps"]), ("stopped", 3))
        on = self.train("run2", steps=5, devices=2, resume="auto")
        self.assertEqual(len(on.losses), 2)
        whole = self.train("whole", steps=5, devices=2)
        self.assertEqual(self.metrics("run2"), self.metrics("whole"))
        self.assertEqual(whole.ending, "finished")

    def test_a_callback_gives_the_rate_of_later_steps(self):
        def give(step):
            if step.number == 2:
                self.assertEqual(step.lr, lr)
                step.lr *= 0.5
                self.assertEqual(step.lr, lr / 2)

        lr = 0.0009765625
        flat = dict(lr=lr, lr_decay_style="constant", lr_warmup_steps=0)
        for name, mesh in [("one", {}), ("tp", dict(devices=2, tensor_model_parallel_size=2)),
                           ("pp", dict(devices=2, pipeline_model_parallel_size=2, layers=2, zero_stage=0))]:
            with self.subTest(mesh=name):
                given = self.train(name, steps=5, callbacks=give, **flat, **mesh)
                self.assertEqual([line["lr"] for line in given.metrics if line["kind"] == "train"], [lr] * 2 + [lr / 2] * 3)
                # A run of the first rate, resumed with the other one.
                self.train(f"{name} flags", steps=5, exit_interval=2, **flat, **mesh)
                self.train(f"{name} flags", steps=5, resume="auto", allow_changes=True, **{**flat, "lr": lr / 2}, **mesh)
                losses = [[line["loss"] for line in self.metrics(run) if line["kind"] == "train"] for run in (name, f"{name} flags")]
                self.assertEqual(*losses)

    def test_a_rate_that_a_callback_gave_is_in_checkpoints(self):
        rates = {1: 0.25, 4: 0, 5: None}

        def give(step):
            if step.number in rates:
                step.lr = rates[step.number]

        whole = self.train("whole", steps=6, callbacks=give)
        self.train("cut", steps=6, exit_interval=2, callbacks=give)
        self.train("cut", steps=6, exit_interval=1, resume="auto")  # no callback: the rate is what it was
        self.train("cut", steps=6, resume="auto", callbacks=give)
        self.assertEqual([line.get("lr") for line in self.metrics("cut")], [line.get("lr") for line in self.metrics("whole")])
        scheduled = self.train("scheduled", steps=6)
        lr = [[line["lr"] for line in run.metrics if line["kind"] == "train"] for run in (whole, scheduled)]
        self.assertEqual(lr[0][1:5], [0.25, 0.25, 0.25, 0])
        self.assertEqual((lr[0][0], lr[0][5:]), (lr[1][0], lr[1][5:]))

    def test_a_rate_that_is_none_is_an_error(self):
        for rate in (-1, -1e-9, math.nan, math.inf, 1e31, "much"):
            def give(step, rate=rate):
                step.lr = rate

            with self.subTest(rate=rate), self.assertRaisesRegex(tessera.UsageError, f"^lr is .*{re.escape(str(rate))}.*; give"):
                self.train("run", steps=4, overwrite=True, callbacks=give)

    def test_the_exception_of_a_callback_is_raised_once_the_run_has_saved(self):
        def fail(step):
            if step.number == 2:
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.train("run", steps=50, callbacks=fail)
        self.assertEqual(self.train("run", steps=3, resume="auto").summary["steps"], 3)

    def test_ctrl_c_saves_and_raises(self):
        for devices in (1, 2):
            hears = signal.getsignal(signal.SIGINT)
            lines = self.lines

            def interrupt(line, lines=lines):  # of a run without callbacks, from outside of it
                lines.append(line)
                if "step" in line:
                    os.kill(os.getpid(), signal.SIGINT)

            with self.assertRaises(KeyboardInterrupt):
                self.train(f"run{devices}", steps=100000, devices=devices, lines=interrupt)
            self.assertIs(signal.getsignal(signal.SIGINT), hears)
            done = len([m for m in self.metrics(f"run{devices}") if m["kind"] == "train"])
            run = self.train(f"run{devices}", steps=done + 1, devices=devices, resume="auto")
            self.assertEqual(len(run.losses), 1)

    def test_errors(self):
        for kind, code, words, more in [
            (tessera.UsageError, 2, "gpt2-tiny", dict(preset="gpt2-tinny")),
            (tessera.UsageError, 2, "--steps", dict(stesp=3)),
            (tessera.UsageError, 2, "--lr is", dict(lr={})),
            (tessera.UsageError, 2, "a flag is", dict(lr=object())),
            (tessera.UsageError, 2, "lr is no finite number", dict(lr=float("nan"))),
            (tessera.DataError, 3, "text.txt", dict(data=self.path("txet.txt"))),
            (tessera.CheckpointError, 4, "nothing", dict(init_from=self.path("nothing"))),
        ]:
            with self.subTest(**more):
                with self.assertRaises(kind) as raised:
                    self.train("run", **more)
                self.assertIsInstance(raised.exception, tessera.Error)
                self.assertIn(words, str(raised.exception))
                self.assertEqual(raised.exception.code, code)
                self.assertFalse(os.path.exists(self.path("run")))

    def test_hostile_values_are_errors(self):
        itself = []
        itself.append(itself)
        deep = []
        for _ in range(100000):
            deep = [deep]
        values = [-1, 0, 10**30, 1e308, float("inf"), "", "\0", "\ud800", "\x1b[2J", "x" * 100000, b"x"]
        values += [True, False, [], [[1]], {}, {"a": 1}, itself, deep, object(), print, ["--steps"], 1j]
        names = ["preset", "steps", "devices", "lr", "data", "vocab_size", "bf16", "context", "offload"]
        names += ["zero_stage", "config", "machine", "", "=", "--steps", "steps\0", "no_such_flag"]
        refused = 0
        for name in names:
            for value in values:
                if isinstance(value, str) and len(value) > 1000 and name == "data":
                    continue
                given = dict(preset="gpt2-tiny", vocab_size=65, layers=1, lines=None)
                try:
                    tessera.plan(**{**given, name: value})
                except tessera.Error as error:
                    self.assertNotIsInstance(error, tessera.InternalError, name)
                    refused += 1
        self.assertGreater(refused, len(names) * len(values) * 0.7)

    def test_a_fork_after_a_call_is_refused(self):
        tessera.plan(preset="gpt2-tiny", vocab_size=65, layers=1)
        child = os.fork()
        if child == 0:
            try:
                tessera.plan(preset="gpt2-tiny", vocab_size=65, layers=1)
            except tessera.UsageError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_what_fails_in_the_thread_of_a_call_is_raised(self):
        def fails(_run, _listener):
            raise MemoryError("of a copy")

        with self.assertRaisesRegex(MemoryError, "of a copy"):
            Call()(fails)

    def test_keywords_of_every_kind(self):
        run = self.train(
            "run",
            steps=numpy.int64(1),
            lr=numpy.float32(0.001),
            data=[self.data],
            seed=None,
            bf16=False,
            overwrite=True,
        )
        self.assertEqual(len(run.losses), 1)

    def test_nothing_is_printed_and_no_process_started(self):
        program = (
            "import sys, os, subprocess\n"
            "def no(*a, **k): raise SystemExit('a process')\n"
            "subprocess.Popen = os.posix_spawn = os.fork = os.execv = no\n"
            "import tessera\n"
            "tessera.train(lines=None, steps=1, **eval(sys.argv[1]))\n"
        )
        flags = dict(TINY, data=self.data, output=self.path("run"))
        done = subprocess.run(
            [sys.executable, "-c", program, repr(flags)], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_process_that_ends_ends_its_threads(self):
        run = self.train("run", steps=2)
        program = (
            "import sys, threading, tessera\n"
            "step, flags = threading.Event(), eval(sys.argv[1])\n"
            "callbacks = [lambda s: step.set()]\n"
            "run = lambda: tessera.train(lines=None, steps=10**6, callbacks=callbacks, **flags)\n"
            "texts = tessera.Model.from_pretrained(sys.argv[2]).generate(' ', tokens=10**6, stream=True)\n"
            "next(texts)\n"
            "for piece in tessera.Model.from_pretrained(sys.argv[2]).generate(' ', tokens=10**6, stream=True): break\n"
            "threading.Thread(target=run, daemon=True).start()\n"
            "step.wait()\n"
        )
        flags = dict(TINY, data=self.data, output=self.path("other"))
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", program, repr(dict(flags, overwrite=True)), run.output],
                capture_output=True,
                text=True,
                timeout=100,
            )
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertGreater(tessera.inspect(self.path("other"))["step"], 0)

    def test_a_rank_that_does_not_come_is_named(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        try:
            with self.assertRaisesRegex(tessera.PeerError, "rank 1 has not come"):
                self.train("run", steps=1, distributed_timeout=1)
        finally:
            for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                del os.environ[name]

    def test_plans(self):
        flags = dict(preset="gpt2-tiny", vocab_size=65, devices=2, zero_stage=1)
        plan = tessera.plan(**flags)
        shown = subprocess.run(
            [COMMAND, "plan", *flags_of(flags), "--json"], check=True, capture_output=True, text=True
        )
        want = json.loads(shown.stdout)
        for passing in ("compile_seconds", "passes", "outside_arena_bytes"):
            del want[passing], plan.report[passing]
        self.assertEqual(plan.report, want)
        self.assertEqual(plan.memory, want["memory"])
        self.assertIn("parameters", str(plan))
        self.assertIsNone(plan.flags)
        found = tessera.plan(auto=True, lines=self.lines.append, **flags)
        self.assertEqual(found.flags[:2], ["--preset", "gpt2-tiny"])
        self.assertIn("--zero-stage", found.flags)
        with self.assertRaisesRegex(tessera.UsageError, "leave it to the command"):
            tessera.plan(search_mode="dynamic_programming", **flags)

    def test_the_version(self):
        shown = subprocess.run([COMMAND, "version"], check=True, capture_output=True, text=True)
        self.assertEqual(shown.stdout.split()[-1], tessera.__version__)

    def test_two_runs_at_once(self):
        runs = {}
        threads = [
            threading.Thread(target=lambda i=i: runs.update({i: self.train(f"run{i}", steps=4)}))
            for i in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numpy.testing.assert_array_equal(runs[0].losses, runs[1].losses)


if __name__ == "__main__":
    unittest.main()
