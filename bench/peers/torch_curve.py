#!/usr/bin/env python3
"""Trains the nanoGPT recipe in PyTorch from the weights, with the batches and rates of a run of Tessera: bench/curves.py.

--start is the checkpoint of step 0 of that run: its weights, its characters. --rates is its metrics.jsonl, which has the
learning rate of each step. Samples begin where Tessera's do: src/tessera/data/sampler.h, random offsets. Prints one JSON
line: the loss of each step, and the mean loss over the held-out part of the text after the last one.
"""
import argparse
import dataclasses
import json
import math
import pathlib

import torch
import torch.nn as nn

import torch_models

OFFSET_KEY = 0xB2E0EC7B1A64CAB3  # random_key(1, "data.offset"): seed 1
HELD_OUT = 0.1
# Names of parameters, Tessera's and those of torch_models.Model.
PATHS = (("embed.token.", "token."), ("embed.position.", "position."), ("layers.", "blocks."), (".attn.", "."),
         (".mlp.", "."))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--rates", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--data", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--dtype", choices=torch_models.DTYPES, default="f32")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    manifest = json.loads((args.start / "manifest.json").read_text(encoding="utf-8"))
    train, held = tokens_of(args.data, manifest)
    shape = dataclasses.replace(torch_models.SHAPES["nanogpt"], vocab=len(characters_of(manifest)))
    model = torch_models.Model(shape).train()
    load(model, args.start / manifest["files"][0]["name"])
    optimizer = torch_models.make_optimizer(model, shape)

    losses = []
    for step, rate in enumerate(rates_of(args.rates)):
        for group in optimizer.param_groups:
            group["lr"] = rate
        begins = [offset(step * shape.batch + i, len(train) - shape.context) for i in range(shape.batch)]
        rows = torch.stack([train[begin:begin + shape.context + 1] for begin in begins])
        with torch_models.precision(args.dtype):
            loss = model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), shape.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    print(json.dumps(torch_models.about() | {"losses": losses, "held_out": held_out(model, held, args.dtype)}))


def rates_of(file):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line["lr"] for line in lines if line["kind"] == "train"]


def characters_of(manifest):
    return json.loads(manifest["texts"]["vocabulary"])["characters"]


def tokens_of(file, manifest):
    ids = {c: i for i, c in enumerate(characters_of(manifest))}
    tokens = torch.tensor([ids[c] for c in file.read_text(encoding="utf-8")])
    size = math.floor((1 - HELD_OUT) * len(tokens) + 1e-6)
    return tokens[:size], tokens[size:]


def load(model, file):
    """Of a safetensors file: 8 bytes with the size of a JSON header, the header, the tensors."""
    data = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    found = {}
    for name, about in header.items():
        for ours, theirs in PATHS:
            name = name.replace(ours, theirs)
        if about.get("dtype") == "F32" and name in model.state_dict():
            first, last = about["data_offsets"]
            value = torch.frombuffer(data, dtype=torch.float32, offset=begin + first,
                                     count=(last - first) // 4).view(about["shape"]).clone()
            found[name] = by_kind(value, model.shape) if ".qkv." in name else value
    model.load_state_dict(found)


def by_kind(rows, shape):
    """Tessera has queries, keys and values of one head next to each other; here come all queries first."""
    return rows.view(shape.heads, 3, shape.width // shape.heads, -1).transpose(0, 1).reshape(rows.shape)


def philox(key, block):
    """Philox-4x32-10 at step 0 (Salmon et al. 2011): four words of 32 random bits."""
    c, k0, k1 = [block & 0xFFFFFFFF, block >> 32, 0, 0], key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def offset(sample, size):
    low, high, _, _ = philox(OFFSET_KEY, sample)
    return (high << 32 | low) * size >> 64


@torch.no_grad()
def held_out(model, tokens, dtype):
    """The mean over every label; the last window may be shorter."""
    model.eval()
    total, context = 0.0, model.shape.context
    windows = [tokens[i:i + context + 1] for i in range(0, len(tokens) - 1, context)]
    full = [window for window in windows if len(window) == context + 1]
    batches = [torch.stack(full[i:i + 64]) for i in range(0, len(full), 64)]
    batches += [window[None] for window in windows if len(window) <= context]
    for rows in batches:
        with torch_models.precision(dtype):
            total += model(rows[:, :-1], rows[:, 1:]).item() * rows[:, 1:].numel()
    return total / (len(tokens) - 1)


if __name__ == "__main__":
    main()
