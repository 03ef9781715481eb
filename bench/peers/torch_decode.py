#!/usr/bin/env python3
"""GPT-2 small in PyTorch that writes tokens one by one with a cache of keys and values: the peer of `tessera sample`.

float32, one text, attention by scaled_dot_product_attention over caches that are allocated once, without gradients. The
next token is drawn from the softmax, on the CPU. Weights are random: the time does not depend on them. Prints one JSON
line; `token_seconds` are of every token behind the first.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, VOCABULARY = 12, 12, 768, 50257


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=1000, help="to write behind a prompt of one")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.threads < 1 or not 2 <= args.tokens < args.context:
        parser.error("--threads must be at least 1, --tokens at least 2 and below --context")
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    with torch.inference_mode():
        model = Model(args.context).eval()
        ids, marks = torch.zeros(1, dtype=torch.long), []
        for position in range(args.tokens):
            probabilities = F.softmax(model(ids, position)[0], dim=-1)
            ids = torch.multinomial(probabilities, 1)
            marks.append(time.perf_counter())
    print(json.dumps({
        "peer": "torch", "torch": torch.__version__, "threads": args.threads, "context": args.context,
        "parameters": sum(a.numel() for a in model.parameters()),
        "token_seconds": [round(b - a, 6) for a, b in zip(marks, marks[1:])],
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))  # Linux counts KiB


class Block(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        size = (1, HEADS, context, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(size))
        self.register_buffer("values", torch.zeros(size))

    def forward(self, x, position):
        q, k, v = self.qkv(self.norm1(x)).view(3, 1, HEADS, 1, WIDTH // HEADS)
        self.keys[:, :, position] = k[:, :, 0]
        self.values[:, :, position] = v[:, :, 0]
        y = F.scaled_dot_product_attention(q, self.keys[:, :, :position + 1], self.values[:, :, :position + 1])
        x = x + self.proj(y.reshape(1, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(context, WIDTH)
        self.blocks = nn.ModuleList(Block(context) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.ndim >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, position):
        x = self.token(ids) + self.position.weight[position]
        for block in self.blocks:
            x = block(x, position)
        return F.linear(self.norm(x), self.token.weight)


if __name__ == "__main__":
    main()
