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
import encoder_decoder
import models

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
CLASSES = {"gpt2": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM,
           "bert": transformers.BertForPreTraining, **encoder_decoder.CLASSES}


def main():
    if len(sys.argv) == 3:
        return compare(*sys.argv[1:])
    for family in CLASSES:
        model, links = empty(family)
        tensors = safetensors.torch.load_file(GOLDEN / f"{family}.safetensors")
        params = {name.removeprefix("param."): a for name, a in tensors.items() if name.startswith("param.")}
        models.load(model, params, links)
        model.save_pretrained(GOLDEN / "hub" / family)
    for unused in GOLDEN.glob("hub/*/generation_config.json"):
        unused.unlink()


def empty(family):
    if family == "bert":
        return bert.hf_model(torch.float32), bert.links
    if family in encoder_decoder.NAMES:
        return encoder_decoder.hf_model(family, torch.float32, False), encoder_decoder.of_name(family)
    return models.hf_model(family, torch.float32, False), functools.partial(models.links, family)


def compare(family, folder):
    tensors = safetensors.torch.load_file(GOLDEN / f"{family}.safetensors")
    model = CLASSES[family].from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        if family in encoder_decoder.NAMES:
            logits = encoder_decoder.logits_of(model, family, tensors["source"].long(), tensors["ids"].long())
        elif family == "bert":
            logits = bert.forward(model, tensors)["logits"]
        else:
            logits = model(tensors["ids"].long()).logits
    print(f"{family}: largest difference of logits {(logits - tensors['logits']).abs().max():.3g}, largest logit "
          f"{tensors['logits'].abs().max():.3g}")


if __name__ == "__main__":
    main()
