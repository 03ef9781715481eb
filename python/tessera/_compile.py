"""tessera.compile: a function of values becomes a step that runs on devices."""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
import json
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._call import give_back, require_own_process
from ._errors import UsageError, error_of
from ._flags import flags_text
from ._graph import Graph, Value, call, dtype_name, one
from ._library import Array, library
from ._listed import keywords_of
from ._optimizers import _Optimizer
from ._step_arrays import described, empty, numpy, taken
from .nn import Mean

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _keywords as keywords

_STEP = "step"

Shape = Sequence[int]
Batch = Mapping[str, Union[Shape, Tuple[Shape, str]]]
Splits = Sequence[Sequence[int]]


@dataclasses.dataclass(frozen=True)
class TransformerOpParallelConfig:
    """MindSpore's words for how many parts each kind of parallelism cuts a model into.

    data_parallel, model_parallel, pipeline_stage  parts of the batch, of widths, of the layers
    expert_parallel   parts of experts, parameters "*.mlp.experts.*", among parts of the batch
    micro_batch_num   parts of the batch that are computed one after another
    optimizer_shard   parameters and moments are stored in data_parallel parts
    gradient_aggregation_group  in so many groups the gradients of layers are summed
    recompute         backward computes layers again
    vocab_emb_dp      tables of embeddings are whole on each device
    """

    data_parallel: int = 1
    model_parallel: int = 1
    expert_parallel: int = 1
    pipeline_stage: int = 1
    micro_batch_num: int = 1
    optimizer_shard: bool = False
    gradient_aggregation_group: int = 4
    recompute: bool = False
    vocab_emb_dp: bool = True


class _Traced:
    """A function that has been called once with values: its graph, and what it returns."""

    def __init__(
        self,
        function: Callable,
        batch: Batch,
        optimizer: Optional[_Optimizer] = None,
        samples: Optional[int] = None,
        fp16: bool = False,
    ):
        if not callable(function):
            raise UsageError(f"compile: the function is a {type(function).__name__}; give a function")
        specs = {name: _spec(name, spec) for name, spec in _mapping("batch", batch).items()}
        first = next((shape for shape, _ in specs.values() if len(shape)), (1,))
        self.samples = first[0] if samples is None else samples
        self.dtypes = {name: dtype for name, (_, dtype) in specs.items()}
        self.graph = Graph()
        with self.graph:
            inputs = {}
            for name, (shape, dtype) in specs.items():
                inputs[name] = one("batch", name=name, shape=shape, dtype=dtype)
                inputs[name].name = name
            returned = function(**inputs)
            self.single = not isinstance(returned, Mapping)
            outputs = {"loss" if optimizer else "out": returned} if self.single else dict(returned)
            self.outputs = {name: _output(name, value) for name, value in outputs.items()}
            if optimizer is not None:
                self._add_update(optimizer, fp16)
            for name, value in self.outputs.items():
                call("output", name=name, value=value)
        self.names = list(outputs)

    def _add_update(self, optimizer: _Optimizer, fp16: bool) -> None:
        if not isinstance(optimizer, _Optimizer):
            raise UsageError(f"the optimizer is {optimizer!r}; give one, as tessera.AdamW(lr=1e-3)")
        if "loss" not in self.outputs:
            raise UsageError(
                f"the function returns {', '.join(self.outputs) or 'nothing'}, and the optimizer "
                'needs a loss; return one, or a dict that has "loss"'
            )
        made = call(
            "update",
            loss=self.outputs["loss"],
            optimizer=optimizer.asked(),
            samples=self.samples,
            loss_scale=fp16,
        )
        for name, value in zip(("lr", "grad_norm", "ok", "loss_scale"), made):
            if name in self.outputs:
                raise UsageError(f"the function returns '{name}', which the optimizer tells; rename it")
            self.outputs[name] = value


def _mapping(what: str, given: object) -> Mapping:
    if not isinstance(given, Mapping):
        raise UsageError(f'{what} is {given!r}; give a dict, as {{"x": (32, 8)}}')
    for name in given:
        if not isinstance(name, str):
            raise UsageError(f"{what} has the name {name!r}; give texts")
    return given


def _spec(name: str, spec: Any) -> Tuple[Tuple[int, ...], str]:
    """(32, 8), ((32,), "i32"), or an array like those that will come."""
    dtype = "f32"
    if hasattr(spec, "shape") and hasattr(spec, "dtype"):
        spec, dtype = tuple(spec.shape), dtype_name(spec.dtype)
    elif isinstance(spec, (tuple, list)) and len(spec) == 2 and isinstance(spec[0], (tuple, list)):
        spec, dtype = spec[0], dtype_name(spec[1])
    try:
        return tuple(size.__index__() for size in spec), dtype
    except (TypeError, AttributeError):
        raise UsageError(
            f'batch: {name} is {spec!r}; give a shape, as (32, 8), or one with a dtype, as ((32,), "i32")'
        ) from None


def _output(name: object, value: object) -> Value:
    if isinstance(value, Mean):
        value = value.value()
    if not isinstance(name, str) or not isinstance(value, Value):
        raise UsageError(
            f"the function returns {value!r} as {name!r}; return a value, a mean, or a dict of these"
        )
    return value


class CompiledStep:
    """A step on its devices, which are threads. Made by tessera.compile.

        loss = step(x=x, labels=y)

    plan     a dict: "devices", "mesh", "memory" and "peak_bytes" of a device, "states" with where
             they lie, "programs" with what a device sends, "search"
    metrics  a dict of all that the last call gave; with an optimizer also "lr", "grad_norm" and
             "ok", which is False where loss or gradients were inf or nan and nothing was updated; with
             fp16 also "loss_scale"

    Calls from several threads wait for each other. Ctrl-C during a call finishes it first. It ends
    with close(), a `with` block, or when nobody holds it.
    """

    def __init__(self, traced: Dict[str, _Traced], how: dict):
        require_own_process()
        self._traced = {name: (t.dtypes, t.names, t.single) for name, t in traced.items()}
        self._lock = threading.Lock()
        self._handle = library.tessera_step_new()
        self._free = weakref.finalize(self, give_back, library.tessera_step_free, self._handle)
        graphs = (ctypes.c_void_p * len(traced))(*(t.graph.handle for t in traced.values()))
        text = _how_text(how, list(traced))
        self.plan: dict = self._done(
            library.tessera_step_compile(self._handle, graphs, len(traced), text)
        )
        self.metrics: dict = {}

    def __call__(self, **inputs):
        """Runs the step: an array for each input. Returns what the function returned: a number, or
        an array where it has dims; a dict where it returned one.

        Arrays have the dtypes and shapes of the batch: numpy's, or of a library that speaks DLPack,
        as torch's on CPU. Nothing is converted but numbers and lists of Python.
        """
        return self.run(_STEP, **inputs)

    def run(self, program: str, /, **inputs):
        """Runs one of `programs`, by name, on the parameters as they are now: run("predict", x=x)."""
        if program not in self._traced:
            raise UsageError(f"there is no program {program!r}; there are {', '.join(self._traced)}")
        dtypes, names, single = self._traced[program]
        for name in inputs:
            if name not in dtypes:
                near = difflib.get_close_matches(name, dtypes, 3) or list(dtypes)
                raise UsageError(f"there is no input '{name}'; nearest is {' or '.join(near)}")
        arrays = {n: taken(f"input '{n}'", v, dtypes[n]) for n, v in inputs.items()}
        with self._lock:
            given = (Array * len(arrays))(*(described(n, a) for n, a in arrays.items()))
            made = self._done(
                library.tessera_step_run(self._open(), program.encode(), given, len(arrays))
            )
            out = self._read(made["arrays"])
            out = {name: a.item() if a.ndim == 0 else a for name, a in out.items()}
            if program == _STEP:
                self.metrics = out
        return out[names[0]] if single else {name: out[name] for name in names}

    def state_dict(self, all: bool = False) -> dict:
        """Parameters by path, whole, whatever the mesh; all: also the optimizer's states."""
        with self._lock:
            arrays = self._done(library.tessera_step_call(self._open(), b'{"do": "states"}'))["arrays"]
            states = self.plan["states"]
            wanted = [n for n in arrays if all or states[n]["role"] == "parameter"]
            return self._read({name: arrays[name] for name in wanted})

    def load_state_dict(self, parameters: Mapping) -> None:
        """Gives parameters other values, f32 arrays by path; others stay as they are."""
        arrays = {
            name: taken(f"parameter '{name}'", value, "f32")
            for name, value in _mapping("parameters", parameters).items()
        }
        with self._lock:
            given = (Array * len(arrays))(*(described(n, a) for n, a in arrays.items()))
            self._done(library.tessera_step_write(self._open(), given, len(arrays)))

    def save(self, folder: str) -> str:
        """Saves all states in a new checkpoint below `folder`; returns its path."""
        return self._asked("save", folder)["path"]

    def load(self, path: str) -> None:
        """All states from a checkpoint, or from the newest below a folder; of any mesh."""
        self._asked("load", path)

    def close(self) -> None:
        """Ends the devices. Later calls are refused."""
        with self._lock:
            self._free()

    def __enter__(self) -> CompiledStep:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        mesh = f", {self.plan['mesh']}" if self.plan["mesh"] else ""
        ended = "" if self._free.alive else ", closed"
        return f"<tessera.CompiledStep: {', '.join(self._traced)}{mesh}{ended}>"

    def _asked(self, what: str, path: str) -> dict:
        try:
            asked = json.dumps({"do": what, "path": _path_text(path)})
        except (TypeError, ValueError):
            raise UsageError(f"a path is {path!r}; give a text") from None
        with self._lock:
            return self._done(library.tessera_step_call(self._open(), asked.encode()))

    def _open(self) -> int:
        require_own_process()
        if not self._free.alive:
            raise UsageError("the step is closed; compile it anew")
        return self._handle

    def _done(self, code: int) -> dict:
        if code != 0:
            raise error_of(json.loads(library.tessera_step_error(self._handle)))
        return json.loads(library.tessera_step_result(self._handle) or b"{}")

    def _read(self, arrays: dict) -> dict:
        out = {}
        for name, made in arrays.items():
            room, numbers = empty(made["shape"], made["dtype"])
            self._done(
                library.tessera_step_read(
                    self._handle, name.encode(), room.ctypes.data, room.nbytes
                )
            )
            out[name] = numbers()
        return out


def _path_text(path: Any) -> str:
    import os

    return os.fspath(path)


_WORDS = (
    "mesh",
    "parallel_config",
    "batch_axes",
    "pins",
    "parallel_mode",
    "search_mode",
    "dataset_strategy",
    "micro_batches",
    "gradients_mean",
    "loss_repeated_mean",
    "enable_parallel_optimizer",
    "shard",
)


def _how_text(how: dict, names: List[str]) -> bytes:
    words = {name: how[name] for name in _WORDS if how.get(name) is not None}
    if isinstance(words.get("parallel_config"), TransformerOpParallelConfig):
        words["parallel_config"] = dataclasses.asdict(words["parallel_config"])
    flags = {n: v for n, v in how["flags"].items() if v is not None}
    words.update(names=names, samples=how["samples"], flags=json.loads(flags_text(flags)))
    return flags_text(words)


def _traced_all(
    function: Callable,
    batch: Batch,
    optimizer: Optional[_Optimizer],
    programs: Optional[Mapping],
    samples: Optional[int],
    fp16: object,
) -> Dict[str, _Traced]:
    traced = {_STEP: _Traced(function, batch, optimizer, samples, fp16 is True)}
    for name, program in _mapping("programs", programs or {}).items():
        if not isinstance(program, (tuple, list)) or len(program) != 2:
            raise UsageError(f"programs: {name} is {program!r}; give a function and its batch")
        if name == _STEP:
            raise UsageError("programs: 'step' is the function itself; give another name")
        traced[name] = _Traced(program[0], program[1])
    return traced


@keywords_of("compile")
def compile(
    function: Callable[..., object],
    batch: Batch,
    *,
    optimizer: Optional[_Optimizer] = None,
    programs: Optional[Mapping[str, Tuple[Callable[..., object], Batch]]] = None,
    samples: Optional[int] = None,
    mesh: Optional[Mapping[str, int]] = None,
    parallel_config: Optional[TransformerOpParallelConfig] = None,
    batch_axes: Optional[Sequence[Sequence[str]]] = None,
    pins: Optional[Mapping[str, str]] = None,
    parallel_mode: Optional[str] = None,
    search_mode: Optional[str] = None,
    dataset_strategy: Union[None, str, Splits] = None,
    micro_batches: Optional[int] = None,
    gradients_mean: Optional[bool] = None,
    loss_repeated_mean: Optional[bool] = None,
    enable_parallel_optimizer: Optional[bool] = None,
    shard: Optional[Mapping[str, Splits]] = None,
    **flags: Unpack[keywords.Compile],
) -> CompiledStep:
    """Compiles a function of values to a step, and gives its parameters their first values.

        def net(x, labels):
            h = tessera.ops.relu(tessera.nn.linear(x, "up", 64))
            return tessera.nn.cross_entropy(tessera.nn.linear(h, "down", 10), labels)

        step = tessera.compile(net, {"x": (32, 8), "labels": ((32,), "i32")},
                               optimizer=tessera.AdamW(lr=1e-3), devices=2)
        loss = step(x=x, labels=y)

    function   called once, with a tessera.Value for each input, by name; it returns a value, or a
               dict of values, of which "loss" is what the optimizer lowers
    batch      the shapes of inputs, f32 where no dtype is said; the first dim is the samples
    optimizer  tessera.AdamW, Adam, Sgd, Lamb or AdamWeightDecay; None: nothing is updated
    programs   more functions of the same parameters: {"predict": (function, batch)}
    samples    of a step, where the first input does not say it

    The numbers are those of one device, but for rounding, however the step is spread:

    flags      those of `tessera train` that say it: devices, tensor_model_parallel_size,
               pipeline_model_parallel_size, zero_stage, micro_batch_size, bf16, threads, seed, ...
    mesh       axes and sizes in their place: {"dp": 2, "tp": 2}; "mb" are micro-batches
    parallel_config  a tessera.TransformerOpParallelConfig in their place
    batch_axes axes that split each dim of inputs; of a mesh (("dp", "mb"),) by default
    pins       where parameters and named values lie: {"up.weight": "[tp,-]"}

    or by strategies of ops, with MindSpore's words:

    shard              {"up.matmul": ((2, 1), (1, 1))}, as tessera.shard() inside of the function
    parallel_mode      "stand_alone", "data_parallel", "semi_auto_parallel" or "auto_parallel"
    search_mode        of auto_parallel: "sharding_propagation", "recursive_programming" or
                       "dynamic_programming"
    dataset_strategy   "data_parallel", "full_batch", or splits of each input
    gradients_mean     data_parallel adds up the gradients of devices where it is not True
    micro_batches, loss_repeated_mean, enable_parallel_optimizer
    """
    traced = _traced_all(function, batch, optimizer, programs, samples, flags.get("fp16"))
    numpy()
    how = dict(locals())
    how["samples"] = traced[_STEP].samples
    return CompiledStep(traced, how)


def place(
    function: Callable[..., object],
    batch: Batch,
    *,
    optimizer: Optional[_Optimizer] = None,
    samples: Optional[int] = None,
    **how,
) -> dict:
    """Where compile() with the same arguments would put all, without devices: {"mesh": "dp=2",
    "pins": {"w": "[-,dp]"}, "search": {"step_seconds": 0.1, ...}}. Without a search_mode there is no
    search, and pins are the patterns of names by which flags split layers, as "*.mlp.up.weight"."""
    traced = _traced_all(function, batch, optimizer, None, samples, how.get("fp16"))
    asked = {name: how.pop(name) for name in _WORDS if name in how}
    asked.update(flags=how, samples=traced[_STEP].samples)
    handle = library.tessera_step_new()
    try:
        graphs = (ctypes.c_void_p * 1)(traced[_STEP].graph.handle)
        if library.tessera_step_place(handle, graphs, 1, _how_text(asked, [_STEP])) != 0:
            raise error_of(json.loads(library.tessera_step_error(handle)))
        return json.loads(library.tessera_step_result(handle))
    finally:
        library.tessera_step_free(handle)
