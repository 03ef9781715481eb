"""A tiny Vision Transformer in Tessera's parameter names and packing, and the same in Hugging Face transformers.

`golden_vit` is everything in vit.safetensors. The weights' names are linked to transformers' as in models.py.
"""
import math

import torch
import torch.nn.functional as F
from transformers import ViTConfig, ViTForImageClassification

import models
from models import BATCH, HEAD_DIM, HEADS, LAYERS, WIDTH

STEPS, FFN, EPS = 10, 128, 1e-12
SIDE, PATCH, CHANNELS, CLASSES = 12, 4, 3, 7
PATCHES = (SIDE // PATCH) ** 2


def linear_links():
    """(our name, theirs, out, in) of every linear layer but q, k and v, and of the norms, whose `in` is None."""
    for i in range(LAYERS):
        ours, theirs = f"layers.{i}.", f"vit.layers.{i}."
        yield ours + "norm1", theirs + "layernorm_before", WIDTH, None
        yield ours + "attn.proj", theirs + "attention.o_proj", WIDTH, WIDTH
        yield ours + "norm2", theirs + "layernorm_after", WIDTH, None
        yield ours + "mlp.up", theirs + "mlp.fc1", FFN, WIDTH
        yield ours + "mlp.down", theirs + "mlp.fc2", WIDTH, FFN
    yield "norm", "vit.layernorm", WIDTH, None
    yield "classifier", "classifier", CLASSES, WIDTH


def shapes():
    out = {"embed.patch.weight": (WIDTH, CHANNELS, PATCH, PATCH), "embed.patch.bias": (WIDTH,),
           "embed.cls.weight": (1, 1, WIDTH), "embed.position.weight": (1, 1 + PATCHES, WIDTH)}
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
    for ours, theirs in (("cls.weight", "cls_token"), ("position.weight", "position_embeddings"),
                         ("patch.weight", "patch_embeddings.projection.weight"),
                         ("patch.bias", "patch_embeddings.projection.bias")):
        yield f"embed.{ours}", [of[f"vit.embeddings.{theirs}"]], *same
    for i in range(LAYERS):
        for kind in ("weight", "bias"):
            parts = [of[f"vit.layers.{i}.attention.{role}_proj.{kind}"] for role in "qkv"]
            yield f"layers.{i}.attn.qkv.{kind}", parts, models.pack_qkv, lambda a: models.unpack_qkv(a, HEADS)
    for ours, theirs, _, _ in linear_links():
        for kind in ("weight", "bias"):
            yield f"{ours}.{kind}", [of[f"{theirs}.{kind}"]], *same


def hf_model(dtype):
    config = ViTConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=FFN,
                       hidden_act="gelu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                       layer_norm_eps=EPS, image_size=SIDE, patch_size=PATCH, num_channels=CHANNELS,
                       num_labels=CLASSES)
    config._attn_implementation = "sdpa"
    return ViTForImageClassification(config).to(dtype).train()


def patches_of(pixels):
    """[..., c, h, w] -> [..., patches, c s s]."""
    lead = pixels.shape[:-3]
    flat = F.unfold(pixels.reshape(-1, *pixels.shape[-3:]), PATCH, stride=PATCH)
    return flat.transpose(1, 2).reshape(*lead, PATCHES, -1).contiguous()


def draw_batches(count, generator):
    pixels = torch.randn(count, BATCH, CHANNELS, SIDE, SIDE, generator=generator)
    return {"pixels": pixels, "labels": torch.randint(0, CLASSES, (count, BATCH), generator=generator).int()}


def forward(model, batch):
    out = model(batch["pixels"].to(model.dtype), labels=batch["labels"].long())
    return {"logits": out.logits, "loss": out.loss}


def plain(p, batch):
    """The logits by the packed layout alone, without transformers."""
    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def norm(name, x):
        return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"], EPS)

    x = F.linear(patches_of(batch["pixels"]).double(), p["embed.patch.weight"].flatten(1), p["embed.patch.bias"])
    x = torch.cat((p["embed.cls.weight"].expand(BATCH, 1, WIDTH), x), 1) + p["embed.position.weight"]
    for i in range(LAYERS):
        at = f"layers.{i}."
        q, k, v = linear(at + "attn.qkv", norm(at + "norm1", x)).view(BATCH, -1, HEADS, 3, HEAD_DIM).unbind(3)
        weights = (torch.einsum("bthe,bshe->bhts", q, k) / math.sqrt(HEAD_DIM)).softmax(-1)
        x = x + linear(at + "attn.proj", torch.einsum("bhts,bshe->bthe", weights, v).flatten(2))
        x = x + linear(at + "mlp.down", F.gelu(linear(at + "mlp.up", norm(at + "norm2", x))))
    return {"logits": linear("classifier", norm("norm", x)[:, 0])}


def golden_vit(seed, train):
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
    out = {}
    for prefix, of in (("", batch), ("step_", steps)):
        out |= {prefix + "patches": patches_of(of["pixels"]), prefix + "labels": of["labels"]}
    out["pixel_values"] = batch["pixels"]
    out |= {"param." + name: value for name, value in params.items()}
    return exact, single, out | {name: value.float() for name, value in exact.items()}
