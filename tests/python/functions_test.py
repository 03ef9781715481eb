"""Commands as functions: values that the commands print, and what notebooks show. TESSERA is the command."""

import inspect
import json
import math
import os
import pydoc
import re
import subprocess
import tempfile
import threading
import unittest
import xml.etree.ElementTree

import tessera
from tessera import _html

COMMAND = os.environ["TESSERA"]
TINY = dict(preset="gpt2-tiny", layers=1, threads=1)


def command(*words):
    return json.loads(subprocess.run([COMMAND, *words], check=True, capture_output=True).stdout)


def shown(value):
    """What a notebook shows, as a tree: well formed, and without anything from outside."""
    text = value._repr_html_()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), text
    return xml.etree.ElementTree.fromstring(f"<div>{text}</div>")


def words_of(tree):
    return " ".join(tree.itertext())


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.data = cls.path("text & <b>.txt")
        with open(cls.data, "w") as file:
            file.writelines(f"line {i * 7919 % 1000}\n" for i in range(400))
        cls.output = cls.path("run & <i>")
        cls.run_of = tessera.train(
            data=cls.data, output=cls.output, steps=4, eval_iters=1, devices=2, lines=None, **TINY
        )

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def test_verify(self):
        mesh = dict(devices=2, tensor_model_parallel_size=2, steps=1)
        verified = tessera.verify(lines=None, **TINY, **mesh)
        flags = "--preset gpt2-tiny --layers 1 --threads 1 --devices 2 --tensor-model-parallel-size 2 --steps 1"
        self.assertEqual(verified.report, command("verify", "--json", *flags.split()))
        self.assertTrue(verified.passed)
        self.assertEqual(verified.worst, max(row["relative_error"] for row in verified.rows))
        self.assertLess(0, verified.worst)
        self.assertIn("the same numbers", str(verified))
        self.assertIn("passed", repr(verified))
        tree = shown(verified)
        self.assertEqual(len(tree.findall(".//tbody/tr")), 10)
        self.assertIn(verified.rows[0]["name"], words_of(tree))
        with self.assertRaisesRegex(tessera.NumericsError, "one device alone computes inf or nan"):
            tessera.verify(lines=None, lr=1e30, **TINY, **{**mesh, "steps": 4})

    def test_bench(self):
        lines = []
        flags = dict(switches="bf16", turns=2, warmup=1, steps=2, devices=2)
        measured = tessera.bench(lines=lines.append, **TINY, **flags)
        self.assertEqual([row["name"] for row in measured.results], ["plain", "bf16"])
        self.assertEqual(measured.turns, 2)
        self.assertEqual(measured.ratios["plain"], 1)
        self.assertTrue(all(0 < seconds < 60 for seconds in measured.step_seconds.values()))
        self.assertEqual([len(row["losses"]) for row in measured.results], [3, 3])
        self.assertEqual(len(lines), 4, lines)
        self.assertIn("plain", repr(measured))
        self.assertIn("speed / plain", str(measured))
        self.assertEqual(len(shown(measured).findall(".//tbody/tr")), 2)
        planned = tessera.bench(planned=True, turns=1, lines=None, **TINY)
        self.assertEqual(planned.step_seconds, {"plain": None})
        self.assertGreater(planned.results[0]["planned_peak_bytes"], 0)
        shown(planned), repr(planned)

    def test_bench_runs_alone(self):
        refused, begun = [], threading.Event()

        def beside(line):
            begun.set()
            for call in (tessera.bench, tessera.plan):
                try:
                    call(lines=None, **TINY)
                except tessera.UsageError as error:
                    refused.append(str(error))

        tessera.bench(lines=beside, turns=1, steps=1, warmup=0, **TINY)
        self.assertEqual(len(refused), 2, refused)
        self.assertIn("runs alone", refused[0])
        tessera.plan(lines=None, vocab_size=65, **TINY)  # again

        with self.assertRaises(KeyError):  # ends the turn at hand
            tessera.bench(lines={}.__getitem__, turns=1000, **TINY)

    def test_inspect(self):
        whole = tessera.inspect(self.output)
        self.assertEqual(whole, command("inspect", "--json", self.output))
        self.assertEqual((whole["kind"], whole["step"]), ("checkpoint", 4))
        tensors = {tensor["name"]: tensor for tensor in whole["tensors"]}
        self.assertEqual(tensors["layers.0.mlp.up.weight"]["shape"], [256, 64])
        self.assertEqual(tensors["layers.0.mlp.up.weight"]["role"], "parameter")
        self.assertEqual(json.loads(whole["texts"]["config"])["layers"], "1")
        checked = tessera.inspect(self.output, digest=True, verify=True)
        self.assertEqual(set(checked), {"intact", "digest"})
        said = subprocess.run(
            [COMMAND, "inspect", self.output, "--digest"], check=True, capture_output=True, text=True
        )
        self.assertEqual(said.stdout, checked["digest"] + "\n")
        with self.assertRaisesRegex(tessera.CheckpointError, "nothing at"):
            tessera.inspect(self.path("nothing"))
        with self.assertRaisesRegex(tessera.CheckpointError, "nothing at '--digest'"):
            tessera.inspect("--digest")

    def test_export_and_evaluate(self):
        lines = []
        exported = tessera.export(self.output, output=self.path("exported"), lines=lines.append)
        self.assertEqual((exported.family, exported.step, exported.left_out), ("gpt2", 4, []))
        self.assertIn("characters", lines[0])
        self.assertTrue(os.path.exists(os.path.join(exported, "model.safetensors")))
        folder = tessera.inspect(exported)
        self.assertEqual((folder["kind"], folder["sizes"]["width"]), ("pretrained", "64"))
        file = tessera.inspect(os.path.join(exported, "model.safetensors"))
        self.assertEqual(file["kind"], "safetensors")
        self.assertEqual(file["elements"], folder["parameters"])
        with self.assertRaisesRegex(tessera.UsageError, "dtype is 'f64'"):
            tessera.export(self.output, output=self.path("other"), dtype="f64")

        for devices in (1, 2):
            scored = tessera.evaluate(self.output, data=self.data, devices=devices)
            said = command("evaluate", self.output, "--data", self.data, "--json", "--devices", str(devices))
            self.assertEqual((scored.loss, scored.perplexity), (said["loss"], said["perplexity"]))
            self.assertEqual(scored.samples, said["samples"])
        self.assertAlmostEqual(scored.perplexity, math.exp(scored.loss), 3)
        self.assertIn("text & <b>.txt", words_of(shown(scored)))
        with self.assertRaisesRegex(tessera.UsageError, "takes one PATH, not 0"):
            tessera.evaluate(None, data=self.data)

    def test_predict(self):
        table = self.path("rows.tsv")
        with open(table, "w") as file:
            file.write("text\tlabel\n")
            file.writelines(f"{'good' if i % 2 else 'bad'} {i}\t{i % 2}\n" for i in range(40))
        tessera.train(preset="bert-tiny", task="sequence_classification", data=table, layers=1, steps=2,
                      global_batch_size=8, threads=1, output=self.path("labels"), lines=None)
        said = subprocess.run([COMMAND, "predict", self.path("labels"), "--data", table, "--threads", "1"],
                              check=True, capture_output=True, text=True).stdout
        written = self.path("predicted.tsv")
        found = tessera.predict(self.path("labels"), data=table, threads=1, output=written)
        lines = [line.split("\t") for line in said.splitlines()]
        self.assertEqual([found.columns, *found.rows], lines)
        with open(written) as file:
            self.assertEqual(file.read(), said)
        self.assertEqual(len(found), 40)
        self.assertTrue(set(found["prediction"]) <= {0, 1})
        self.assertIn("prediction", found._repr_html_())
        with self.assertRaisesRegex(tessera.UsageError, "no column 'no'.*prediction"):
            found["no"]

    def test_commands_that_print(self):
        for path, text in [("a.txt", "the cat\n"), ("b.txt", "the cat\n")]:
            with open(self.path(path), "w") as file:
                file.write(text * 3)
        self.assertIn("BLEU", tessera.score(hypotheses=self.path("a.txt"), references=self.path("b.txt")))
        tessera.prepare(self.path("a.txt"), self.path("b.txt"), output=self.path("both.txt"), lines=None)
        with open(self.path("both.txt")) as file:
            self.assertIn("the cat", file.read())
        self.assertTrue(tessera.doctor(lines=None))
        with self.assertRaisesRegex(tessera.UsageError, "hypotheses is missing"):
            tessera.score()
        with self.assertRaisesRegex(tessera.UsageError, "--help"):
            tessera.score(help=True)

    def test_a_launched_process_is_refused(self):
        os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        try:
            for call in (tessera.verify, tessera.bench):
                with self.assertRaisesRegex(tessera.UsageError, "launcher|one of several ranks"):
                    call(**TINY)
            with self.assertRaisesRegex(tessera.UsageError, "one of several ranks"):
                tessera.evaluate(self.output, data=self.data)
        finally:
            for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                del os.environ[name]

    def test_help_lists_flags(self):
        for call, name in [
            (tessera.train, "train"),
            (tessera.plan, "plan"),
            (tessera.verify, "verify"),
            (tessera.bench, "bench"),
            (tessera.inspect, "inspect"),
            (tessera.export, "export"),
            (tessera.merge_adapter, "merge-adapter"),
            (tessera.evaluate, "evaluate"),
            (tessera.predict, "predict"),
        ]:
            said = subprocess.run([COMMAND, name, "--help"], check=True, capture_output=True, text=True).stdout
            flags = set(re.findall(r"^  --([a-z0-9-]+)", said, re.MULTILINE)) - {"json"}
            parameters = inspect.signature(call).parameters
            lines = pydoc.plain(pydoc.render_doc(call)).splitlines()
            for flag in flags:
                keyword = flag.replace("-", "_")
                self.assertIsNone(parameters[keyword].default)
                listed = [line for line in lines if re.match(rf"      {keyword}[= ]", line)]
                self.assertEqual(len(listed), 1, (name, flag))
                self.assertLessEqual(len(listed[0]), 104)
            if name == "plan":
                self.assertNotIn("json", parameters)
        self.assertIn("steps=N  training steps", pydoc.plain(pydoc.render_doc(tessera.train)))

    def test_what_a_notebook_shows_of_runs_and_plans(self):
        tree = shown(self.run_of)
        self.assertIn("run & <i>", words_of(tree))
        (line,) = tree.iter("{http://www.w3.org/2000/svg}polyline")
        heights = [float(point.split(",")[1]) for point in line.get("points").split()]
        order = sorted(range(4), key=lambda i: heights[i])
        self.assertEqual(order, sorted(range(4), key=lambda i: -self.run_of.losses[i]))
        self.assertIn("dp=2", words_of(tree))
        plan = tessera.plan(vocab_size=65, lines=None, **TINY)
        self.assertEqual(len(shown(plan).findall(".//tbody/tr")), 1 + sum(n > 0 for n in plan.memory.values()))

    def test_curves_of_any_losses(self):
        for values, points in [
            ([], None),
            ([math.nan] * 3, None),
            ([1.0], 1),
            ([2.0, math.nan, math.inf, 2.0], 2),
            ([1e30, -1e30], 2),
            ([float(i % 7) for i in range(100001)], 399),
        ]:
            text = _html.chart(values, "a & b")
            if points is None:
                self.assertEqual(text, "")
                continue
            line = next(xml.etree.ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline"))
            places = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
            self.assertEqual(len(places), points)
            self.assertTrue(all(0 <= x <= 480 and 0 <= y <= 160 for x, y in places), places[:3])


if __name__ == "__main__":
    unittest.main()
