#!/usr/bin/env python3
"""Times training steps of PyTorch on several processes over gloo, one thread each.

    build/peers/bin/python bench/peers/torch_parallel.py --mode fsdp2 --processes 2 --cores 0,1

Modes:
    single  one process
    ddp     DistributedDataParallel: each process has a batch of its own
    fsdp2   fully_shard of every block and of what is outside of blocks: the same, with sharded states
    tp      DTensor: heads, feed-forward widths and the vocabulary are shared out, and all processes have one batch

The models and the optimizer are those of torch_models.py. Every process keeps to a core of its own; batches are random and
the same in every step. Prints one JSON line: a step's seconds are those of the slowest process, losses those of the first,
`peak_rss_bytes` has one figure for each process.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import torch_models

MODES = ("single", "ddp", "fsdp2", "tp")


def main():
    args = parse_args()
    if args.mode == "single":
        print(json.dumps(train(0, args)), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        processes.spawn(in_process, (args, folder), nprocs=args.processes)
        with open(f"{folder}/result.json", encoding="ascii") as file:
            print(file.read(), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="ddp")
    parser.add_argument("--model", choices=[name for name, shape in torch_models.SHAPES.items() if shape.family == "gpt2"],
                        default="gpt2-small")
    parser.add_argument("--dtype", choices=torch_models.DTYPES, default="f32")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cores", default="", help="the core of each process, such as 0,1 [not pinned]")
    parser.add_argument("--batch", type=int, default=0, help="samples per process, with tp of all [as the model says]")
    parser.add_argument("--steps", type=int, default=3, help="timed steps")
    parser.add_argument("--warmup", type=int, default=1, help="steps before the timed ones")
    args = parser.parse_args()
    args.cores = [int(core) for core in args.cores.split(",") if core]
    if args.mode == "single":
        args.processes = 1
    elif args.processes < 2:
        parser.error(f"--mode {args.mode} needs at least 2 processes, not {args.processes}")
    if args.steps < 1 or args.warmup < 0 or args.batch < 0:
        parser.error("--steps must be at least 1, --warmup and --batch at least 0")
    if args.cores and len(args.cores) < args.processes:
        parser.error(f"--cores names {len(args.cores)} cores for {args.processes} processes")
    return args


def in_process(rank, args, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=args.processes)
    result = train(rank, args)
    if rank == 0:
        with open(f"{folder}/result.json", "w", encoding="ascii") as file:
            json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


class SharedHead(torch_models.Model):
    """Whose logits stay where the rows of the vocabulary are."""

    def logits(self, x):
        mesh = self.token.weight.device_mesh
        return super().logits(DTensor.from_local(x, mesh, [Replicate()], run_check=False))


def parallel(args, shape):
    """The model whose parameters are trained, and what is called."""
    if args.mode == "tp":
        mesh = init_device_mesh("cpu", (args.processes,))
        model = SharedHead(shape, apart=True).train()
        columns = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
        for block in model.blocks:
            parallelize_module(block, mesh, columns | {"proj": RowwiseParallel(), "down": RowwiseParallel()})
        parallelize_module(model, mesh, {"token": RowwiseParallel(input_layouts=Replicate())})
        return model, model
    model = torch_models.Model(shape).train()
    if args.mode == "ddp":
        # Buckets are views of gradients, so that nothing is copied between them.
        return model, DistributedDataParallel(model, gradient_as_bucket_view=True)
    if args.mode == "fsdp2":
        mesh = init_device_mesh("cpu", (args.processes,))
        # In bf16, half the bytes are gathered; gradients are added up in f32.
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for module in [*model.blocks, model]:
            fully_shard(module, mesh=mesh, **({"mp_policy": policy} if args.dtype == "bf16" else {}))
    return model, model


def train(rank, args):
    if args.cores:
        os.sched_setaffinity(0, {args.cores[rank]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    shape = torch_models.SHAPES[args.model]
    shape = dataclasses.replace(shape, batch=args.batch or shape.batch)
    model, run = parallel(args, shape)
    optimizer = torch_models.make_optimizer(model, shape)
    batches = args.processes if args.mode in ("ddp", "fsdp2") else 1
    torch.manual_seed(2 + rank % batches)
    batch = torch_models.random_batch(shape)
    # Dropout is drawn anew: of what ranks share, all have to drop the same.
    torch.manual_seed(100 + rank % batches)

    seconds, losses = [], []
    for _ in range(args.warmup + args.steps):
        begin = time.perf_counter()
        with loss_parallel() if args.mode == "tp" else contextlib.nullcontext():
            with torch_models.precision(args.dtype):
                loss = run(*batch)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.full_tensor().item() if isinstance(loss, DTensor) else loss.item())
    seconds = torch.tensor(seconds, dtype=torch.float64)
    peaks = [torch_models.peak_rss_bytes()]
    if args.mode != "single":
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        peaks = gathered(peaks[0], args.processes)
    timed = seconds.tolist()[args.warmup:]
    tokens = batches * shape.batch * shape.context
    return torch_models.about() | {
        "mode": args.mode, "model": args.model, "dtype": args.dtype, "processes": args.processes, "batch": shape.batch,
        "step_seconds": [round(s, 5) for s in timed], "tokens_per_s": round(tokens / statistics.median(timed), 2),
        "peak_rss_bytes": peaks, "losses": losses}


def gathered(value, size):
    out = [None] * size
    dist.all_gather_object(out, value)
    return out


if __name__ == "__main__":
    main()
