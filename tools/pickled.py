"""What tools/convert_megatron.py and tools/convert_fairseq.py share: they read pickled checkpoints with PyTorch, which
Tessera does not, and write folders that it reads."""
import argparse
import json
import os
import pathlib
import pickle
import re
import struct
import sys

import torch

DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16"}


class Refused(Exception):
    """What is wrong and what to do; it is printed without a trace."""


def require(true, *words):
    if not true:
        raise Refused(" ".join(map(str, words)))


def run(convert, parser):
    """Reads flags, converts, prints errors."""
    parser.add_argument("output", help="folder to write")
    parser.add_argument("--trust", action="store_true",
                        help="run the pickle's own code, where a file has more than tensors: it can do anything")
    given = parser.parse_args()
    output = pathlib.Path(given.output)
    try:
        require(not output.exists(), f"'{output}' exists; give another folder")
        convert(given, output)
    except Refused as refused:
        print(f"{parser.prog}: {refused}", file=sys.stderr)
        sys.exit(1)


def load(path, trust):
    """A checkpoint, its tensors on the processor. Without `trust` nothing of the file runs: PyTorch makes tensors, and of
    other objects only those below."""
    require(not path.is_dir(), f"'{path}' is a folder; give the file in it, such as model.pt")
    require(path.is_file(), f"'{path}' is not there")
    allowed = harmless()
    while True:
        try:
            return load_with(path, trust, allowed)
        except ModuleNotFoundError as error:
            raise Refused(f"'{path}' has objects of the module {error.name}; put the program that wrote it on PYTHONPATH")
        except pickle.UnpicklingError as error:
            found = re.search(r"GLOBAL (\S+)", str(error))
            name = found.group(1) if found else ""
            if name.startswith(PROGRAMS) and all(name != each[1] for each in allowed if isinstance(each, tuple)):
                allowed.append((type("Nothing", (Nothing,), {}), name))
                continue
            require(name, f"'{path}' is damaged, or no file of torch.save, or has more than tensors, which --trust runs if you "
                          f"trust whoever wrote it ({str(error).splitlines()[0][:200]})")
            raise Refused(f"'{path}' has {name} beside tensors, which only running the file's own code makes; "
                          f"if you trust whoever wrote it, give --trust ({str(error).splitlines()[0][:200]})")
        except (EOFError, KeyError, OSError, RuntimeError, ValueError) as error:
            said = (str(error).splitlines() or [""])[0][:200]
            raise Refused(f"'{path}' is damaged, or no file of torch.save ({type(error).__name__}: {said})")


def load_with(path, trust, allowed):
    how = {"map_location": "cpu", "weights_only": not trust}
    with torch.serialization.safe_globals(allowed):
        try:
            return torch.load(path, mmap=True, **how)
        except (OSError, RuntimeError, ValueError, TypeError):  # written before files could be mapped
            return torch.load(path, **how)


# Objects of these programs are among arguments; what stands for them does nothing.
PROGRAMS = ("megatron.", "fairseq.", "omegaconf.", "deepspeed.")


class Nothing:
    def __init__(self, *args, **named):
        pass

    def __setstate__(self, state):
        pass


def harmless():
    """Objects that checkpoints have, and that do nothing when they are made: arguments, states of random numbers."""
    allowed = [argparse.Namespace]
    try:
        import numpy
        allowed += [numpy.ndarray, numpy.dtype, type(numpy.dtype("uint32")), type(numpy.dtype("int64"))]
        core = getattr(numpy, "_core", None) or numpy.core
        for name in ("numpy.core.multiarray", "numpy._core.multiarray"):
            allowed += [(core.multiarray._reconstruct, f"{name}._reconstruct"), (core.multiarray.scalar, f"{name}.scalar")]
    except ImportError:
        pass
    return allowed


def flat(tree, prefix="", unread=()):
    """Tensors of nested dicts, by names with dots; of those that end in `unread` nothing is read."""
    out = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            out.update(flat(value, f"{name}.", unread))
        elif not name.endswith(unread):
            require(isinstance(value, torch.Tensor), f"{name} is a {type(value).__name__}, and no tensor")
            out[name] = value
    return out


def write_folder(output, config, tensors):
    """`tensors`: (name, shape, dtype, function that makes it), made one after another."""
    partial = output.with_name(output.name + ".partial")
    require(not partial.exists(), f"'{partial}' exists, of a conversion that did not end; delete it, or give another folder")
    partial.mkdir(parents=True)
    (partial / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, dtype, _ in tensors:
        require(dtype in DTYPES, f"tensor {name} is of {dtype}; weights are written as f32, f64, bf16 and f16")
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        head[name] = {"dtype": DTYPES[dtype], "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(partial / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape, dtype, make in tensors:
            value = make().detach().contiguous()
            assert tuple(value.shape) == tuple(shape) and value.dtype == dtype, name
            file.write(value.reshape(-1).view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(output)
    print(f"wrote {len(tensors)} tensors, {at / 1e6:.1f} MB, to {output}")


def whole(name, value):
    """A tensor for write_folder as it is."""
    return name, value.shape, value.dtype, lambda: value
