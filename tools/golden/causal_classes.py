"""GPT-2 and LLaMA that tell the class of a sample by its last token, in transformers and in Tessera's layout."""
import functools

import torch

import models
from models import BATCH, CONTEXT, VOCAB, WIDTH

STEPS, IGNORE, CLASSES, PAD = 10, -100, 3, 0
USED = (16, 11, 1, 7)  # tokens of each sample that are not padding
FAMILIES = {"gpt2_classes": ("gpt2", 22), "llama_classes": ("llama", 23)}


def shapes(family):
    out = {name: shape for name, shape in models.shapes(family).items() if not name.startswith("head.")}
    return out | {"score.weight": (CLASSES, WIDTH)}


def draw_batches(count, generator):
    shape = (count, BATCH, CONTEXT)
    used = torch.tensor(USED)[None, :, None]
    ids = torch.randint(1, VOCAB, shape, generator=generator)
    ids = torch.where(torch.arange(CONTEXT) < used, ids, PAD)
    labels = torch.randint(0, CLASSES, shape[:2], generator=generator)
    labels[:, 3] = IGNORE
    last = (torch.tensor(USED) - 1).expand(shape[:2])
    return {"ids": ids.int(), "last": last.int(), "labels": labels.int()}


def hf_model(name, dtype, exact):
    return models.hf_model(FAMILIES[name][0], dtype, exact, CLASSES)


def links(name):
    return functools.partial(models.links, FAMILIES[name][0])


def forward(model, batch):
    out = model(batch["ids"].long(), labels=batch["labels"].long())
    return {"logits": out.logits, "loss": out.loss}


def golden(name, train):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    family, seed = FAMILIES[name]
    generator = torch.Generator().manual_seed(seed)
    params = models.draw(shapes(family), generator)
    batch = {key: value[0] for key, value in draw_batches(1, generator).items()}
    steps = draw_batches(STEPS, generator)

    def run(dtype):
        model = hf_model(name, dtype, dtype == torch.float64)
        models.load(model, {key: value.to(dtype) for key, value in params.items()}, links(name))
        out = forward(model, batch)
        out["loss"].backward()
        result = {key: value.detach() for key, value in out.items()}
        grads = models.packed(model, links(name), lambda a: a.grad)
        result |= {"grad." + key: value for key, value in grads.items()}
        of_step = (lambda step: forward(model, {key: value[step] for key, value in steps.items()})["loss"])
        return result | train(model, of_step, lambda: models.packed(model, links(name)))

    exact, single = run(torch.float64), run(torch.float32)
    plain = models.plain_logits(family, {key: value.double() for key, value in params.items()}, batch["ids"],
                                batch["last"])
    assert (exact["logits"] - plain).abs().max() < 1e-12, "the packed layout does not give transformers' logits"
    assert (exact["logits"] - single["logits"]).abs().max() < 1e-5
    out = batch | {"step_" + key: value for key, value in steps.items()}
    out |= {"param." + key: value for key, value in params.items()}
    return exact, single, out | {key: value.float() for key, value in exact.items()}
