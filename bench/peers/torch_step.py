#!/usr/bin/env python3
"""Times training steps of PyTorch on the shapes that Tessera is benchmarked on.

    bench/peers/setup.sh build/peers
    build/peers/bin/python bench/peers/torch_step.py --model gpt2-small --threads 2

The models are those of torch_models.py, in float32 or, with --dtype bf16, under autocast; the same random batch in every
step. Prints one JSON line; seconds are medians over `--steps` steps after `--warmup`, losses are of all steps. Forward
includes the loss, optimizer includes clipping. The first steps of `--compile` compile: warm up by 3 or more.
"""
import argparse
import dataclasses
import json
import statistics
import time

import torch
import torch.nn as nn

import torch_models


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    shape = torch_models.SHAPES[args.model]
    shape = dataclasses.replace(shape, batch=args.batch or shape.batch, context=args.context or shape.context)
    model = torch_models.Model(shape).train()
    run = torch.compile(model) if args.compile else model
    optimizer = torch_models.make_optimizer(model, shape)
    batch = torch_models.random_batch(shape)

    times = {"step": [], "forward": [], "backward": [], "optimizer": []}
    losses = []
    for step in range(args.warmup + args.steps):
        marks = [time.perf_counter()]
        with torch_models.precision(args.dtype):
            loss = run(*batch)
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
    parser.add_argument("--model", choices=torch_models.SHAPES, default="gpt2-small")
    parser.add_argument("--dtype", choices=torch_models.DTYPES, default="f32")
    parser.add_argument("--batch", type=int, default=0, help="samples of a step [as the model says]")
    parser.add_argument("--context", type=int, default=0, help="tokens of a sample [as the model says]")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="timed steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before the timed ones")
    parser.add_argument("--compile", action="store_true", help="torch.compile; needs a C++ compiler")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.threads < 1 or args.steps < 1 or args.warmup < 0:
        parser.error("--threads and --steps must be at least 1, --warmup at least 0")
    return args


def result(args, shape, model, times, losses):
    median = {part: statistics.median(values) for part, values in times.items()}
    return torch_models.about() | {
        "model": args.model, "dtype": args.dtype, "threads": args.threads, "compile": args.compile,
        "parameters": sum(a.numel() for a in model.parameters()),
        "step_seconds": {"median": round(median["step"], 5), "min": round(min(times["step"]), 5),
                         "max": round(max(times["step"]), 5)},
        "all_step_seconds": [round(seconds, 5) for seconds in times["step"]],
        **{part + "_seconds": round(median[part], 5) for part in ("forward", "backward", "optimizer")},
        "tokens_per_s": round(shape.batch * shape.context / median["step"], 1),
        "peak_rss_bytes": torch_models.peak_rss_bytes(), "losses": losses,
    }


if __name__ == "__main__":
    main()
