"""tessera.compile: graphs by Python functions, numbers, meshes, arrays, errors, threads, memory."""

import ctypes
import gc
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy

import tessera
from tessera import nn, ops
from tessera._library import library

BATCH = {"x": (8, 4), "labels": ((8,), "i32")}


def net(x, labels):
    h = ops.relu(nn.linear(x, "up", 16))
    return nn.cross_entropy(nn.linear(h, "down", 3), labels)


def arrays(step=0):
    random = numpy.random.default_rng(step)
    x = random.uniform(-1, 1, (8, 4)).astype(numpy.float32)
    return dict(x=x, labels=(x[:, 0] > 0).astype(numpy.int32) + (x[:, 1] > 0).astype(numpy.int32))


def compiled(function=net, batch=BATCH, optimizer=tessera.AdamW(lr=0.05), **how):
    return tessera.compile(function, batch, optimizer=optimizer, **{"threads": 1, **how})


def computed(function, batch=None, **given):
    """What a function returns of these arrays, on one device."""
    with compiled(function, batch or given, optimizer=None) as step:
        return step(**given)


class Table(unittest.TestCase):
    def test_python_has_each_function_with_its_arguments_and_defaults(self):
        calls = json.loads(library.tessera_graph_calls())
        rooms = {"ops": ops, "layers": nn}
        for call in calls:
            with self.subTest(call["name"]):
                if call["kind"] == "structure":
                    continue
                function = getattr(rooms[call["kind"]], call["name"])
                self.assertTrue(inspect.getdoc(function))
                given = inspect.signature(function).parameters.values()
                graph = tessera._graph.Graph()
                plain = [
                    {"name": p.name}
                    if p.default is p.empty
                    else {"name": p.name, "default": graph._plain(p.default, p.name)}
                    for p in given
                ]
                wanted = [dict(each) for each in call["arguments"]]
                for ours, theirs in zip(plain, wanted):
                    if theirs.get("default") == {}:  # a struct, with defaults of its own
                        self.assertIsInstance(ours.pop("default"), dict)
                        theirs.pop("default")
                self.assertEqual(plain, wanted)
        public = [n for n, f in vars(ops).items() if inspect.isfunction(f) and f.__module__ == ops.__name__]
        self.assertEqual(set(public), {c["name"] for c in calls if c["kind"] == "ops"})

    def test_structs_have_the_members_and_defaults_of_cpp(self):
        # Two graphs, of which one says all that the other leaves to C++.
        def with_layer(layer):
            def encoder(x):
                with tessera.scope("a"):
                    return nn.encoder_layer(x, layer)

            return tessera._compile._Traced(encoder, {"x": (2, 4, 16)}).graph

        full = nn.TransformerLayer(rotary=True, rope=nn.Rotary(scaling=nn.RotaryScaling()))
        self.assertEqual(lines_of(with_layer(full)), lines_of(with_layer(dict(rotary=True))))

    def test_rope_without_rotary_is_refused(self):
        with self.assertRaisesRegex(tessera.UsageError, "rope is .* give rotary=True"):
            nn.TransformerLayer(rope=nn.Rotary(base=100.0))


def lines_of(graph):
    """Without places in the source."""
    return [line.split(" at ")[0] for line in str(graph).splitlines()]


class Values(unittest.TestCase):
    def test_operators_are_those_of_numpy(self):
        x = numpy.arange(1, 13, dtype=numpy.float32).reshape(3, 4)
        y = (x % 5 + 1).astype(numpy.float32)
        cases = {
            "arithmetic": lambda a, b: (a + b) * 2 - a / b + 1 / b - (3 - a),
            "power": lambda a, b: a**3 + b**2,
            "compare": lambda a, b: ((a < b) | (a >= 7)) & ~(a == b),
            "other compare": lambda a, b: (a > b) | (a <= 2) | (a != b),
            "numpy's numbers": lambda a, b: numpy.float32(2) * a + b * numpy.int64(3),
            "rows": lambda a, b: a[1:] * b[:2],
            "steps": lambda a, b: a[::2, 1::2] + b[-3::2, -4:-1:2],
            "numbers": lambda a, b: a[1] + b[-1, 2],
            "dots": lambda a, b: a[..., 0] + b[None, :, 3],
            "new": lambda a, b: a[:, None, 1:3] + b[None, ..., :2],
        }
        for name, case in cases.items():
            with self.subTest(name):
                got = computed(lambda a, b: {"out": case(a, b)}, a=x, b=y)["out"]
                want = case(x, y)
                if name == "numpy's numbers":  # whose dtype depends on its version
                    want = want.astype(numpy.float32)
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                numpy.testing.assert_allclose(got, want, rtol=1e-6)
        product = computed(lambda a, b: a @ ops.transpose(b, [1, 0]), a=x, b=y)
        numpy.testing.assert_array_equal(product, x @ y.T)

    def test_ops_are_those_of_numpy(self):
        x = numpy.linspace(-2, 2, 24, dtype=numpy.float32).reshape(2, 3, 4)
        cases = {
            "sum": (ops.sum, x.sum()),
            "max": (lambda x: ops.max(x, [1]), x.max(1)),
            "mean": (lambda x: ops.mean(x, [-1], keep=True), x.mean(-1, keepdims=True)),
            "where": (lambda x: ops.select(x > 0, x, -1.0), numpy.where(x > 0, x, numpy.float32(-1))),
            "minus infinity": (lambda x: ops.select(x > 0, x, float("-inf")), numpy.where(x > 0, x, -numpy.inf)),
            "reshape": (lambda x: ops.reshape(x, (4, -1)), x.reshape(4, -1)),
            "concat": (lambda x: ops.concat([x, x], -1), numpy.concatenate([x, x], -1)),
            "arg_max": (lambda x: ops.arg_max(x), x.argmax(-1)),
            "top_k": (lambda x: ops.top_k(x, 2).values, numpy.sort(x, -1)[..., :-3:-1]),
            "einsum": (lambda x: ops.einsum("b s d, b t d -> b s t", x, x), numpy.einsum("bsd,btd->bst", x, x)),
            "softmax": (lambda x: ops.softmax(x, 1), numpy.exp(x) / numpy.exp(x).sum(1, keepdims=True)),
            "iota": (lambda x: ops.iota((2, 3), 1) + ops.cast(ops.sum(x) * 0, "i32"), numpy.array([[0, 1, 2]] * 2)),
            "bf16": (lambda x: ops.cast(ops.cast(x, "bf16"), "f32"), None),
        }
        for name, (function, want) in cases.items():
            with self.subTest(name):
                got = computed(function, x=x)
                if want is not None:
                    numpy.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
        # What numpy has no dtype for comes as f32, with the same numbers.
        out = computed(lambda x: {"a": ops.cast(x, "bf16"), "b": ops.cast(ops.cast(x, "bf16"), "f32")}, x=x)
        numpy.testing.assert_array_equal(out["a"], out["b"])

    def test_methods_of_tensors_are_functions(self):
        for name, says in [("mean", "tessera.ops.mean$"), ("view", "functions of tessera.ops"), ("List", "functions")]:
            with self.subTest(name), self.assertRaisesRegex(AttributeError, says):
                computed(lambda x: getattr(x, name)(), {"x": (2, 2)})

    def test_values_have_no_numbers(self):
        for name, use in {
            "if": lambda x: 1 if x > 0 else 2,
            "for": lambda x: [row for row in x],
            "float": lambda x: float(x),
            "index": lambda x: [1, 2][x],
            "numpy": lambda x: numpy.asarray(x) + 1,
            "len": lambda x: len(x),
        }.items():
            with self.subTest(name), self.assertRaisesRegex(tessera.UsageError, "no numbers"):
                computed(use, {"x": (2, 2)})

    def test_wrong_uses_are_errors_that_name_the_line(self):
        other = []

        def keep(x):
            other.append(x)
            return x

        computed(keep, x=numpy.zeros(3, numpy.float32))
        for use, says in [
            (lambda x: x + other[0], "another graph"),
            (lambda x: x + numpy.zeros(3, numpy.float32), "an input of the batch"),
            (lambda x: x @ x, r"\[2,3\][\s\S]*python/builder_test.py:\d+"),
            (lambda x: x[0, 0, 0], "3 indices"),
            (lambda x: x[2], "index 2 of dim 0"),
            (lambda x: x[::-1], "step -1"),
            (lambda x: x[..., ...], "several"),
            (lambda x: x[x], "gather"),
            (lambda x: x[True], "numbers, slices"),
            (lambda x: x["a":], "whole numbers"),
            (lambda x: x**-1, "power"),
            (lambda x: ops.sum(x, [2]), "dims from -2 to 1"),
            (lambda x: ops.cast(x, "f31"), "no dtype"),
            (lambda x: ops.reshape(x, [4]), r"\[2,3\]"),
            (lambda x: ops.broadcast_to(x, [1 << 40, 1 << 40, 2, 3]), "2\\^62"),
            (lambda x: ops.add(x, object()), "is a object"),
            (lambda x: nn.linear(x, "up", -4), "give at least 1"),
            (lambda x: nn.linear(x, "", 4), "give a name"),
            (lambda x: [nn.linear(x, "up", 4), nn.linear(x, "up", 4)][0], "declared twice"),
            (lambda x: tessera.parameter("w", (-3,)), "-3"),
            (lambda x: tessera.parameter("w", range(1 << 40)), "give fewer"),
            (lambda x: 5, "return a value"),
            (lambda x: None, "return a value"),
            (lambda x: {"a b": x}, "give a name"),
            (lambda y: y, "y"),
        ]:
            with self.subTest(says), self.assertRaisesRegex((tessera.UsageError, TypeError), says):
                computed(use, {"x": (2, 3)})
        with self.assertRaisesRegex(tessera.UsageError, "inside of a function"):
            ops.relu(other[0])

    def test_scopes(self):
        def shared(x):
            with tessera.scope("a"):
                x = nn.linear(x, "up", 4)
            with tessera.scope("b", share_states="a", recompute=True):
                x = nn.linear(x, "up", 4)
            with tessera.scope("c"), tessera.scope("d"):
                return ops.sum(x * tessera.parameter("w", (4,), nn.ones_init()))

        with compiled(shared, {"x": (8, 4)}) as step:
            self.assertEqual(sorted(step.state_dict()), ["a.up.bias", "a.up.weight", "c.d.w"])

        def fails(x):
            with tessera.scope("a"):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            computed(fails, {"x": (2, 2)})


class Steps(unittest.TestCase):
    def test_a_step_is_the_optimizer_by_hand(self):
        def line(x, y):
            error = nn.linear(x, "l", 1, init=nn.constant_init(0.5)) - y
            return ops.mean(error * error)

        x = numpy.array([[1], [2], [3], [4]], numpy.float32)
        weight, bias = 0.5, 0.0
        with compiled(line, {"x": x, "y": x}, tessera.Sgd(lr=0.1, momentum=0, weight_decay=0, clip=0)) as step:
            for _ in range(3):
                error = weight * x + bias - 2 * x
                loss = step(x=x, y=2 * x)
                self.assertIsInstance(loss, float)
                self.assertAlmostEqual(loss, float((error**2).mean()), places=5)
                weight -= 0.1 * float((2 * error * x).mean())
                bias -= 0.1 * float((2 * error).mean())
            state = step.state_dict()
            numpy.testing.assert_allclose(state["l.weight"], [[weight]], rtol=1e-5)
            numpy.testing.assert_allclose(state["l.bias"], [bias], rtol=1e-5)
            self.assertEqual(set(step.metrics), {"loss", "lr", "grad_norm", "ok"})
            self.assertTrue(step.metrics["ok"])
            self.assertFalse(step(x=x * numpy.inf, y=x) == 0)
            self.assertFalse(step.metrics["ok"])  # nothing was changed
            numpy.testing.assert_array_equal(step.state_dict()["l.weight"], state["l.weight"])

    def test_every_mesh_has_the_numbers_of_one_device(self):
        one = self.losses()
        self.assertLess(one[-1], 0.7 * one[0])
        for how in [
            dict(devices=2),
            dict(devices=4, zero_stage=1),
            dict(devices=2, zero_stage=3),
            dict(micro_batch_size=2),
            dict(mesh={"mb": 2, "dp": 2}),
            dict(mesh={"dp": 2, "tp": 2}, pins={"up.weight": "[tp,-]", "down.weight": "[-,tp]"}),
            dict(mesh={"rows": 2}, batch_axes=[["rows"]]),
            dict(devices=4, shard={"up.matmul": ((2, 1), (2, 1))}),
            dict(devices=4, parallel_mode="data_parallel", gradients_mean=True),
            dict(devices=2, parallel_mode="auto_parallel", search_mode="dynamic_programming"),
            dict(parallel_config=tessera.TransformerOpParallelConfig(data_parallel=2, micro_batch_num=2)),
        ]:
            with self.subTest(**how):
                numpy.testing.assert_allclose(self.losses(**how), one, rtol=1e-5)
        numpy.testing.assert_allclose(self.losses(bf16=True, devices=2), one, rtol=0.05)
        numpy.testing.assert_allclose(self.losses(fp16=True, devices=2), one, rtol=0.01)
        self.assertNotEqual(self.losses(seed=2)[0], one[0])

    def losses(self, **how):
        with compiled(**how) as step:
            return [step(**arrays(i)) for i in range(10)]

    def test_pipelines_and_transformers(self):
        layer = nn.TransformerLayer(heads=4, ffn_width=32, hidden_dropout=0.1)

        def decoder(ids, labels):
            x, table = nn.embedding(ids, "wte", 20, 16)
            x = nn.learned_positions(x, "wpe", 6)
            run = nn.Pass(step=tessera.samples_seen())
            for i in range(4):
                with tessera.scope(f"layers.{i}"):
                    x = nn.encoder_layer(x, layer, nn.Visible(causal=True), run)
            logits = ops.matmul(nn.layer_norm_layer(x, "norm"), table, trans_b=True)
            return {"loss": nn.cross_entropy(logits, labels), "right": nn.accuracy(logits, labels)}

        batch = {"ids": ((8, 6), "i32"), "labels": ((8, 6), "i32")}
        ids = numpy.random.default_rng(1).integers(0, 20, (8, 6)).astype(numpy.int32)

        def losses(**how):
            with compiled(decoder, batch, **how) as step:
                return [step(ids=ids, labels=ids)["loss"] for _ in range(5)]

        one = losses()
        for how in [
            dict(devices=4, tensor_model_parallel_size=4),
            dict(devices=4, tensor_model_parallel_size=2, sequence_parallel=True),
            dict(devices=2, pipeline_model_parallel_size=2, micro_batch_size=2),
            dict(devices=2, context_parallel_size=2),
            dict(devices=2, recompute_granularity="full", zero_stage=2),
        ]:
            with self.subTest(**how):
                numpy.testing.assert_allclose(losses(**how), one, rtol=1e-5)

    def test_programs_share_parameters(self):
        def predict(x):
            return nn.linear(ops.relu(nn.linear(x, "up", 16)), "down", 3)

        for how in [{}, dict(devices=2), dict(bf16=True)]:
            with compiled(programs={"predict": (predict, {"x": (5, 4)})}, **how) as step:
                x = numpy.ones((5, 4), numpy.float32)
                before = step.run("predict", x=x)
                step(**arrays())
                after = step.run("predict", x=x)
                self.assertEqual(after.shape, (5, 3))
                self.assertFalse((before == after).all())
                w = step.state_dict()
                h = numpy.maximum(x @ w["up.weight"].T + w["up.bias"], 0)
                want = h @ w["down.weight"].T + w["down.bias"]
                numpy.testing.assert_allclose(after, want, rtol=0.05 if "bf16" in how else 1e-5, atol=1e-3)
        with self.assertRaisesRegex(tessera.UsageError, "'upp.weight', which the first one lacks"):
            compiled(programs={"predict": (lambda x: nn.linear(x, "upp", 3), {"x": (5, 4)})})

    def test_states_are_saved_and_loaded_on_any_mesh(self):
        with tempfile.TemporaryDirectory() as folder, compiled() as step:
            for i in range(3):
                step(**arrays(i))
            path = step.save(folder)
            wanted = step.state_dict(all=True)
            after = [step(**arrays(i)) for i in range(3, 6)]
            with compiled(devices=2, zero_stage=1, seed=7) as other:
                other.load(path)
                for name, value in other.state_dict(all=True).items():
                    numpy.testing.assert_array_equal(value, wanted[name])
                numpy.testing.assert_allclose([other(**arrays(i)) for i in range(3, 6)], after, rtol=1e-5)
            step.load(folder)
            self.assertEqual([step(**arrays(i)) for i in range(3, 6)], after)
            for wrong, kind in [(folder + "/none", tessera.CheckpointError), ("\0", tessera.Error), (3, tessera.Error)]:
                with self.assertRaises(kind):
                    step.load(wrong)
            with compiled(lambda x: ops.sum(nn.linear(x, "a", 2)), {"x": (8, 4)}) as small:
                with self.assertRaisesRegex(tessera.CheckpointError, "another step"):
                    small.load(path)
            self.assertIsInstance(step(**arrays()), float)

    def test_parameters_can_be_given(self):
        for how in [{}, dict(devices=2, zero_stage=3), dict(bf16=True)]:
            with self.subTest(**how), compiled(**how) as step:
                first = step.state_dict()
                zeros = {name: numpy.zeros_like(value) for name, value in first.items()}
                step.load_state_dict({"up.weight": first["up.weight"] + 1})
                numpy.testing.assert_array_equal(step.state_dict()["up.weight"], first["up.weight"] + 1)
                numpy.testing.assert_array_equal(step.state_dict()["down.weight"], first["down.weight"])
                step.load_state_dict(zeros)
                self.assertAlmostEqual(step(**arrays()), float(numpy.log(3)), places=5)
                for wrong, says in [
                    ({"up.wieght": first["up.weight"]}, "no parameter 'up.wieght'; nearest is up.weight"),
                    ({"up.weight": first["up.weight"].T}, r"f32\[4,16\], and the step has f32\[16,4\]"),
                    ({"up.weight": first["up.weight"].astype("f8")}, "float64"),
                    (3, "give a dict"),
                ]:
                    with self.assertRaisesRegex(tessera.UsageError, says):
                        step.load_state_dict(wrong)

    def test_layouts_are_splits_with_names(self):
        on = tessera.DeviceLayout((2, 2), ("dp", "mp"))
        batch = {"x": (8, 4), "w": (4, 6)}
        x = numpy.arange(32, dtype=numpy.float32).reshape(8, 4)
        w = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)

        def sends(*strategy):
            step = compiled(lambda x, w: tessera.shard(x @ w, *strategy), batch, None, devices=4)
            with step:
                numpy.testing.assert_array_equal(step(x=x, w=w), x @ w)
                return [(s["kind"], s["shape"]) for s in step.plan["programs"]["step"]["sends"]]

        by_splits = sends(((2, 2), (2, 1)))
        self.assertTrue(by_splits)
        self.assertEqual(sends((on("dp", "mp"), on("mp", None))), by_splits)
        whole = sends((on("dp", "mp"), on("mp", "None")), (on(("dp", "mp"), None),))
        self.assertIn("reduce_scatter", [kind for kind, _ in whole])
        for wrong, says in [
            ((on("dp", "pp"), on("mp", None)), "pp"),
            ((on("dp", "dp"), on("mp", None)), "dp"),
            ((on("dp", "mp"), 3), "object"),
            ((tessera.DeviceLayout((2,), ("a", "b"))("a", "b"), on("mp", None)), "name"),
        ]:
            with self.subTest(says), self.assertRaisesRegex(tessera.UsageError, says):
                sends(wrong)

    def test_what_a_step_says_of_itself(self):
        with compiled(devices=2, zero_stage=1) as step:
            plan = step.plan
            self.assertEqual((plan["devices"], plan["mesh"]), (2, "dp=2"))
            self.assertEqual(plan["states"]["up.weight"]["shape"], [16, 4])
            self.assertIn("dp", plan["states"]["up.weight.m"]["lies"])
            self.assertGreater(plan["memory"]["parameters"], 0)
            self.assertTrue(plan["programs"]["step"]["sends"])
            self.assertIn("dp=2", repr(step))
        found = tessera.place(net, BATCH, devices=2, parallel_mode="auto_parallel", search_mode="dynamic_programming")
        self.assertGreater(found["search"]["step_seconds"], 0)
        self.assertIn("up.weight", found["pins"])

    def test_the_loss_scale_of_fp16(self):
        with compiled(fp16=True) as step:
            step(**arrays())
            self.assertTrue(step.metrics["ok"])
            self.assertEqual(step.metrics["loss_scale"], 65536)
            for _ in range(2):  # the second bad step halves the scale of the next
                step(x=arrays()["x"] * 1e30, labels=arrays()["labels"])
                self.assertFalse(step.metrics["ok"])
            step(**arrays())
            self.assertEqual(step.metrics["loss_scale"], 32768)

    def test_gradients(self):
        def grads(x):
            w = tessera.parameter("w", (4,), nn.ones_init())
            return {"g": tessera.gradients(ops.sum(x * w * w))[0]}

        x = arrays()["x"]
        numpy.testing.assert_allclose(computed(grads, x=x)["g"], 2 * x.sum(0), rtol=1e-5)


class Arrays(unittest.TestCase):
    def test_what_can_be_given(self):
        x, labels = arrays()["x"], arrays()["labels"]

        class Speaks:  # another library's array, as torch's tensors are
            def __dlpack__(self, **how):
                return x.__dlpack__()

            def __dlpack_device__(self):
                return x.__dlpack_device__()

        class Refuses(Speaks):
            def __dlpack__(self, **how):
                raise RuntimeError("it has a gradient; detach it")

        with compiled() as step:
            want = step(x=x, labels=labels)
            start = step.state_dict(all=True)
        for give in [
            x.copy(),
            numpy.asfortranarray(x),
            numpy.repeat(x, 2, axis=1)[:, ::2],
            x.tolist(),
            Speaks(),
        ]:
            with compiled() as step:
                self.assertEqual(step(x=give, labels=labels.tolist()), want)
        self.assertEqual(len(start), 16)  # 4 parameters with 2 moments each, 3 counters, a rate
        with compiled() as step:
            for give, says in [
                (dict(x=x.astype("f8")), "x' is float64"),
                (dict(x=x.astype(">f4")), "x' is >f4"),
                (dict(labels=labels.astype("i8")), "labels' is int64"),
                (dict(x=x[:4]), r"f32\[4,4\], and the step takes f32\[8,4\]"),
                (dict(x=x[:, :, None]), r"f32\[8,4,1\]"),
                (dict(x=x[0, 0]), r"f32, and|f32\[\]"),
                (dict(x=None), "is a NoneType"),
                (dict(x="abc"), "is a str"),
                (dict(x=[[1], [2, 3]]), "no list of numbers"),
                (dict(labels=[0.5] * 8), "float64"),
                (dict(labels=[1 << 40] * 8), "does not hold"),
                (dict(x=[[1e39] * 4] * 8), "x' has numbers that float32 does not hold"),
                (dict(x=x.astype(complex)), "complex"),
                (dict(x=numpy.ma.array(x)), "masked"),
                (dict(x=Refuses()), "detach it"),
                (dict(lables=labels), "no input 'lables'; nearest is labels"),
            ]:
                with self.subTest(says), self.assertRaisesRegex(tessera.UsageError, says):
                    step(**{**dict(x=x, labels=labels), **give})
            with self.assertRaisesRegex(tessera.UsageError, "'labels' is missing"):
                step(x=x)
            with self.assertRaisesRegex(tessera.DataError, "labels"):
                step(x=x, labels=labels + 7)
            self.assertEqual(step(x=x, labels=labels), want)  # nothing of it has run

    def test_wrong_numbers_on_several_devices_leave_the_step_as_it_was(self):
        with compiled() as step:
            want = step(**arrays())
        with compiled(devices=2) as step:
            for _ in range(3):
                with self.assertRaises(tessera.DataError):
                    step(x=arrays()["x"], labels=arrays()["labels"] - 1)
            self.assertAlmostEqual(step(**arrays()), want, places=5)


class Refusals(unittest.TestCase):
    def test_how_is_checked(self):
        for how, says in [
            (dict(devices=3, tensor_model_parallel_size=2), "multiple"),
            (dict(devise=2), "--devise"),
            (dict(steps=3), "--steps"),
            (dict(devices=0), "devices"),
            (dict(mesh={"dp": 2}, devices=2), "both say sizes"),
            (dict(mesh={"dp": 0}), "0"),
            (dict(mesh={"dp": 1 << 50}), "mesh|most"),
            (dict(mesh=[2]), "mesh"),
            (dict(mesh={"tp": 2}, pins={"upp.weight": "[tp,-]"}), "upp.weight"),
            (dict(mesh={"tp": 2}, pins={"up.weight": "[tp"}), r"\[tp"),
            (dict(mesh={"tp": 2}, pins={"up.weight": "[pt,-]"}), "the axis pt, which the mesh lacks"),
            (dict(mesh={"rows": 2}, batch_axes=[["row"]]), "the axis row, which the mesh lacks"),
            (dict(devices=2, tensor_model_parallel_size=2), "splits nothing"),
            (dict(micro_batch_size=3), "8 samples"),
            (dict(micro_batches=2), "parallel_mode"),
            (dict(devices=2, parallel_mode="fast"), "it can be stand_alone"),
            (dict(devices=2, shard={"up.matmull": ((2, 1), (1, 1))}), "up.matmull"),
            (dict(devices=2, shard={"up.matmul": ((3, 1), (1, 1))}), "3"),
            (dict(devices=2, shard={"up.matmul": "all"}), "a list"),
            (dict(devices=2, shard={"up.matmul": ((2, 1), (1, 1))}, zero_stage=1), "f32"),
            (dict(recompute_granularity="full"), "no blocks"),
            (dict(optimizer=3), "give one"),
            (dict(optimizer=tessera.AdamW(lr=-1)), "lr is -1"),
            (dict(optimizer=tessera.AdamW(schedule="step")), "it can be constant"),
            (dict(optimizer=tessera.AdamW(groups=[tessera.ParameterGroup(["x*"])])), "x\\*"),
            (dict(batch={"x": 3}), "give a shape"),
            (dict(batch={"x": ("a", "b")}), "give a shape"),
            (dict(batch={"x": (-8, 4), "labels": ((8,), "i32")}), "-8"),
            (dict(batch=[1]), "give a dict"),
            (dict(batch={"x y": (2, 2)}), "give a name"),
            (dict(function=3), "give a function"),
            (dict(programs={"step": (net, BATCH)}), "another name"),
            (dict(programs={"init": (net, BATCH)}), "another name"),
            (dict(programs={"p": net}), "a function and its batch"),
            (dict(seed="a"), "seed"),
            (dict(threads=-1), "threads"),
            (dict(device="gpu"), "device|gpu"),
            (dict(bf16=True, mesh={"dp": float("nan")}), "finite"),
        ]:
            with self.subTest(says):
                with self.assertRaisesRegex(tessera.UsageError, says) as raised:
                    compiled(**how).close()
                self.assertNotIsInstance(raised.exception, tessera.InternalError)

    def test_a_closed_step_is_refused(self):
        step = compiled()
        step.close()
        step.close()
        for use in [
            lambda: step(**arrays()),
            lambda: step.state_dict(),
            lambda: step.save("x"),
            lambda: step.load("x"),
            lambda: step.load_state_dict({}),
        ]:
            with self.assertRaisesRegex(tessera.UsageError, "closed"):
                use()
        self.assertIn("closed", repr(step))

    def test_functions_of_c_refuse_what_python_would_not_give(self):
        graph, step = library.tessera_graph_new(), library.tessera_step_new()
        for text in [None, b"", b"{", b"[]", b"3", b'{"op": 3}', b'{"op": "batch"}', b"\xff"]:
            self.assertEqual(library.tessera_graph_call(graph, text), 2)
        none = ctypes.POINTER(ctypes.c_void_p)()
        for how in [None, b"{", b"[]", b"{}", b'{"names": ["a"]}']:
            self.assertEqual(library.tessera_step_compile(step, none, 0, how), 2)
        self.assertEqual(library.tessera_step_run(step, b"step", None, 0), 2)
        self.assertEqual(library.tessera_step_read(step, b"loss", None, 4), 2)
        self.assertEqual(library.tessera_step_call(step, b'{"do": "dance"}'), 2)
        library.tessera_graph_free(graph)
        library.tessera_step_free(step)

    def test_a_launched_process_is_refused(self):
        given = dict(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        os.environ.update(given)
        try:
            with self.assertRaisesRegex(tessera.UsageError, "launched as one of several"):
                compiled()
        finally:
            for name in given:
                del os.environ[name]

    def test_a_fork_is_refused(self):
        with compiled() as step:
            step(**arrays())
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    step(**arrays())
                except tessera.UsageError as error:
                    step.close()  # which waits for no thread that is not there
                    os._exit(0 if "forked" in str(error) else 2)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)


class Threads(unittest.TestCase):
    def test_threads_take_turns_at_a_step(self):
        with compiled(devices=2) as step:
            losses, threads = [], []
            for _ in range(4):
                threads.append(threading.Thread(target=lambda: losses.extend(step(**arrays()) for _ in range(5))))
                threads[-1].start()
            for thread in threads:
                thread.join()
        with compiled(devices=2) as step:
            self.assertEqual(sorted(losses), sorted(step(**arrays()) for _ in range(20)))

    def test_graphs_are_of_their_thread(self):
        def in_another(x):
            said = []

            def work():
                try:
                    x + 1
                except tessera.UsageError as error:
                    said.append(str(error))

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.assertIn("thread", said[0])
            return x

        computed(in_another, {"x": (2,)}, x=numpy.zeros(2, numpy.float32))

    def test_others_run_while_a_step_does(self):
        def slow(x):
            for _ in range(60):
                x = x @ x
            return ops.sum(x)

        with compiled(slow, {"x": (512, 512)}, optimizer=None) as step:
            counted, ends = [0], []

            def count():
                while not ends:
                    counted[0] += 1
                    time.sleep(0.001)

            thread = threading.Thread(target=count)
            thread.start()
            x = numpy.zeros((512, 512), numpy.float32)
            before, began = counted[0], time.monotonic()
            while time.monotonic() - began < 0.5:
                step(x=x)
            during = counted[0] - before
            ends.append(True)
            thread.join()
        self.assertGreater(during, 20)

    def test_ctrl_c_finishes_the_step(self):
        with compiled(devices=2) as step:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            done = 0
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    step(**arrays())
                    done += 1
            timer.join()
            samples = int(step.state_dict(all=True)["data.samples"])
            self.assertIn(samples // 8 - done, (0, 1))
            step(**arrays())

    def test_a_process_ends_with_a_step_that_nobody_closed(self):
        program = (
            "import tessera, numpy\n"
            "step = tessera.compile(lambda x: tessera.nn.linear(x, 'l', 2), {'x': (4, 4)}, devices=2)\n"
            "print(step(x=numpy.zeros((4, 4), numpy.float32)).shape)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "(4, 2)\n", ""))


class Memory(unittest.TestCase):
    def test_a_thousand_graphs_and_steps_leave_memory_flat(self):
        small = {"x": (2, 2)}

        def tiny(x):
            return ops.sum(nn.linear(x, "l", 2))

        def one_round(count):
            for i in range(count):
                step = tessera.compile(tiny, small, optimizer=tessera.AdamW(), threads=1, devices=1 + i % 2)
                step(x=numpy.ones((2, 2), numpy.float32))
                step.state_dict()
                del step
            gc.collect()

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        threads = len(os.listdir("/proc/self/task"))
        one_round(300)
        before = resident()
        one_round(700)
        self.assertLess(resident() - before, 8 << 20)
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads)


if __name__ == "__main__":
    unittest.main()
