#!/usr/bin/env python3
"""Times data parallel training steps of PyTorch: DistributedDataParallel over gloo, one thread per process.

    build/peers/bin/python bench/peers/torch_ddp.py --processes 2 --cores 0,1

The model and the optimizer are those of torch_step.py, GPT-2 small. Every process keeps to a core of its own and
has a random batch of its own, the same in every step; one process trains without DDP. Prints one JSON line: a step's
seconds are those of the slowest process, losses those of the first.
"""
import argparse
import dataclasses
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.nn.parallel import DistributedDataParallel

import torch_step


def main():
    args = parse_args()
    if args.processes == 1:
        print(json.dumps(train(0, args, None)), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        processes.spawn(in_process, (args, folder), nprocs=args.processes)
        with open(f"{folder}/result.json", encoding="ascii") as file:
            print(file.read(), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cores", default="", help="the core of each process, such as 0,1 [not pinned]")
    parser.add_argument("--batch", type=int, default=4, help="samples of 256 tokens per process")
    parser.add_argument("--steps", type=int, default=3, help="timed steps")
    parser.add_argument("--warmup", type=int, default=1, help="steps before the timed ones")
    args = parser.parse_args()
    args.cores = [int(core) for core in args.cores.split(",") if core]
    if min(args.processes, args.batch, args.steps) < 1 or args.warmup < 0:
        parser.error("--processes, --batch and --steps must be at least 1, --warmup at least 0")
    if args.cores and len(args.cores) < args.processes:
        parser.error(f"--cores names {len(args.cores)} cores for {args.processes} processes")
    return args


def in_process(rank, args, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=args.processes)
    result = train(rank, args, dist)
    if rank == 0:
        with open(f"{folder}/result.json", "w", encoding="ascii") as file:
            json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


def train(rank, args, group):
    if args.cores:
        os.sched_setaffinity(0, {args.cores[rank]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    shape = dataclasses.replace(torch_step.SHAPES["gpt2-small"], batch=args.batch)
    model = torch_step.Model(shape).train()
    # Buckets are views of gradients, so that nothing is copied between them.
    run = DistributedDataParallel(model, gradient_as_bucket_view=True) if group else model
    optimizer = torch_step.make_optimizer(model, shape)
    torch.manual_seed(2 + rank)
    ids, labels = torch.randint(0, shape.vocab, (2, shape.batch, shape.context))

    seconds, losses = [], []
    for _ in range(args.warmup + args.steps):
        begin = time.perf_counter()
        loss = run(ids, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    seconds = torch.tensor(seconds, dtype=torch.float64)
    if group:
        group.all_reduce(seconds, group.ReduceOp.MAX)
    timed = seconds.tolist()[args.warmup:]
    tokens = args.processes * shape.batch * shape.context
    return {"peer": "torch", "torch": torch.__version__, "processes": args.processes, "batch": args.batch,
            "step_seconds": [round(s, 5) for s in timed], "tokens_per_s": round(tokens / statistics.median(timed), 2),
            "losses": losses}


if __name__ == "__main__":
    main()
