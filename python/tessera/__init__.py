"""Tessera trains Transformers on many devices: the same program, the same numbers, on any mesh.

    import tessera

    run = tessera.train(preset="gpt2-tiny", data="my.txt", output="runs/mine", steps=200, devices=2,
                        tensor_model_parallel_size=2)
    run.losses   # numpy f32 [200], the bits of `tessera train` with the same flags

Keywords are the flags of the command, with _ for -. help(tessera.train) says more. Other commands are
functions too: plan, verify, bench, inspect, export, evaluate, predict, ...

    Model     a model of a run or of Hugging Face, called with arrays; it generates texts
    Trainer   trains with datasets, collators, losses and metrics of Python; Loop: step by step
    compile   a step of a model of your own, a function of values, with layers of tessera.nn and
              tessera.ops, on any mesh
"""

from . import nn, ops
from ._commands import chart, doctor, prepare, preprocess_data, report, score
from ._compile import CompiledStep, TransformerOpParallelConfig, compile, place
from ._errors import (
    CheckpointError,
    DataError,
    Error,
    InternalError,
    NumericsError,
    PeerError,
    ResourceError,
    UsageError,
)
from ._graph import DeviceLayout, Value, gradients, parameter, samples_seen, scope, shard
from ._library import library as _library
from ._loop import Loop
from ._model import Model, Output
from ._models import Evaluation, Exported, Predictions, evaluate, export, inspect, merge_adapter, predict
from ._optimizers import (
    Adam,
    AdamW,
    AdamWeightDecay,
    Lamb,
    ParameterGroup,
    Sgd,
    decay_groups,
)
from ._plan import Plan, plan
from ._progress import ProgressBar
from ._reports import Benchmark, Verification, bench, verify
from ._train import Run, Step, train
from ._trainer import EvalPrediction, Trainer, TrainingArguments

__version__: str = _library.tessera_version().decode()

__all__ = [
    "Adam",
    "AdamW",
    "AdamWeightDecay",
    "Benchmark",
    "CheckpointError",
    "CompiledStep",
    "DataError",
    "DeviceLayout",
    "Error",
    "EvalPrediction",
    "Evaluation",
    "Exported",
    "InternalError",
    "Lamb",
    "Loop",
    "Model",
    "NumericsError",
    "Output",
    "ParameterGroup",
    "PeerError",
    "Plan",
    "Predictions",
    "ProgressBar",
    "ResourceError",
    "Run",
    "Sgd",
    "Step",
    "Trainer",
    "TrainingArguments",
    "TransformerOpParallelConfig",
    "UsageError",
    "Value",
    "Verification",
    "bench",
    "chart",
    "compile",
    "decay_groups",
    "doctor",
    "evaluate",
    "export",
    "gradients",
    "inspect",
    "merge_adapter",
    "nn",
    "ops",
    "parameter",
    "place",
    "plan",
    "predict",
    "prepare",
    "preprocess_data",
    "report",
    "samples_seen",
    "scope",
    "score",
    "shard",
    "train",
    "verify",
]
