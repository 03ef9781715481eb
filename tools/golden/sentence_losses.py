#!/usr/bin/env python3
"""Writes tests/golden/sentence_losses.json: losses of 20 steps of encoders that learn vectors of texts, by
sentence-transformers' MultipleNegativesRankingLoss and Pooling, in float64.

    build/golden/bin/python tools/golden/sentence_losses.py [FOLDER]

The encoders and their first weights are those of the golden files named in the result. Text t of sample i of step s,
of T texts, is text r = (4s + i) T + t; it has 3 + 5r mod 14 tokens, of which number k is
2 + (r r 31 + k k 17 + r k) mod 59: none is RoBERTa's padding, which has no position. Behind them are zeros.
"""
import json
import pathlib
import sys

import safetensors.torch
import sentence_transformers
import torch
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.models import Pooling

import bert
import label_losses
import models

CASES = {"pairs": (2, "mean"), "triples": (3, "mean"), "first": (2, "cls")}


class Encoder(torch.nn.Module):
    def __init__(self, body, pooling):
        super().__init__()
        self.body, self.pooling = body, Pooling(models.WIDTH, pooling_mode=pooling)

    def forward(self, features):
        rows = self.body(**features).last_hidden_state
        return self.pooling({"token_embeddings": rows, "attention_mask": features["attention_mask"]})


def batch(step, texts):
    columns = []
    for t in range(texts):
        r = ((step * models.BATCH + torch.arange(models.BATCH)) * texts + t).view(-1, 1)
        k = torch.arange(models.CONTEXT).view(1, -1)
        mask = (k < 3 + 5 * r % 14).long()
        columns.append({"input_ids": (2 + (r * r * 31 + k * k * 17 + r * k) % 59) * mask, "attention_mask": mask})
    return columns


def losses(name, texts, pooling, there):
    params = {path.removeprefix("param."): value.double() for path, value in there.items() if path.startswith("param.")}
    variant = bert.VARIANTS[name]
    model = variant.hf_model(torch.float64)
    models.load(model, params, variant.links)
    body = getattr(model, name.split("_")[0])
    body.pooler = None  # which nothing reads
    loss = MultipleNegativesRankingLoss(Encoder(body, pooling))
    return label_losses.train(body, lambda step: loss(batch(step, texts), None))


def main():
    golden = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else golden
    torch.set_num_threads(1)
    out = {"made_with": f"torch {torch.__version__.split('+')[0]}, sentence-transformers {sentence_transformers.__version__}"}
    for name in ("bert_classes", "roberta_classes"):
        there = safetensors.torch.load_file(golden / f"{name}.safetensors")
        out[name] = {case: losses(name, *how, there) for case, how in CASES.items()}
        print(name, {case: (values[0], values[-1]) for case, values in out[name].items()})
    (folder / "sentence_losses.json").write_text(json.dumps(out))


if __name__ == "__main__":
    main()
