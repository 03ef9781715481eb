"""A tiny BERT in Tessera's parameter names and packing, and the same in Hugging Face transformers.

`golden_bert` is everything in bert.safetensors. The weights' names are linked to transformers' as in models.py.
"""
import math

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForPreTraining

import models
from models import BATCH, CONTEXT, HEAD_DIM, HEADS, LAYERS, VOCAB, WIDTH

STEPS, IGNORE, FFN, EPS = 10, -100, 128, 1e-12
USED = (16, 11, 16, 7)  # positions of each sample that are not padding


def linear_links():
    """(our name, theirs, out, in) of every linear layer but q, k and v, and of the norms, whose `in` is None."""
    yield "embed.norm", "bert.embeddings.LayerNorm", WIDTH, None
    for i in range(LAYERS):
        ours, theirs = f"layers.{i}.", f"bert.encoder.layer.{i}."
        yield ours + "attn.proj", theirs + "attention.output.dense", WIDTH, WIDTH
        yield ours + "norm1", theirs + "attention.output.LayerNorm", WIDTH, None
        yield ours + "mlp.up", theirs + "intermediate.dense", FFN, WIDTH
        yield ours + "mlp.down", theirs + "output.dense", WIDTH, FFN
        yield ours + "norm2", theirs + "output.LayerNorm", WIDTH, None
    yield "mlm.dense", "cls.predictions.transform.dense", WIDTH, WIDTH
    yield "mlm.norm", "cls.predictions.transform.LayerNorm", WIDTH, None
    yield "pooler", "bert.pooler.dense", WIDTH, WIDTH
    yield "nsp", "cls.seq_relationship", 2, WIDTH


def shapes():
    out = {"embed.token.weight": (VOCAB, WIDTH), "embed.type.weight": (2, WIDTH),
           "embed.position.weight": (CONTEXT, WIDTH), "mlm.bias": (VOCAB,)}
    for i in range(LAYERS):
        out[f"layers.{i}.attn.qkv.weight"] = (3 * WIDTH, WIDTH)
        out[f"layers.{i}.attn.qkv.bias"] = (3 * WIDTH,)
    for ours, _, rows, columns in linear_links():
        out[ours + ".weight"] = (rows,) if columns is None else (rows, columns)
        out[ours + ".bias"] = (rows,)
    return out


def links(model):
    """(our name, their parameters, pack, unpack) as in models.py."""
    of = dict(model.named_parameters())
    same = (lambda a: a, lambda a: [a])
    for ours, theirs in (("token", "word"), ("type", "token_type"), ("position", "position")):
        yield f"embed.{ours}.weight", [of[f"bert.embeddings.{theirs}_embeddings.weight"]], *same
    yield "mlm.bias", [of["cls.predictions.bias"]], *same
    for i in range(LAYERS):
        for kind in ("weight", "bias"):
            parts = [of[f"bert.encoder.layer.{i}.attention.self.{role}.{kind}"] for role in ("query", "key", "value")]
            yield f"layers.{i}.attn.qkv.{kind}", parts, models.pack_qkv, lambda a: models.unpack_qkv(a, HEADS)
    for ours, theirs, _, _ in linear_links():
        for kind in ("weight", "bias"):
            yield f"{ours}.{kind}", [of[f"{theirs}.{kind}"]], *same


def hf_model(dtype):
    config = BertConfig(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=FFN, hidden_act="gelu", hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0, max_position_embeddings=CONTEXT, type_vocab_size=2,
                        layer_norm_eps=EPS, tie_word_embeddings=True, pad_token_id=None)
    config._attn_implementation = "sdpa"
    return BertForPreTraining(config).to(dtype).train()


def draw_batches(count, generator):
    """Random inputs: samples of unequal length, with unequal numbers of labels; one sample has no `next`."""
    shape = (count, BATCH, CONTEXT)
    used = torch.tensor(USED)[None, :, None]
    mask = (torch.arange(CONTEXT) < used).expand(shape).int()
    ids = torch.randint(0, VOCAB, shape, generator=generator) * mask
    types = (torch.arange(CONTEXT) >= used // 2).expand(shape).int() * mask
    labels = torch.randint(0, VOCAB, shape, generator=generator)
    labels[(torch.rand(shape, generator=generator) > 0.3) | (mask == 0)] = IGNORE
    labels[:, 0, 1] = 5  # there is one
    next_ = torch.randint(0, 2, shape[:2], generator=generator)
    next_[:, 2] = IGNORE
    return {"ids": ids.int(), "types": types, "mask": mask, "labels": labels.int(), "next": next_.int()}


def forward(model, batch):
    out = model(batch["ids"].long(), attention_mask=batch["mask"], token_type_ids=batch["types"].long(),
                labels=batch["labels"].long(), next_sentence_label=batch["next"].long())
    return {"logits": out.prediction_logits, "next_logits": out.seq_relationship_logits, "loss": out.loss}


def plain(p, batch):
    """The logits by the packed layout alone, without transformers."""
    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def norm(name, x):
        return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"], EPS)

    x = p["embed.token.weight"][batch["ids"]] + p["embed.type.weight"][batch["types"]] + p["embed.position.weight"]
    x = norm("embed.norm", x)
    hidden = (batch["mask"] == 0)[:, None, None, :]
    for i in range(LAYERS):
        at = f"layers.{i}."
        q, k, v = linear(at + "attn.qkv", x).view(BATCH, CONTEXT, HEADS, 3, HEAD_DIM).unbind(3)
        scores = torch.einsum("bthe,bshe->bhts", q, k) / math.sqrt(HEAD_DIM)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        x = norm(at + "norm1", x + linear(at + "attn.proj", torch.einsum("bhts,bshe->bthe", weights, v).flatten(2)))
        x = norm(at + "norm2", x + linear(at + "mlp.down", F.gelu(linear(at + "mlp.up", x))))
    rows = norm("mlm.norm", F.gelu(linear("mlm.dense", x)))
    return {"logits": rows @ p["embed.token.weight"].t() + p["mlm.bias"],
            "next_logits": linear("nsp", torch.tanh(linear("pooler", x[:, 0])))}


def golden_bert(seed, train):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    generator = torch.Generator().manual_seed(seed)
    params = models.draw(shapes(), generator)
    batch = {name: value[0] for name, value in draw_batches(1, generator).items()}
    steps = draw_batches(STEPS, generator)

    def run(dtype):
        model = hf_model(dtype)
        models.load(model, {name: value.to(dtype) for name, value in params.items()}, links)
        out = forward(model, batch)
        out["loss"].backward()
        result = {name: value.detach() for name, value in out.items()}
        result |= {"grad." + name: value for name, value in models.packed(model, links, lambda a: a.grad).items()}
        of_step = (lambda step: forward(model, {name: value[step] for name, value in steps.items()})["loss"])
        return result | train(model, of_step, lambda: models.packed(model, links))

    exact, single = run(torch.float64), run(torch.float32)
    for name, value in plain({name: value.double() for name, value in params.items()}, batch).items():
        assert (exact[name] - value).abs().max() < 1e-12, f"the packed layout does not give transformers' {name}"
        assert (exact[name] - single[name]).abs().max() < 1e-5
    out = batch | {"step_" + name: value for name, value in steps.items()}
    out |= {"param." + name: value for name, value in params.items()}
    return exact, single, out | {name: value.float() for name, value in exact.items()}
