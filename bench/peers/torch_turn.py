#!/usr/bin/env python3
"""One turn of a measurement: PyTorch trains a model of Tessera's, and tells each step as a line of JSON.

    build/peers/bin/python bench/peers/torch_turn.py SPEC.json

Weights, batches and learning rates are given, so that in float32 without dropout the losses are Tessera's but for
rounding. SPEC.json is the task that turn_task.py describes. bf16 is that of autocast. The mode is eager, of one process, or
compile (torch.compile), or ddp (DistributedDataParallel), fsdp2 (fully_shard of every block) or tp (DTensor), which knows
gpt2 alone. Processes meet over gloo; with ddp and fsdp2 each has a part of the batch. The models are those of
torch_models.py. Of devices, eager and compile use a GPU where Tessera does.

Seconds of a step are those of the slowest process, from before its batch is made of tensors until gradients are cleared.
A loss is the mean over all that counts in the whole batch, and so are the gradients, however many labels each process
has. peak_rss adds up the processes that train, each by its own peak.
"""
import contextlib
import os
import signal
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import torch_models
import turn_task
from turn_task import IGNORED, require

FAMILIES = {"eager": ("gpt2", "bert"), "compile": ("gpt2", "bert"), "ddp": ("gpt2", "bert"), "fsdp2": ("gpt2", "bert"), "tp": ("gpt2",)}
# What torch_models.Model calls an input, where that is not Tessera's name.
INPUTS = {"next": "follows", "mask": "seen", "masked_positions": "masked"}
# Parts of names of parameters, Tessera's and those of torch_models.Model.
PATHS = (("embed.token.", "token."), ("embed.position.", "position."), ("embed.type.", "segment."),
         ("embed.norm.", "norm."), ("layers.", "blocks."), (".attn.", "."), (".mlp.", "."), ("mlm.dense.", "dense."),
         ("mlm.norm.", "dense_norm."), ("mlm.bias", "head_bias"), ("nsp.", "next."))


def main():
    try:
        if len(sys.argv) != 2:
            raise ValueError("usage: torch_turn.py SPEC.json")
        spec = read_spec(sys.argv[1])
        peak = train(0, spec) if is_alone(spec) else train_in_processes(spec)
        turn_task.tell_end(peak)
    except Exception as error:  # whatever it is, the reader is told
        turn_task.tell_end(failure=sentence(error))


def sentence(error):
    """Of a process that failed, PyTorch reports the whole traceback: the last line says what happened."""
    lines = turn_task.words_of(error)
    return lines[-1] if isinstance(error, processes.ProcessRaisedException) else lines[0]


def read_spec(path):
    spec = turn_task.read_spec(path, FAMILIES)
    require(spec.batch % parts_of(spec) == 0, f"a batch of {spec.batch} is not to be shared out to {spec.processes}")
    require(spec.mode != "tp" or spec.heads % spec.processes == 0,
            f"{spec.heads} heads are not to be shared out to {spec.processes} processes")
    return spec


def is_alone(spec):
    return spec.mode in ("eager", "compile")


def device_of(spec):
    """In PyTorch's words, as which a GPU of AMD is one of CUDA."""
    require(spec.device != "tpu", "PyTorch is not measured on TPUs")
    return "cuda" if spec.device in ("cuda", "rocm") else "cpu"


def parts_of(spec):
    """Of how many parts a batch is; with tp all processes have the whole of it."""
    return spec.processes if spec.mode in ("ddp", "fsdp2") else 1


def train_in_processes(spec):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        processes.spawn(in_process, (spec, folder), nprocs=spec.processes)
        with open(f"{folder}/peak", encoding="ascii") as file:
            return int(file.read())


def in_process(rank, spec, folder):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is sent where the parent has ended
    # Gloo writes of its connections to standard output, which is for the reader alone.
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=spec.processes)
    peak = train(rank, spec)
    if rank == 0:
        with open(f"{folder}/peak", "w", encoding="ascii") as file:
            file.write(str(peak))
    dist.barrier()
    dist.destroy_process_group()


def train(rank, spec):
    """Returns the peak of memory, added up over processes."""
    if spec.cores:
        os.sched_setaffinity(0, {spec.cores[rank]})
    torch.set_num_threads(spec.threads)
    shape = shape_of(spec)
    model, run = parallel(spec, shape)
    optimizer = torch_models.make_optimizer(model, shape)
    batches = Batches(spec, rank)
    if rank == 0:
        turn_task.tell_start(spec, sum(a.numel() for a in model.parameters()),
                             f"PyTorch {torch.__version__.split('+')[0]}")
    # Of what ranks share, all have to drop the same.
    torch.manual_seed(100 + rank % parts_of(spec))

    for step, rate in enumerate(spec.rates):
        begin = time.perf_counter()
        batch = batches.of(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with loss_parallel() if spec.mode == "tp" else contextlib.nullcontext():
            with torch_models.precision(spec.dtype, device_of(spec)):
                loss = run(**batch)
            loss.backward()
        if shape.clip > 0:
            clip_gradients(model, shape.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if device_of(spec) == "cuda":
            torch.cuda.synchronize()
        seconds = over_processes(spec, time.perf_counter() - begin, dist.ReduceOp.MAX)
        loss = over_processes(spec, whole(loss).item(), dist.ReduceOp.SUM) / spec.processes
        if rank == 0:
            turn_task.tell_step(seconds, loss)
    return int(over_processes(spec, turn_task.peak_rss_bytes(), dist.ReduceOp.SUM))


def shape_of(spec):
    return torch_models.Shape(
        spec.family, spec.layers, spec.heads, spec.width, spec.vocabulary, spec.batch // parts_of(spec), spec.context,
        spec.dropout, spec.bias or spec.family == "bert", rate=0.0, betas=(spec.beta1, spec.beta2),
        decay=spec.weight_decay, clip=spec.clip, ffn=spec.ffn_width, norm_eps=spec.norm_eps, adam_eps=spec.eps,
        tied=spec.tied_head or spec.family == "bert")


class SharedHead(torch_models.Model):
    """Whose logits stay where the rows of the vocabulary are."""

    def logits(self, x):
        mesh = self.token.weight.device_mesh
        return super().logits(DTensor.from_local(x, mesh, [Replicate()], run_check=False))


def parallel(spec, shape):
    """The model whose parameters are trained, and what is called. No process ever has what others keep."""
    with torch.device("meta"):
        model = (SharedHead(shape, apart=True) if spec.mode == "tp" else torch_models.Model(shape)).train()
    if spec.mode == "tp":
        mesh = init_device_mesh("cpu", (spec.processes,))
        columns = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
        for block in model.blocks:
            parallelize_module(block, mesh, columns | {"proj": RowwiseParallel(), "down": RowwiseParallel()})
        head = {} if shape.tied else {"head": ColwiseParallel(use_local_output=False)}
        parallelize_module(model, mesh, {"token": RowwiseParallel(input_layouts=Replicate())} | head)
    if spec.mode == "fsdp2":
        mesh = init_device_mesh("cpu", (spec.processes,))
        # In bf16, half the bytes are gathered; gradients are added up in f32.
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for module in [*model.blocks, model]:
            fully_shard(module, mesh=mesh, **({"mp_policy": policy} if spec.dtype == "bf16" else {}))
    load(model.to_empty(device=device_of(spec)), spec.weights)
    if spec.mode == "compile":
        return model, torch.compile(model)
    # Buckets are views of gradients, so that nothing is copied between them.
    return model, DistributedDataParallel(model, gradient_as_bucket_view=True) if spec.mode == "ddp" else model


@torch.no_grad()
def load(model, path):
    lacking = dict(model.named_parameters())

    def targets_of(name):
        return [theirs for theirs in names_of(name, model) if theirs in lacking]

    for name, values in turn_task.tensors_of(path, targets_of):
        targets, value = targets_of(name), torch.from_numpy(values)
        if ".qkv." in name:
            require(len(value) == 3 * model.shape.width, f"{name} has fewer key-value heads than heads")
            value = by_kind(value, model.shape.heads)
        for target, part in zip(targets, value.chunk(len(targets))):
            fill(lacking.pop(target), part, target)
    require(not lacking, f"{path} lacks what PyTorch calls {', '.join(lacking)}")


def names_of(name, model):
    """The parameters of `model` that a parameter of Tessera's would be: one, or queries, keys and values."""
    for ours, theirs in PATHS:
        name = name.replace(ours, theirs)
    apart = not hasattr(model.blocks[0], "qkv")
    return [name.replace(".qkv.", f".{kind}.") for kind in "qkv"] if ".qkv." in name and apart else [name]


def by_kind(rows, heads):
    """Tessera has queries, keys and values of one head next to each other; here come all queries first."""
    return rows.unflatten(0, (heads, 3, -1)).transpose(0, 1).flatten(0, 2)


def fill(parameter, value, name):
    require(parameter.shape == value.shape,
            f"{name} is {list(value.shape)} in the weights, in the model {list(parameter.shape)}")
    if isinstance(parameter, DTensor):
        value = distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)
    parameter.copy_(value)


class Batches:
    """What the model is called with in each step: the part of the batch that is this process's."""

    def __init__(self, spec, rank):
        self.batches = turn_task.Batches(spec)
        self.parts, self.part = parts_of(spec), rank % parts_of(spec)
        self.device = device_of(spec)

    def of(self, step):
        whole_batch = {INPUTS.get(name, name): torch.from_numpy(values).long()
                       for name, values in self.batches.of(step).items()}
        out = {name: values.chunk(self.parts)[self.part].to(self.device) for name, values in whole_batch.items()}
        return out | {"counts": [self.counted(whole_batch.get(name)) for name in ("labels", "follows")]}

    def counted(self, labels):
        """Of the whole batch, as losses and gradients are averaged over processes; 1 where nothing counts."""
        return None if labels is None else max(1, (labels != IGNORED).sum().item()) / self.parts


def clip_gradients(model, most):
    """By the norm of all gradients, of which tp shares out some and not others."""
    kinds = {}
    for parameter in model.parameters():
        kinds.setdefault(isinstance(parameter, DTensor), []).append(parameter)
    norms = [whole(nn.utils.get_total_norm([p.grad for p in some], foreach=True)) for some in kinds.values()]
    norm = torch.linalg.vector_norm(torch.stack(norms))
    for some in kinds.values():
        nn.utils.clip_grads_with_norm_(some, most, norm, foreach=True)


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def over_processes(spec, value, operation):
    if is_alone(spec):
        return value
    value = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(value, operation)
    return value.item()


if __name__ == "__main__":
    main()
