#!/usr/bin/env python3
"""Writes tests/golden/fifty_steps.json: the losses of fifty steps by PyTorch in float64, with betas near 1.

    build/golden/bin/python tools/golden/fifty_steps.py [FOLDER]

The models, their first weights and their ten batches are those of the golden files named in the result; the batches
come five times. AdamW with weight decay on tensors of two or more dims, clipping, linear warm-up over ten steps and a
cosine behind it. The mean is over all labels of a step, of which its rows have unequal numbers.
"""
import json
import pathlib
import sys

import safetensors.torch
import torch

import bert
import encoder_decoder
import make_golden

STEPS, WARMUP, BETAS = 50, 10, (0.999, 0.9999)
RATE, LEAST, DECAY = 1e-3, 1e-4, 0.1


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    golden = root / "tests" / "golden"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else golden
    torch.set_num_threads(1)
    out = {}
    for name, make in models().items():
        losses = {}
        for beta in BETAS:
            exact, tensors = make(lambda model, loss, packed: {"losses": train(model, loss, beta)})
            losses[str(beta)] = [round(loss, 12) for loss in exact["losses"].tolist()]
        there = safetensors.torch.load_file(golden / f"{name}.safetensors")
        for path, value in there.items():
            if path.startswith(("param.", "step_")):
                assert torch.equal(value, tensors[path]), f"{name}: {path} is not that of the golden file"
        out[name] = losses
        print(name, losses[str(BETAS[0])][0], losses[str(BETAS[0])][-1])
    (folder / "fifty_steps.json").write_text(json.dumps({"made_with": f"torch {torch.__version__.split('+')[0]}"} | out))


def models():
    """By the name of a golden file: what makes its tensors with a given training, in float64 first."""
    def causal(family, seed):
        def make(train):
            # golden_model() returns what is rounded; the runs in float64 and float32 come in this order
            runs = []
            make_golden.train = lambda *of: runs.append(train(*of)) or runs[-1]
            tensors = make_golden.golden_model(family, seed)
            return runs[0], tensors
        return make

    def task(golden):
        def make(train):
            exact, _, tensors = golden(train)
            return exact, tensors
        return make

    return {"gpt2": causal("gpt2", 11), "llama": causal("llama", 12),
            "bert": task(lambda train: bert.golden(bert.VARIANTS["bert"], train)),
            "t5_v1_1": task(lambda train: encoder_decoder.golden("t5_v1_1", seed_of("t5_v1_1"), train, make_golden.mean_loss))}


def seed_of(name):
    return dict(zip(encoder_decoder.NAMES, (16, 17, 18)))[name]


def train(model, loss_of_step, beta2):
    decayed = [a for a in model.parameters() if a.ndim >= 2]
    others = [a for a in model.parameters() if a.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  betas=(0.9, beta2), eps=1e-8)
    losses = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = make_golden.learning_rate(step, RATE, LEAST, WARMUP, STEPS)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of_step(step % make_golden.STEPS)
        loss.backward()
        make_golden.clip(model.parameters())
        losses.append(loss.item())
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


if __name__ == "__main__":
    main()
