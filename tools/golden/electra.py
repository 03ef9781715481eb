"""A tiny ELECTRA that pretrains, in Tessera's parameter names and packing, and the same of transformers' two models:
the generator, ElectraForMaskedLM, and the discriminator, ElectraForPreTraining, which share their embeddings.

Tokens that the generator draws are given: `drawn` [batch, context].
"""
import torch
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

import models
from models import BATCH, CONTEXT, LAYERS, VOCAB, WIDTH

STEPS, IGNORE, EMBEDDING, WEIGHT = 10, -100, 20, 50
USED = (16, 11, 16, 7)  # positions of each sample that are not padding
SIZES = {"generator.": (WIDTH // 2, 2, 64), "": (WIDTH, 4, 128)}  # width, heads, hidden width
IN_LAYER = {"attn.proj": "attention.output.dense", "norm1": "attention.output.LayerNorm",
            "mlp.up": "intermediate.dense", "mlp.down": "output.dense", "norm2": "output.LayerNorm"}


class Electra(torch.nn.Module):
    """Both models. `model.loss(batch)` is what they learn."""

    def __init__(self, dtype):
        super().__init__()
        self.generator, self.discriminator = (
            of(self.config(*sizes)).to(dtype).train()
            for of, sizes in zip((ElectraForMaskedLM, ElectraForPreTraining), SIZES.values()))
        self.generator.electra.embeddings = self.discriminator.electra.embeddings
        self.generator.generator_lm_head.weight = self.discriminator.electra.embeddings.word_embeddings.weight

    @staticmethod
    def config(width, heads, hidden):
        config = ElectraConfig(
            vocab_size=VOCAB, hidden_size=width, embedding_size=EMBEDDING, num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=hidden, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, max_position_embeddings=CONTEXT, layer_norm_eps=1e-12,
            pad_token_id=None, tie_word_embeddings=True)
        config._attn_implementation = "sdpa"
        return config

    def forward(self, batch):
        ids, mask, labels = (batch[name].long() for name in ("ids", "mask", "labels"))
        predicted = labels != IGNORE
        generated = self.generator(ids, attention_mask=mask, labels=labels)
        corrupted = torch.where(predicted, batch["drawn"].long(), ids)
        replaced = (corrupted != torch.where(predicted, labels, ids)).long()
        judged = self.discriminator(corrupted, attention_mask=mask, labels=replaced)
        return {"logits": generated.logits, "rtd_logits": judged.logits, "mlm_loss": generated.loss,
                "rtd_loss": judged.loss, "loss": generated.loss + WEIGHT * judged.loss}


def blocks():
    """(our name, theirs, out, in) of linear layers but q, k and v, and of norms, whose `in` is None."""
    yield "embed.norm", "discriminator.electra.embeddings.LayerNorm", EMBEDDING, None
    for ours, model, project in (("generator.", "generator", "generator_project"), ("", "discriminator", "project")):
        width, _, hidden = SIZES[ours]
        yield f"embed.{project}", f"{model}.electra.embeddings_project", width, EMBEDDING
        sizes = {"attn.proj": (width, width), "norm1": (width, None), "mlp.up": (hidden, width),
                 "mlp.down": (width, hidden), "norm2": (width, None)}
        for i in range(LAYERS):
            for part, theirs in IN_LAYER.items():
                yield f"{ours}layers.{i}.{part}", f"{model}.electra.encoder.layer.{i}.{theirs}", *sizes[part]
    yield "generator_mlm.dense", "generator.generator_predictions.dense", EMBEDDING, SIZES["generator."][0]
    yield "generator_mlm.norm", "generator.generator_predictions.LayerNorm", EMBEDDING, None
    yield "rtd.dense", "discriminator.discriminator_predictions.dense", WIDTH, WIDTH
    yield "rtd.out", "discriminator.discriminator_predictions.dense_prediction", 1, WIDTH


def shapes():
    out = {"embed.token.weight": (VOCAB, EMBEDDING), "embed.type.weight": (2, EMBEDDING),
           "embed.position.weight": (CONTEXT, EMBEDDING), "generator_mlm.bias": (VOCAB,)}
    for ours, (width, _, _) in SIZES.items():
        for i in range(LAYERS):
            out[f"{ours}layers.{i}.attn.qkv.weight"] = (3 * width, width)
            out[f"{ours}layers.{i}.attn.qkv.bias"] = (3 * width,)
    for ours, _, rows, columns in blocks():
        out[ours + ".weight"] = (rows,) if columns is None else (rows, columns)
        out[ours + ".bias"] = (rows,)
    return out


def links(model):
    """(our name, their parameters, pack, unpack) as in models.py."""
    of = dict(model.named_parameters(remove_duplicate=False))
    same = (lambda a: a, lambda a: [a])
    for ours, theirs in (("token", "word"), ("type", "token_type"), ("position", "position")):
        yield f"embed.{ours}.weight", [of[f"discriminator.electra.embeddings.{theirs}_embeddings.weight"]], *same
    yield "generator_mlm.bias", [of["generator.generator_lm_head.bias"]], *same
    for ours, name in (("generator.", "generator"), ("", "discriminator")):
        for i in range(LAYERS):
            for kind in ("weight", "bias"):
                at = f"{name}.electra.encoder.layer.{i}.attention.self."
                parts = [of[f"{at}{role}.{kind}"] for role in ("query", "key", "value")]
                yield f"{ours}layers.{i}.attn.qkv.{kind}", parts, models.pack_qkv, \
                    lambda a, heads=SIZES[ours][1]: models.unpack_qkv(a, heads)
    for ours, theirs, _, _ in blocks():
        for kind in ("weight", "bias"):
            yield f"{ours}.{kind}", [of[f"{theirs}.{kind}"]], *same


def draw_batches(count, generator):
    """Samples of unequal length, with unequal numbers of labels; about half of what is drawn is what was there."""
    shape = (count, BATCH, CONTEXT)
    mask = (torch.arange(CONTEXT) < torch.tensor(USED)[None, :, None]).expand(shape).int()
    ids, labels, drawn = (torch.randint(0, VOCAB, shape, generator=generator) for _ in range(3))
    drawn = torch.where(torch.rand(shape, generator=generator) < 0.5, labels, drawn)
    labels[(torch.rand(shape, generator=generator) > 0.3) | (mask == 0)] = IGNORE
    labels[:, 0, 1] = 5  # there is one
    return {"ids": (ids * mask).int(), "mask": mask, "labels": labels.int(), "drawn": drawn.int()}


def golden(seed, train):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    generator = torch.Generator().manual_seed(seed)
    params = models.draw(shapes(), generator)
    batch = {name: value[0] for name, value in draw_batches(1, generator).items()}
    steps = draw_batches(STEPS, generator)

    def run(dtype):
        model = Electra(dtype)
        models.load(model, {name: value.to(dtype) for name, value in params.items()}, links)
        out = model(batch)
        out["loss"].backward()
        result = {name: value.detach() for name, value in out.items()}
        result |= {"grad." + name: value for name, value in models.packed(model, links, lambda a: a.grad).items()}
        of_step = (lambda step: model({name: value[step] for name, value in steps.items()})["loss"])
        return result | train(model, of_step, lambda: models.packed(model, links))

    exact, single = run(torch.float64), run(torch.float32)
    out = batch | {"step_" + name: value for name, value in steps.items()}
    out |= {"param." + name: value for name, value in params.items()}
    return exact, single, out | {name: value.float() for name, value in exact.items()}
