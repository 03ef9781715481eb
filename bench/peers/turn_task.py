"""What torch_turn.py and jax_turn.py have in common: the task that they are given, and how they tell what they did.

The task is a file of JSON with these names:

    family              gpt2 or bert
    layers, heads, width, ffn_width, context, vocabulary, dropout, bias, tied_head, norm_eps
    batch               samples of a step, over all processes
    beta1, beta2, eps, weight_decay, clip       of AdamW; clip 0: none
    rates               the learning rate of each step
    dtype               f32, or bf16 where products are computed
    mode                one of those that the program knows
    processes, threads  threads are those of each process
    device              cpu, or what Tessera calls the plugin that it runs on, such as cuda
    plugin              the file of that; empty: none
    devices             of the plugin
    cores               the core of each process; empty: not pinned
    weights             a file of safetensors with Tessera's parameters, each of them whole
    inputs              [{"name": "ids", "shape": [batch, context]}, ...]
    batches             a file of little-endian int32: for each step, for each input in that order, all its elements

What may be missing: tied_head, true; device, cpu; plugin, none; devices, 1.

The first line that is told says what is trained; then comes one for each step, and at the end one with the code 0 or,
of an error, 1 and a message.
"""
import json
import math
import resource
import types

import numpy as np

NAMES = ("family", "layers", "heads", "width", "ffn_width", "context", "vocabulary", "dropout", "bias", "norm_eps",
         "batch", "beta1", "beta2", "eps", "weight_decay", "clip", "rates", "dtype", "mode", "processes", "threads",
         "cores", "weights", "batches", "inputs")
INPUTS = ("ids", "labels", "types", "next", "mask", "masked_positions")
DTYPES = ("f32", "bf16")
STANDARD = {"tied_head": True, "device": "cpu", "plugin": "", "devices": 1}
IGNORED = -100  # the label of what does not count: Tessera's and cross_entropy's


def tell(line):
    print(json.dumps(line), flush=True)


def tell_start(spec, parameters, library):
    tell({"parameters": parameters, "tokens_per_step": spec.batch * spec.context, "devices": max(spec.processes, spec.devices),
          "flops_per_step": 0, "planned_bytes": 0, "planned_host_bytes": 0, "kernels": [library]})


def tell_step(seconds, loss):
    tell({"seconds": seconds, "loss": loss if math.isfinite(loss) else None})


def tell_end(peak_rss=0, failure=""):
    tell({"code": 1 if failure else 0, "message": failure, "planned_only": False, "peak_rss": peak_rss})


def words_of(error):
    """The lines of its message; of one that has none, its kind."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def require(holds, otherwise):
    if not holds:
        raise ValueError(otherwise)


def read_spec(path, families):
    """`families`: of each mode that the program knows, those whose models it trains."""
    with open(path, encoding="utf-8") as file:
        spec = types.SimpleNamespace(**(STANDARD | json.load(file)))
    lacking = [name for name in NAMES if not hasattr(spec, name)]
    require(not lacking, f"{path} lacks {', '.join(lacking)}")
    require(spec.mode in families, f"mode is {spec.mode}; it can be {', '.join(families)}")
    require(spec.family in families[spec.mode], f"mode {spec.mode} does not know models of the family {spec.family}")
    require(spec.dtype in DTYPES, f"dtype is {spec.dtype}; it can be {', '.join(DTYPES)}")
    require(spec.processes >= 1 and spec.threads >= 1, "processes and threads must be at least 1")
    require(spec.mode not in ("eager", "compile", "dp") or spec.processes == 1,
            f"mode {spec.mode} is one process, not {spec.processes}")
    require(spec.batch % spec.devices == 0, f"a batch of {spec.batch} is not to be shared out to {spec.devices} devices")
    require(not spec.cores or len(spec.cores) >= spec.processes,
            f"cores names {len(spec.cores)} for {spec.processes} processes")
    unknown = [put["name"] for put in spec.inputs if put["name"] not in INPUTS]
    require(not unknown, f"the input {', '.join(unknown)} is not known")
    return spec


def tensors_of(path, wanted):
    """The name and the float32 values of each tensor of a safetensors file whose name is `wanted`.

    The file has 8 bytes with the size of a JSON header, the header, and the tensors.
    """
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        for name, about in header.items():
            if not wanted(name):
                continue  # a moment, a counter
            first, last = about["data_offsets"]
            data = bytearray(last - first)
            file.seek(8 + size + first)
            file.readinto(data)
            yield name, np.frombuffer(data, dtype=np.float32).reshape(about["shape"])


class Batches:
    """The whole batch of each step, as int32 under Tessera's names."""

    def __init__(self, spec):
        self.inputs = [(put["name"], put["shape"], math.prod(put["shape"])) for put in spec.inputs]
        size = 4 * sum(size for _, _, size in self.inputs)
        with open(spec.batches, "rb") as file:
            data = bytearray(file.read(size * len(spec.rates)))
        require(len(data) == size * len(spec.rates),
                f"{spec.batches} has {len(data)} bytes, not {size} for each of {len(spec.rates)} steps")
        self.steps = np.frombuffer(data, dtype=np.int32).reshape(len(spec.rates), size // 4)

    def of(self, step):
        out, offset = {}, 0
        for name, shape, size in self.inputs:
            out[name] = self.steps[step, offset : offset + size].reshape(shape)
            offset += size
        return out


def peak_rss_bytes():
    """Of this program; getrusage counts also what ran in this process before exec."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        peaks = [line.split()[1] for line in file if line.startswith("VmHWM:")]
    return int((peaks or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0]) * 1024  # Linux counts KiB
