"""tessera.inspect, export, evaluate and predict: what there is at a path, and what it is worth."""

from __future__ import annotations

import os
from typing import Callable, Dict, List, Optional, TYPE_CHECKING, Union

from . import _html
from ._call import Call
from ._errors import UsageError
from ._listed import keywords_of
from ._typed import typed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _keywords as keywords

Path = Union[str, os.PathLike]


class Exported:
    """A folder that transformers loads.

    folder    where it is
    family    of the model
    step      of the checkpoint that it was made of
    left_out  names of parameters that transformers' class has none for
    """

    def __init__(self, result: dict):
        self.folder: str = result["folder"]
        self.family: str = result["family"]
        self.step: int = result["step"]
        self.left_out: List[str] = result["left_out"]

    def __fspath__(self) -> str:
        return self.folder

    def __repr__(self) -> str:
        return f"<tessera.Exported {self.family} after step {self.step}: {self.folder}>"


class Evaluation:
    """A model on other data than it was trained on.

    loss        mean over samples
    scores      of the model's task, by name
    perplexity  of models of language; else None
    samples     that were scored
    """

    def __init__(self, result: dict):
        self.loss: float = result["loss"]
        self.scores: Dict[str, float] = result["scores"]
        self.samples: int = result["samples"]
        self.model: str = result["model"]
        self.data: str = result["data"]

    @property
    def perplexity(self) -> Optional[float]:
        return self.scores.get("perplexity")

    def _repr_html_(self) -> str:
        about = f"{self.model} on {self.samples} samples of {self.data}"
        rows = [("loss", self.loss), *self.scores.items()]
        return f"<p>{_html.text(about)}</p>{_html.table(rows)}"

    def __repr__(self) -> str:
        scores = "".join(f", {name} {value:.6g}" for name, value in self.scores.items())
        return f"<tessera.Evaluation loss {self.loss:.6g}{scores}; {self.samples} samples>"


class Predictions:
    """What a model predicts of the rows of a table.

    columns  names: those of the table that are no texts, "prediction", and probabilities
    rows     a list of texts for each row of the table

    predictions["prediction"] is a column, as numbers where all of it is.
    """

    def __init__(self, result: dict):
        self.columns: List[str] = result["columns"]
        self.rows: List[List[str]] = result["rows"]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list:
        if column not in self.columns:
            raise UsageError(f"there is no column {column!r}; there are {', '.join(self.columns)}")
        return typed([row[self.columns.index(column)] for row in self.rows])

    def _repr_html_(self) -> str:
        return _html.table(self.rows[:20], self.columns)

    def __repr__(self) -> str:
        return f"<tessera.Predictions of {len(self.rows)} rows: {', '.join(self.columns)}>"


@keywords_of("inspect")
def inspect(
    path: Path, /, *, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Inspect]
) -> dict:
    """What is at a path, as `tessera inspect --json`: a run, a checkpoint, a folder of Hugging Face,
    a safetensors file or a graph.

        tessera.inspect("runs/mine")["step"]
        tessera.inspect("runs/mine", digest=True)["digest"]
    """
    return Call(lines).command("inspect", {**flags, "": path})["report"]


@keywords_of("export")
def export(
    path: Path, /, *, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Export]
) -> Exported:
    """Writes the model of a run or a checkpoint as transformers loads it, as `tessera export` does.

        tessera.export("runs/mine", output="exported", dtype="bf16").folder
    """
    return Exported(Call(lines).command("export", {**flags, "": path}))


@keywords_of("merge_adapter")
def merge_adapter(
    path: Path, /, *, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.MergeAdapter]
) -> Exported:
    """Writes the whole model of a run that trained adapters (LoRA), or of PEFT's folder of one, with what
    they add, as `tessera merge-adapter` does.

        tessera.merge_adapter("runs/lora", output="merged").folder
    """
    return Exported(Call(lines).command("merge_adapter", {**flags, "": path}))


@keywords_of("evaluate")
def evaluate(
    path: Path, /, *, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Evaluate]
) -> Evaluation:
    """Scores a run, a checkpoint or a folder of Hugging Face on other data, as `tessera evaluate`
    does.

        tessera.evaluate("runs/mine", data="other.txt").perplexity
    """
    return Evaluation(Call(lines).command("evaluate", {**flags, "": path}))


@keywords_of("predict")
def predict(
    path: Path, /, *, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Predict]
) -> Predictions:
    """Predicts the rows of a table by a run, a checkpoint or a folder of Hugging Face, as `tessera
    predict` does; with output=FILE also writes them there.

        tessera.predict("runs/labels", data="test.tsv")["prediction"]
    """
    return Predictions(Call(lines).command("predict", {**flags, "": path}))
