"""Processes of Python as ranks of one run. TESSERA is the command."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import tessera

COMMAND = os.environ["TESSERA"]
BEGIN = """
    import json, os, signal, sys, time
    import tessera
    flags = json.loads(sys.argv[1])
    def put(name, **what):
        rank = os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
        path = os.path.join(os.path.dirname(flags["data"]), f"{name}-{rank}.json")
        with open(path, "w") as file:
            json.dump(what, file)
"""


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.flags = dict(preset="gpt2-tiny", layers=1, eval_iters=1, threads=1)
        self.flags.update(data=self.path("text.txt"), output=self.path("run"), steps=6)
        with open(self.flags["data"], "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))

    def path(self, name):
        return os.path.join(self.folder, name)

    def launch(self, program, *, ranks=2, flags=None, backend="tcp", **more):
        """A program on so many ranks; the environment is that of this test, less what names ranks."""
        script = self.path("script.py")
        with open(script, "w") as file:
            file.write(textwrap.dedent(BEGIN) + textwrap.dedent(program))
        words = [COMMAND, "launch", "-n", str(ranks), "--backend", backend, "--", sys.executable, "-B"]
        return subprocess.Popen(
            [*words, script, json.dumps(flags or self.flags)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def told(self, name, rank):
        with open(self.path(f"{name}-{rank}.json")) as file:
            return json.load(file)

    def await_file(self, name):
        for _ in range(6000):
            if os.path.exists(self.path(name)):
                return
            time.sleep(0.02)
        self.fail(f"{name} does not come")

    def test_the_bits_of_threads(self):
        mesh = dict(tensor_model_parallel_size=2)
        want = tessera.train(lines=None, devices=2, **mesh, **{**self.flags, "output": self.path("threads")})
        done = self.launch(
            """
            seen = []
            for _ in range(2):  # the second run does not meet what the first has left
                run = tessera.train(callbacks=lambda step: seen.append(step.number), **flags)
            put("run", rank=run.rank, losses=[float(x) for x in run.losses], ending=run.ending,
                steps=run.summary["steps"], seen=seen)
            """,
            flags={**self.flags, **mesh, "overwrite": True},
        )
        out, err = done.communicate()
        self.assertEqual(done.returncode, 0, err)
        for rank in (0, 1):
            told = self.told("run", rank)
            self.assertEqual(told["losses"], [float(x) for x in want.losses])
            self.assertEqual((told["rank"], told["ending"], told["steps"]), (rank, "finished", 6))
            self.assertEqual(told["seen"], 2 * list(range(1, 7)))
        self.assertEqual(out.count("done: step 6 of 6"), 2, out)  # rank 0 alone prints

    def test_a_trainer_on_ranks(self):
        program = """
            rows = [{"input_ids": [(7 * i + k) % 50 for k in range(8)], "attention_mask": [1] * 8, "labels": i % 2}
                    for i in range(40)]
            trainer = tessera.Trainer(
                args=tessera.TrainingArguments(
                    preset="bert-tiny", task="sequence_classification", classes=2, vocab_size=50, epochs=1, threads=1,
                    global_batch_size=8, output=flags["output"], **flags["mesh"]),
                train_dataset=rows[:32], eval_dataset=rows[32:], lines=None,
                compute_loss=lambda model, batch: tessera.nn.cross_entropy(model(**batch).logits, batch["labels"]),
                compute_metrics=lambda p: {"right": float((p.predictions.argmax(-1) == p.labels).mean())})
        """
        space = {"flags": {"output": self.path("threads"), "mesh": {"devices": 2}}, "tessera": tessera}
        exec(textwrap.dedent(program), space)
        want = space["trainer"].train()
        done = self.launch(
            textwrap.dedent(program) + textwrap.dedent("""
            run = trainer.train()
            right = [line["right"] for line in run.metrics if "right" in line]
            put("run", rank=run.rank, losses=[float(x) for x in run.losses], right=right)
            """),
            flags={"data": self.flags["data"], "output": self.path("run"), "mesh": {}},
        )
        err = done.communicate()[1]
        self.assertEqual(done.returncode, 0, err)
        for rank in (0, 1):
            self.assertEqual(self.told("run", rank)["losses"], [float(x) for x in want.losses])
        right = [line["right"] for line in want.metrics if "right" in line]
        self.assertEqual([self.told("run", rank)["right"] for rank in (0, 1)], [right, []])

    def test_what_a_dataset_raises_ends_all_ranks(self):
        done = self.launch(
            """
            class Rows:
                def __len__(self): return 40
                def __getitem__(self, i):
                    if i == 17: raise KeyError("mine")
                    return {"input_ids": [i % 50] * 8, "attention_mask": [1] * 8, "labels": i % 2}
            tessera.Trainer(
                args=tessera.TrainingArguments(
                    preset="bert-tiny", task="sequence_classification", classes=2, vocab_size=50, epochs=1, threads=1,
                    global_batch_size=8, output=flags["output"]),
                train_dataset=Rows(), lines=None).train()
            """
        )
        err = done.communicate()[1]
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("KeyError: 'mine'", err)

    def test_mpirun_starts_ranks_too(self):
        want = tessera.train(lines=None, devices=2, **{**self.flags, "output": self.path("threads")})
        done = self.launch(
            """
            run = tessera.train(lines=None, **flags)
            put("run", rank=run.rank, losses=[float(x) for x in run.losses])
            """,
            backend="mpi",
        )
        err = done.communicate()[1]
        if "built without MPI" in err or "no mpirun" in err:
            self.skipTest(err)
        self.assertEqual(done.returncode, 0, err)
        for rank in (0, 1):
            losses = [float(x) for x in want.losses]
            self.assertEqual(self.told("run", rank), {"rank": rank, "losses": losses})

    def test_a_callback_of_any_rank_takes_its_time(self):
        for slow in ("0", "1"):
            done = self.launch(
                """
                def wait(step):
                    if os.environ["RANK"] == flags["seed"] and step.number == 2: time.sleep(3)
                run = tessera.train(callbacks=wait, lines=None, overwrite=True, **flags)
                put("run", ending=run.ending)
                """,
                flags={**self.flags, "distributed_timeout": 1, "seed": slow},
            )
            self.assertEqual(done.communicate()[1], "")
            self.assertEqual((done.returncode, self.told("run", 1)["ending"]), (0, "finished"))

    def test_one_rank_stops_all(self):
        done = self.launch(
            """
            def stop(step):
                if os.environ["RANK"] == "1" and step.number == 3: step.stop()
            run = tessera.train(callbacks=stop, lines=None, **flags)
            put("run", ending=run.ending, steps=run.summary["steps"])
            """,
            flags={**self.flags, "steps": 100000},
        )
        self.assertEqual(done.communicate()[1], "")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.told("run", 0), self.told("run", 1))
        self.assertEqual(self.told("run", 0)["ending"], "stopped")

    def test_ctrl_c_saves(self):
        done = self.launch(
            """
            run = tessera.train(callbacks=lambda step: put("step"), lines=None, **flags)
            put("run", ending=run.ending, steps=run.summary["steps"])
            """,
            flags={**self.flags, "steps": 100000},
        )
        self.await_file("step-1.json")
        done.send_signal(signal.SIGINT)
        self.assertEqual(done.communicate()[1], "")
        self.assertEqual(self.told("run", 0)["ending"], "stopped")
        on = tessera.train(
            lines=None, resume="auto", devices=2, **{**self.flags, "steps": self.told("run", 0)["steps"] + 1}
        )
        self.assertEqual(len(on.losses), 1)

    def test_a_killed_rank_is_named_on_the_others(self):
        done = self.launch(
            """
            def die(step):
                if os.environ["RANK"] == "1" and step.number == 3: os.kill(os.getpid(), signal.SIGKILL)
            try:
                tessera.train(callbacks=die, lines=None, **flags)
            except tessera.PeerError as error:
                put("error", words=str(error), code=error.code)
                raise
            """,
            ranks=3,
            flags={**self.flags, "steps": 100000, "global_batch_size": 12},
        )
        err = done.communicate()[1]
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, err)
        self.assertRegex(err, r"error: a rank was ended by signal 9 \(Killed\); start again\n$")
        for rank in (0, 2):
            told = self.told("error", rank)
            self.assertIn("rank 1", told["words"])
            self.assertEqual(told["code"], 7)
        self.assertIn("PeerError", err)

    def test_errors_are_those_of_all(self):
        done = self.launch(
            """
            try:
                tessera.train(lines=None, **flags, **({"lr": 1} if os.environ["RANK"] == "1" else {}))
            except tessera.Error as error:
                put("error", kind=type(error).__name__, words=str(error))
            """
        )
        self.assertEqual(done.communicate()[1], "")
        for rank in (0, 1):
            told = self.told("error", rank)
            self.assertEqual(told["kind"], "UsageError")
            self.assertIn("--lr is 0.001", told["words"])

    def test_what_is_no_program_is_refused(self):
        for name in ("tarin", "./nothing.py"):
            said = subprocess.run([COMMAND, "launch", "-n", "2", "--", name], capture_output=True, text=True)
            self.assertEqual(said.returncode, 2)
            self.assertIn(f"'{name}' does not run on ranks", said.stderr)
            self.assertIn("python3 train.py", said.stderr)


if __name__ == "__main__":
    unittest.main()
