"""tessera.train, and what it returns."""

from __future__ import annotations

import json
import math
from typing import Callable, Iterable, List, Optional, Sequence, TYPE_CHECKING, Union

from . import _html
from ._call import Call
from ._errors import UsageError
from ._listed import keywords_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _keywords as keywords


_SCHEDULED = -1.0  # the schedule says the rate


class Step:
    """What a callback is told of a step that was done.

    number       steps done, this one included
    steps        of the whole run; 0 on ranks that do not lead
    loss         mean of the batch; nan if the step was skipped for inf or nan
    lr           learning rate of this step; once it is set, that of later ones: step.lr *= 0.5
    grad_norm    of all gradients, before clipping
    skipped      the step changed nothing, as its loss or a gradient was inf or nan
    seconds      that it took
    tokens_per_s
    metrics      all of it, as the line of metrics.jsonl
    """

    def __init__(self, metrics: dict, steps: int = 0):
        def number(key: str) -> float:
            value = metrics.get(key)
            return math.nan if value is None else value

        self.metrics = metrics
        self.number: int = metrics["step"]
        self.steps = steps
        self.loss = number("loss")
        self._lr = number("lr")
        self.grad_norm = number("grad_norm")
        self.seconds = number("step_seconds")
        self.tokens_per_s = number("tokens_per_s")
        self.skipped: bool = metrics.get("skipped", False)
        self.stopped = self.saves = False
        self.given_lr: Optional[float] = None  # of later steps, where it was set

    @property
    def lr(self) -> float:
        return self._lr

    @lr.setter
    def lr(self, rate: Optional[float]) -> None:
        """The rate of later steps, until it is set again; None: the schedule's. Checkpoints hold it."""
        self.given_lr = rate_of(rate)
        self._lr = self._lr if rate is None else self.given_lr

    def save(self) -> None:
        """Saves what this step leaves; the last step is saved anyway."""
        self.saves = True

    def stop(self) -> None:
        """Ends the run after this step: it saves, and train() returns."""
        self.stopped = True

    def __repr__(self) -> str:
        return f"Step(number={self.number}, loss={self.loss:.6g}, lr={self.lr:.6g})"


def rate_of(rate: object) -> float:
    """As the library reads it."""
    if rate is None:
        return _SCHEDULED
    try:
        found = float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise UsageError(f"lr is {rate!r}; give a rate of at least 0, or None for that of the schedule")
    return found


Callbacks = Union[Callable[[Step], object], Sequence[Callable[[Step], object]]]


class Run:
    """A run that has ended.

    losses      of each step of this call: numpy f32 [steps], or a list where numpy is not installed
    metrics     a dict for each line that this call added to metrics.jsonl
    output      folder of the run
    checkpoint  folder of the newest checkpoint that this call saved; None: it saved none
    summary     a dict, as summary.json
    ending      "finished", "interval" (by exit_interval) or "stopped" (by a callback, or another rank)
    rank        of this process, where a launcher started it as one of several; else 0
    """

    def __init__(self, result: dict, events: Iterable[dict]):
        self.output: str = result["output"]
        self.summary: dict = result["summary"]
        self.ending: str = result["ending"]
        self.rank: int = result.get("rank", 0)
        self.metrics: List[dict] = []
        self.checkpoint: Optional[str] = None
        for event in events:
            if event["kind"] == "save":
                self.checkpoint = event["path"]
            elif event["kind"] != "start":
                self.metrics.append(event)

    @property
    def losses(self):
        losses = [Step(line).loss for line in self.metrics if line["kind"] == "train"]
        try:
            import numpy
        except ImportError:
            return losses
        return numpy.array(losses, dtype=numpy.float32)

    def _repr_html_(self) -> str:
        shown = ("steps", "train_loss", "val_loss", "test_loss", "seconds", "tokens_per_s", "parameters")
        rows = [(key.replace("_", " "), self.summary[key]) for key in shown if key in self.summary]
        about = f"{self.ending}; all files are in {self.output}"
        if self.summary.get("mesh"):
            rows.append(("mesh", self.summary["mesh"]))
        chart = _html.chart(self.losses, "loss of each step")
        return f"<p>{_html.text(about)}</p>{chart}{_html.table(rows)}"

    def __repr__(self) -> str:
        losses = self.losses
        last = f", loss {losses[-1]:.6g}" if len(losses) else ""
        return f"<tessera.Run {self.ending}: {self.summary['steps']} steps{last}; {self.output}>"


def _functions_of(callbacks: object) -> list:
    several = isinstance(callbacks, (list, tuple)) or hasattr(callbacks, "__next__")
    listed = list(callbacks) if several and not callable(callbacks) else [callbacks]
    for each in listed:
        if not callable(each):
            raise UsageError(f"a callback is a {type(each).__name__}; give functions of a step")
    return listed


class StepCall(Call):
    """A call whose steps callbacks hear of."""

    def __init__(self, callbacks: Callbacks, lines: Optional[Callable[[str], object]]):
        self._hears = _functions_of(callbacks)
        self._steps = 0
        super().__init__(lines, self._on_step if self._hears else None)

    def _on_step(self, event: dict) -> bool:
        if event["kind"] == "start":
            self._steps = event["steps"]
        if event["kind"] != "train":
            return False
        step = Step(event, self._steps)
        for hear in self._hears:
            hear(step)
        if step.given_lr is not None:
            self.set_lr(step.given_lr)
        if step.saves:
            self.save()
        return step.stopped

    def run(self, result: dict) -> Run:
        return Run(result, map(json.loads, self.events))


@keywords_of("train")
def train(
    *,
    callbacks: Callbacks = (),
    lines: Optional[Callable[[str], object]] = print,
    **flags: Unpack[keywords.Train],
) -> Run:
    """Trains as `tessera train` does, to the same bits, and returns what came of it.

        run = tessera.train(preset="gpt2-tiny", data="my.txt", output="runs/mine", steps=200,
                            devices=2, tensor_model_parallel_size=2)
        run.losses

    flags      those of the command (docs/reference/flags.md) with _ for -: a switch is True or
               False, several values are a list, and None is as if the flag were not there.
    callbacks  functions of a Step, called after each step in the caller's thread, while the run
               waits; step.stop() ends the run, step.save() saves it, and step.lr = 1e-4 is the rate of
                later steps; of several processes, those of the first one.
    lines      is called with each line that the command would print; None: nobody is.

    Devices are threads of this process; or its ranks are processes that each call this alike, where
    `tessera launch -n 4 -- python3 train.py`, torchrun or mpirun started them. Ctrl-C finishes the step at hand, saves, and raises
    KeyboardInterrupt; an exception of a callback does the same and is raised. A wrong flag or file
    raises a tessera.Error: UsageError, DataError, ...
    """
    call = StepCall(callbacks, lines)
    return call.run(call.command("train", flags))
