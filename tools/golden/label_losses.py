#!/usr/bin/env python3
"""Writes tests/golden/label_losses.json: losses of 20 steps of transformers' classifiers that learn numbers or several
labels, by PyTorch in float64.

    build/golden/bin/python tools/golden/label_losses.py [FOLDER]

The models, their first weights and the tokens of their ten batches, which come twice, are those of the golden files
named in the result. Label k of row i of the batch of step s, with n = (4s + i) 3 + k: 37n mod 50 / 10 as f32; of
several 1 where 7n mod 5 < 2, else 0. A single number has the first row of the classifier.
"""
import json
import pathlib
import sys

import safetensors.torch
import torch

import bert
import causal_classes
import make_golden
import models

STEPS, CLASSES = 20, 3
TASKS = {"regression": (3, "regression"), "regression_of_one": (1, None), "multi_label": (3, "multi_label_classification")}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    golden = root / "tests" / "golden"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else golden
    torch.set_num_threads(1)
    out = {"made_with": f"torch {torch.__version__.split('+')[0]}"}
    for name in ("bert_classes", "roberta_classes", "llama_classes"):
        there = safetensors.torch.load_file(golden / f"{name}.safetensors")
        out[name] = {task: losses(name, there, *how) for task, how in TASKS.items()}
        print(name, {task: (values[0], values[-1]) for task, values in out[name].items()})
    (folder / "label_losses.json").write_text(json.dumps(out))


def losses(name, there, count, problem_type):
    params = {path.removeprefix("param."): value.double() for path, value in there.items() if path.startswith("param.")}
    for path in params:
        if path.startswith(("classifier.weight", "classifier.bias", "classifier.out_proj.", "score.")):
            params[path] = params[path][:count]
    if name == "llama_classes":
        model, links = models.hf_model("llama", torch.float64, True, count), causal_classes.links(name)
    else:
        variant = bert.VARIANTS[name]
        config = variant.config
        variant.config = lambda: with_labels(config(), count)
        model, links = variant.hf_model(torch.float64), variant.links
        variant.config = config
    model.config.problem_type = problem_type  # of one label transformers finds it
    models.load(model, params, links)

    def loss_of(step):
        batch = {key: there[f"step_{key}"][step % 10].long() for key in ("ids", "types", "mask") if f"step_{key}" in there}
        inputs = {"input_ids": batch["ids"]}
        if "mask" in batch:
            inputs["attention_mask"] = batch["mask"]
        if "types" in batch:
            inputs["token_type_ids"] = batch["types"]
        n = torch.arange(models.BATCH * CLASSES).view(models.BATCH, CLASSES)[:, :count] + step % 10 * models.BATCH * CLASSES
        labels = (7 * n % 5 < 2).double() if problem_type == "multi_label_classification" else 37 * n % 50 / 10.0
        return model(**inputs, labels=labels.double()).loss

    return train(model, loss_of)


def with_labels(config, count):
    config.num_labels = count
    return config


def train(model, loss_of):
    decayed = [a for a in model.parameters() if a.ndim >= 2]
    others = [a for a in model.parameters() if a.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), eps=1e-8)
    out = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = make_golden.learning_rate(step, 1e-3, 1e-4, 3, STEPS)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(step)
        loss.backward()
        make_golden.clip(model.parameters())
        out.append(round(loss.item(), 12))
        optimizer.step()
    return out


if __name__ == "__main__":
    main()
