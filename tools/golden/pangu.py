"""A tiny PanGu-alpha in Tessera's parameter names and packing, and the same as a torch.nn.Module of its own.

Transformers has no such model. The module follows arXiv 2104.12369 and the order of MindSpore's model without a
pipeline: layers, a norm, and a layer whose queries are products of a learned row for each position.
"""
import math

import torch
import torch.nn.functional as F

import models
from models import CONTEXT, VOCAB

WIDTH, HEADS, FFN = 16, 4, 24
EPS = 1e-5


class Layer(torch.nn.Module):
    """Attention asks by `asked`, or by its input."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH, EPS), torch.nn.LayerNorm(WIDTH, EPS)
        self.query, self.key, self.value, self.proj = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = torch.nn.Linear(WIDTH, FFN), torch.nn.Linear(FFN, WIDTH)

    def forward(self, x, asked=None):
        heads = lambda y: y.unflatten(-1, (HEADS, -1)).transpose(-2, -3)
        y = self.norm1(x)
        q, k, v = heads(self.query(y if asked is None else asked)), heads(self.key(y)), heads(self.value(y))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        seen = scores.masked_fill(future, -math.inf).softmax(-1) @ v
        x = x + self.proj(seen.transpose(-2, -3).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position, self.asked = (torch.nn.Embedding(rows, WIDTH) for rows in (VOCAB, CONTEXT, CONTEXT))
        self.first, self.last = Layer(), Layer()
        self.norm = torch.nn.LayerNorm(WIDTH, EPS)

    def forward(self, ids):
        places = torch.arange(ids.shape[1])
        x = self.norm(self.first(self.token(ids) + self.position(places)))
        return self.last(x, self.asked(places)) @ self.token.weight.T


def packed_heads(*parts):
    """Rows of several products, by heads: of each head those of the first, then those of the next."""
    return torch.stack([part.unflatten(0, (HEADS, -1)) for part in parts], 1).flatten(0, 2)


def unpacked_heads(count):
    return lambda whole: [part.flatten(0, 1) for part in whole.unflatten(0, (HEADS, count, -1)).unbind(1)]


def links(model):
    """(our name, their parameters, pack, unpack) as in models.py."""
    same = (lambda a: a, lambda a: [a])
    for ours, table in (("embed.token", model.token), ("embed.position", model.position),
                        ("layers.1.query", model.asked)):
        yield ours + ".weight", [table.weight], *same
    for kind in ("weight", "bias"):
        of = lambda module: getattr(module, kind)
        first, last = model.first, model.last
        yield (f"layers.0.attn.qkv.{kind}", [of(first.query), of(first.key), of(first.value)], packed_heads,
               unpacked_heads(3))
        yield f"layers.1.cross.q.{kind}", [of(last.query)], *same
        yield f"layers.1.cross.kv.{kind}", [of(last.key), of(last.value)], packed_heads, unpacked_heads(2)
        for ours, module in (("layers.0.attn.proj", first.proj), ("layers.1.cross.proj", last.proj),
                             ("norm", model.norm)):
            yield f"{ours}.{kind}", [of(module)], *same
        for i, layer in enumerate((first, last)):
            for ours, module in (("norm1", layer.norm1), ("norm2", layer.norm2), ("mlp.up", layer.up),
                                 ("mlp.down", layer.down)):
                yield f"layers.{i}.{ours}.{kind}", [of(module)], *same


def golden(seed, train, mean_loss, draw_batches):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {name: value.shape for name, value in models.packed(Model(), links).items()}
    params = models.draw(shapes, generator)
    (ids,), (labels,) = draw_batches(1, generator)
    step_ids, step_labels = draw_batches(10, generator)

    def run(dtype):
        model = Model().to(dtype)
        models.load(model, {name: value.to(dtype) for name, value in params.items()}, links)
        logits = model(ids)
        loss = mean_loss(logits, labels)
        loss.backward()
        out = {"logits": logits.detach(), "loss": loss.detach()}
        out |= {"grad." + name: value for name, value in models.packed(model, links, lambda a: a.grad).items()}
        of_step = (lambda step: mean_loss(model(step_ids[step]), step_labels[step]))
        return out | train(model, of_step, lambda: models.packed(model, links))

    exact, single = run(torch.float64), run(torch.float32)
    out = {"ids": ids.int(), "labels": labels.int(), "step_ids": step_ids.int(), "step_labels": step_labels.int()}
    out |= {"param." + name: value for name, value in params.items()}
    return exact, single, out | {name: value.float() for name, value in exact.items()}
