#!/usr/bin/env python3
"""Times training steps of PyTorch on the shapes that Tessera is benchmarked on, written as a careful user would.

    bench/peers/setup.sh build/peers
    build/peers/bin/python bench/peers/torch_step.py --model gpt2-small --threads 2

Models:
    gpt2-small  12 layers, 12 heads, width 768, vocabulary 50257, batch 4 x 256, dropout 0.1, biases, no clipping
    nanogpt     4 layers, 4 heads, width 128, vocabulary 65, batch 12 x 64, no dropout, no biases, clipping at 1.0

Both in float32, pre-norm, tied head, attention by scaled_dot_product_attention, fused AdamW, the same random batch in
every step. Prints one JSON line; seconds are medians over `--steps` steps after `--warmup`, losses are of all steps.
Forward includes the loss, optimizer includes clipping. The first steps of `--compile` compile: warm up by 3 or more.
"""
import argparse
import dataclasses
import json
import platform
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Shape:
    layers: int
    heads: int
    width: int
    vocab: int
    batch: int
    context: int
    dropout: float
    bias: bool
    rate: float
    betas: tuple
    clip: float  # 0: none


SHAPES = {
    "gpt2-small": Shape(12, 12, 768, 50257, 4, 256, 0.1, True, 1e-4, (0.9, 0.95), 0.0),
    "nanogpt": Shape(4, 4, 128, 65, 12, 64, 0.0, False, 1e-3, (0.9, 0.99), 1.0),
}


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    shape = SHAPES[args.model]
    model = Model(shape).train()
    run = torch.compile(model) if args.compile else model
    optimizer = make_optimizer(model, shape)
    ids = torch.randint(0, shape.vocab, (shape.batch, shape.context))
    labels = torch.randint(0, shape.vocab, (shape.batch, shape.context))

    times = {"step": [], "forward": [], "backward": [], "optimizer": []}
    losses = []
    for step in range(args.warmup + args.steps):
        marks = [time.perf_counter()]
        loss = run(ids, labels)
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        if shape.clip > 0:
            nn.utils.clip_grad_norm_(model.parameters(), shape.clip, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        marks.append(time.perf_counter())
        losses.append(loss.item())
        if step >= args.warmup:
            times["step"].append(marks[3] - marks[0])
            for k, part in enumerate(("forward", "backward", "optimizer")):
                times[part].append(marks[k + 1] - marks[k])
    print(json.dumps(result(args, shape, model, times, losses)), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SHAPES, default="gpt2-small")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="timed steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before the timed ones")
    parser.add_argument("--compile", action="store_true", help="torch.compile; needs a C++ compiler")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.threads < 1 or args.steps < 1 or args.warmup < 0:
        parser.error("--threads and --steps must be at least 1, --warmup at least 0")
    return args


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, bias = shape.width, shape.bias
        self.shape = shape
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        shape, drop = self.shape, self.shape.dropout
        batch, seq, width = x.shape
        rows = self.qkv(self.norm1(x)).view(batch, seq, 3, shape.heads, width // shape.heads)
        q, k, v = rows.permute(2, 0, 3, 1, 4)  # each [batch, heads, seq, head_dim]
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True)
        x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(batch, seq, width)), drop)
        h = F.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + F.dropout(self.down(h), drop)


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token = nn.Embedding(shape.vocab, shape.width)
        self.position = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, bias=shape.bias)
        for parameter in self.parameters():
            if parameter.ndim >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, labels):
        x = F.dropout(self.token(ids) + self.position.weight[: ids.shape[1]], self.shape.dropout)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make_optimizer(model, shape):
    decayed = [a for a in model.parameters() if a.ndim >= 2]
    others = [a for a in model.parameters() if a.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=shape.rate, betas=shape.betas, fused=True)


def result(args, shape, model, times, losses):
    median = {part: statistics.median(values) for part, values in times.items()}
    return {
        "peer": "torch", "torch": torch.__version__, "python": platform.python_version(), "cpu": cpu_name(),
        "model": args.model, "threads": args.threads, "compile": args.compile,
        "parameters": sum(a.numel() for a in model.parameters()),
        "step_seconds": {"median": round(median["step"], 5), "min": round(min(times["step"]), 5),
                         "max": round(max(times["step"]), 5)},
        "all_step_seconds": [round(seconds, 5) for seconds in times["step"]],
        **{part + "_seconds": round(median[part], 5) for part in ("forward", "backward", "optimizer")},
        "tokens_per_s": round(shape.batch * shape.context / median["step"], 1),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),  # Linux counts KiB
        "losses": losses,
    }


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
