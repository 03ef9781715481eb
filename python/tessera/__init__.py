"""Tessera trains Transformers on many devices: the same program, the same numbers, on any mesh.

    import tessera

    run = tessera.train(preset="gpt2-tiny", data="my.txt", output="runs/mine", steps=200, devices=2,
                        tensor_model_parallel_size=2)
    run.losses   # numpy f32 [200], the bits of `tessera train` with the same flags

Keywords are the flags of the command, with _ for -. help(tessera.train) says more. Other commands are
functions too: plan, verify, bench, inspect, export, evaluate, predict, ...
"""

from ._commands import chart, doctor, prepare, preprocess_data, report, score
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
from ._library import library as _library
from ._loop import Loop
from ._model import Model, Output
from ._models import Evaluation, Exported, Predictions, evaluate, export, inspect, predict
from ._plan import Plan, plan
from ._progress import ProgressBar
from ._reports import Benchmark, Verification, bench, verify
from ._train import Run, Step, train
from ._trainer import EvalPrediction, Trainer, TrainingArguments

__version__: str = _library.tessera_version().decode()

__all__ = [
    "Benchmark",
    "CheckpointError",
    "DataError",
    "Error",
    "EvalPrediction",
    "Evaluation",
    "Exported",
    "InternalError",
    "Loop",
    "Model",
    "NumericsError",
    "Output",
    "PeerError",
    "Predictions",
    "Plan",
    "ProgressBar",
    "ResourceError",
    "Run",
    "Step",
    "Trainer",
    "TrainingArguments",
    "UsageError",
    "Verification",
    "bench",
    "chart",
    "doctor",
    "evaluate",
    "export",
    "inspect",
    "plan",
    "predict",
    "prepare",
    "preprocess_data",
    "report",
    "score",
    "train",
    "verify",
]
