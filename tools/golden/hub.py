#!/usr/bin/env python3
"""Writes tests/golden/hub: the golden models as transformers saves them, and loads what Tessera exports.

    build/golden/bin/python tools/golden/hub.py                   writes tests/golden/hub
    build/golden/bin/python tools/golden/hub.py FAMILY FOLDER     the logits of an exported folder beside those of
                                                                  tests/golden/FAMILY.safetensors

Weights are `param.*` of tests/golden/FAMILY.safetensors (make_golden.py).
"""
import functools
import pathlib
import sys

import safetensors.torch
import torch
import transformers

import bert
import bert_tasks
import causal_classes
import electra
import encoder_decoder
import models
import vit

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
VARIANTS = bert.VARIANTS | bert_tasks.VARIANTS
CLASSES = {"gpt2": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM,
           "gpt2_classes": transformers.GPT2ForSequenceClassification,
           "llama_classes": transformers.LlamaForSequenceClassification, "vit": transformers.ViTForImageClassification,
           **encoder_decoder.CLASSES, **{name: variant.model_class for name, variant in VARIANTS.items()}}


def main():
    if len(sys.argv) == 3:
        return compare(*sys.argv[1:])
    for family in [*CLASSES, "electra"]:
        model, links = empty(family)
        tensors = safetensors.torch.load_file(GOLDEN / f"{family}.safetensors")
        params = {name.removeprefix("param."): a for name, a in tensors.items() if name.startswith("param.")}
        models.load(model, params, links)
        getattr(model, "discriminator", model).save_pretrained(GOLDEN / "hub" / family)
    for unused in GOLDEN.glob("hub/*/generation_config.json"):
        unused.unlink()


def empty(family):
    if family in VARIANTS:
        variant = VARIANTS[family]
        return variant.hf_model(torch.float32), variant.links
    if family in causal_classes.FAMILIES:
        return causal_classes.hf_model(family, torch.float32, False), causal_classes.links(family)
    if family == "electra":
        return electra.Electra(torch.float32), electra.links
    if family == "vit":
        return vit.hf_model(torch.float32), vit.links
    if family in encoder_decoder.NAMES:
        return encoder_decoder.hf_model(family, torch.float32, False), encoder_decoder.of_name(family)
    return models.hf_model(family, torch.float32, False), functools.partial(models.links, family)


def logits_of(family, model, tensors):
    """The logits, and which of them count."""
    if family in VARIANTS:
        return VARIANTS[family].stock(model, tensors)["logits"], VARIANTS[family].counted(tensors)
    if family in encoder_decoder.NAMES:
        source, ids = tensors["source"].long(), tensors["ids"].long()
        return encoder_decoder.logits_of(model, family, source, ids), slice(None)
    return model(tensors["pixel_values"] if family == "vit" else tensors["ids"].long()).logits, slice(None)


def compare(family, folder):
    tensors = safetensors.torch.load_file(GOLDEN / f"{family}.safetensors")
    model = CLASSES[family].from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        logits, seen = logits_of(family, model, tensors)
    difference = (logits - tensors["logits"])[seen].abs().max()
    print(f"{family}: largest difference of logits {difference:.3g}, largest logit "
          f"{tensors['logits'].abs().max():.3g}")


if __name__ == "__main__":
    main()
