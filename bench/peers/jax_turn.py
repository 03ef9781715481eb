#!/usr/bin/env python3
"""One turn of a measurement: JAX trains a model of Tessera's, and tells each step as a line of JSON.

    build/peers/bin/python bench/peers/jax_turn.py SPEC.json

Weights, batches and learning rates are given, so that in float32 without dropout the losses are Tessera's but for
rounding. SPEC.json is the task that turn_task.py describes; the mode is eager, of one device, or dp: a batch is shared out
to all. bf16: parameters and what they are multiplied by are rounded to it, norms, softmax, losses, gradients and AdamW
are float32; on NVIDIA's GPUs attention without dropout is jax.nn.dot_product_attention by cuDNN.

The plugin is that of the task; on GPUs that of JAX's own packages, where they are installed.

The models are plain functions of a dictionary that has parameters under Tessera's names. The step, from the batch to new
parameters, is one function under jit, to which parameters and moments are donated. It is compiled in the first step.
Seconds of a step are those from before its batch is handed to JAX until the new parameters are there.

The pool of threads of XLA is as large as the number of cores on which the process may run when JAX first asks for a
device, and all its other threads keep to the same cores: therefore the process keeps to as many cores as it is to have
threads.
"""
import importlib.util
import math
import os
import sys
import time

import numpy as np

import turn_task
from turn_task import IGNORED, require

try:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from jaxlib import xla_client
except ImportError:
    jax = None

FAMILIES = {"eager": ("gpt2", "bert"), "dp": ("gpt2", "bert")}


def main():
    try:
        require(len(sys.argv) == 2, "usage: jax_turn.py SPEC.json")
        spec = turn_task.read_spec(sys.argv[1], FAMILIES)
        require(jax is not None, "this Python has no JAX")
        turn_task.tell_end(train(spec))
    except Exception as error:  # whatever it is, the reader is told
        turn_task.tell_end(failure=turn_task.words_of(error)[0])


def train(spec):
    """Returns the peak of memory."""
    mesh = Mesh(devices_of(spec), ("data",))
    whole, part = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    state = jax.device_put(load(spec), whole)
    step_of = jax.jit(make_step(spec), donate_argnums=0, in_shardings=(whole, part, whole, whole),
                      out_shardings=whole)
    batches = turn_task.Batches(spec)
    plugin = "" if not spec.plugin or is_loaded(spec.plugin) else " on its own plugin"
    turn_task.tell_start(spec, sum(a.size for a in state["parameters"].values()), f"JAX {jax.__version__}{plugin}")
    for step, rate in enumerate(spec.rates):
        begin = time.perf_counter()
        missing = [1 - beta ** (step + 1) for beta in (spec.beta1, spec.beta2)]
        numbers = np.array([rate, *missing], np.float32)  # one copy
        state, loss = jax.block_until_ready(step_of(state, batches.of(step), step, numbers))
        seconds = time.perf_counter() - begin
        turn_task.tell_step(seconds, loss.item())
    return turn_task.peak_rss_bytes()


def devices_of(spec):
    if not spec.plugin:
        os.sched_setaffinity(0, spec.cores[:1] or sorted(os.sched_getaffinity(0))[: spec.threads])
        jax.config.update("jax_platforms", "cpu")
        return jax.devices()
    try:
        from jax._src.xla_bridge import register_plugin
    except ImportError as error:
        raise ValueError(f"JAX {jax.__version__} takes no plugin by its file: {error}") from None
    # By this name JAX knows what is special about a device; any other name is as good as the next.
    name = spec.device if spec.device in ("cuda", "rocm", "tpu") else "plugin"
    gpu = name in ("cuda", "rocm")
    if gpu and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ:
        os.environ.setdefault("XLA_CLIENT_MEM_FRACTION", "0.92")  # nobody else is there
    own = name != "plugin" and importlib.util.find_spec("jax_plugins") is not None
    if not own:
        options = xla_client.generate_pjrt_gpu_plugin_options() if gpu else {}
        if "cpu" in os.path.basename(spec.plugin):
            options["cpu_device_count"] = spec.devices
        register_plugin(name, library_path=spec.plugin, options=options)
    jax.config.update("jax_platforms", name)
    if spec.dtype == "f32":
        jax.config.update("jax_default_matmul_precision", "highest")
    there = jax.devices()
    require(own or is_loaded(spec.plugin), f"JAX took a plugin of its own instead of {spec.plugin}")
    require(len(there) >= spec.devices, f"the plugin has {len(there)} devices, not {spec.devices}")
    return there[: spec.devices]


def is_loaded(plugin):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return os.path.realpath(plugin) in maps.read()


def shapes_of(spec):
    """Those of the parameters that a model has."""
    width, bert = spec.width, spec.family == "bert"
    bias, shapes = spec.bias or bert, {}

    def linear(name, out, inner, bias=bias):
        shapes[name + ".weight"] = (out, inner)
        if bias:
            shapes[name + ".bias"] = (out,)

    def norm(name):
        shapes[name + ".weight"] = (width,)
        if bias:
            shapes[name + ".bias"] = (width,)

    shapes["embed.token.weight"] = (spec.vocabulary, width)
    shapes["embed.position.weight"] = (spec.context, width)
    for i in range(spec.layers):
        norm(f"layers.{i}.norm1")
        linear(f"layers.{i}.attn.qkv", 3 * width, width)
        linear(f"layers.{i}.attn.proj", width, width)
        norm(f"layers.{i}.norm2")
        linear(f"layers.{i}.mlp.up", spec.ffn_width, width)
        linear(f"layers.{i}.mlp.down", width, spec.ffn_width)
    if bert:
        shapes["embed.type.weight"] = (2, width)
        norm("embed.norm")
        linear("mlm.dense", width, width)
        norm("mlm.norm")
        shapes["mlm.bias"] = (spec.vocabulary,)
        linear("pooler", width, width)
        linear("nsp", 2, width)
    else:
        norm("norm")
        if not spec.tied_head:
            linear("head", spec.vocabulary, width, bias=False)
    return shapes


def load(spec):
    """Parameters, and the moments of AdamW."""
    shapes, parameters = shapes_of(spec), {}
    for name, values in turn_task.tensors_of(spec.weights, shapes.__contains__):
        require(values.shape == shapes[name],
                f"{name} is {list(values.shape)} in the weights, in the model {list(shapes[name])}")
        parameters[name] = jnp.array(values)
    lacking = [name for name in shapes if name not in parameters]
    require(not lacking, f"{spec.weights} lacks {', '.join(lacking)}")
    return {"parameters": parameters} | {
        moment: {name: jnp.zeros(shape) for name, shape in shapes.items()} for moment in ("means", "squares")}


def make_step(spec):
    def step_of(state, batch, step, numbers):
        rate, missing = numbers[0], numbers[1:]
        key = jax.random.fold_in(jax.random.key(100), step)
        loss, gradients = jax.value_and_grad(lambda p: Model(spec, p, key).loss(batch))(state["parameters"])
        if spec.clip > 0:
            norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in gradients.values()))
            scale = jnp.minimum(spec.clip / (norm + 1e-6), 1)
            gradients = {name: g * scale for name, g in gradients.items()}
        new = {kind: {} for kind in state}
        for name in state["parameters"]:
            old = (state[kind][name] for kind in ("parameters", "means", "squares"))
            new["parameters"][name], new["means"][name], new["squares"][name] = adamw(
                spec, *old, gradients[name], rate, missing)
        return new, loss

    return step_of


def adamw(spec, parameter, mean, square, gradient, rate, missing):
    """Matrices decay, what has one dimension does not. `missing`: how far the moments are from full size."""
    mean = spec.beta1 * mean + (1 - spec.beta1) * gradient
    square = spec.beta2 * square + (1 - spec.beta2) * jnp.square(gradient)
    if parameter.ndim >= 2:
        parameter = parameter * (1 - rate * spec.weight_decay)
    update = (mean / missing[0]) / (jnp.sqrt(square / missing[1]) + spec.eps)
    return parameter - rate * update, mean, square


class Model:
    """One pass through it. `key`: of what is dropped."""

    def __init__(self, spec, parameters, key):
        self.spec, self.parameters, self.key = spec, parameters, key
        self.bert, self.drops = spec.family == "bert", 0
        self.product = jnp.bfloat16 if spec.dtype == "bf16" else jnp.float32
        self.cudnn = spec.device == "cuda" and spec.dtype == "bf16" and spec.dropout == 0

    def loss(self, batch):
        x = self.parameters["embed.token.weight"][batch["ids"]] + self.parameters["embed.position.weight"]
        if not self.bert:
            x = self.dropout(x)
            visible = jnp.tril(jnp.ones((self.spec.context, self.spec.context), bool))
            for i in range(self.spec.layers):
                x = x + self.attend(f"layers.{i}", self.norm(f"layers.{i}.norm1", x), visible, causal=True)
                x = x + self.feed(f"layers.{i}", self.norm(f"layers.{i}.norm2", x))
            head = "embed.token" if self.spec.tied_head else "head"
            return loss_of(self.linear(head, self.norm("norm", x)), batch["labels"])
        x = x + self.parameters["embed.type.weight"][batch["types"]]
        x = self.dropout(self.norm("embed.norm", x))
        visible = batch["mask"][:, None, None] != 0 if "mask" in batch else None
        for i in range(self.spec.layers):
            x = self.norm(f"layers.{i}.norm1", x + self.attend(f"layers.{i}", x, visible))
            x = self.norm(f"layers.{i}.norm2", x + self.feed(f"layers.{i}", x))
        pair = self.linear("nsp", jnp.tanh(self.linear("pooler", x[:, 0])))
        rows = x
        if "masked_positions" in batch:
            rows = jnp.take_along_axis(x, batch["masked_positions"][:, :, None], axis=1)
        rows = self.norm("mlm.norm", jax.nn.gelu(self.linear("mlm.dense", rows), approximate=False))
        logits = self.linear("embed.token", rows) + self.parameters["mlm.bias"].astype(self.product)
        return loss_of(logits, batch["labels"]) + loss_of(pair, batch["next"])

    def attend(self, layer, x, visible, causal=False):
        """`visible`: which keys a query sees, as what fits [batch, heads, queries, keys]; None: all."""
        batch, seq, width = x.shape
        rows = self.linear(layer + ".attn.qkv", x).reshape(batch, seq, self.spec.heads, 3, -1)
        q, k, v = (rows[:, :, :, i] for i in range(3))
        if self.cudnn and (causal or visible is None):
            y = jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn")
        else:
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
            if visible is not None:
                scores = jnp.where(visible, scores, -jnp.inf)
            shares = self.dropout(jax.nn.softmax(scores)).astype(self.product)
            y = jnp.einsum("bhqk,bkhd->bqhd", shares, v)
        return self.dropout(self.linear(layer + ".attn.proj", y.reshape(batch, seq, width)))

    def feed(self, layer, x):
        h = jax.nn.gelu(self.linear(layer + ".mlp.up", x), approximate=not self.bert)
        return self.dropout(self.linear(layer + ".mlp.down", h))

    def linear(self, name, x):
        y = x.astype(self.product) @ self.parameters[name + ".weight"].astype(self.product).T
        bias = self.parameters.get(name + ".bias")
        return y if bias is None else y + bias.astype(self.product)

    def norm(self, name, x):
        x = x.astype(jnp.float32)
        x = x - x.mean(-1, keepdims=True)
        x = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + self.spec.norm_eps)
        x = x * self.parameters[name + ".weight"]
        bias = self.parameters.get(name + ".bias")
        return x if bias is None else x + bias

    def dropout(self, x):
        if self.spec.dropout == 0:
            return x
        self.drops += 1
        keep = 1 - self.spec.dropout
        kept = jax.random.bernoulli(jax.random.fold_in(self.key, self.drops), keep, x.shape)
        return jnp.where(kept, x / keep, 0)


def loss_of(logits, labels):
    """The mean over the labels that count; 0 where none does."""
    rows, labels = logits.reshape(-1, logits.shape[-1]).astype(jnp.float32), labels.reshape(-1)
    count = labels != IGNORED
    right = jnp.take_along_axis(rows, jnp.where(count, labels, 0)[:, None], axis=1)[:, 0]
    losses = jnp.where(count, jax.nn.logsumexp(rows, axis=1) - right, 0)
    return losses.sum() / jnp.maximum(count.sum(), 1)


if __name__ == "__main__":
    main()
