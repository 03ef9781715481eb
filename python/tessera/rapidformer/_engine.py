"""RapidformerEngine, and what scripts ask of it."""

from __future__ import annotations

import difflib
import json
import logging
import sys
import time
from typing import Dict, List, Optional, Sequence, Union

from .._call import Call
from .._errors import UsageError
from .._library import library

Value = Union[None, bool, int, float, str, List[Union[int, float, str]]]

# Names of scripts that were written for other programs, as ours.
_ALSO = {
    "dataset_path": ("data_path", "data_dir"),
    "data_path": ("dataset_path", "data_dir"),
    "dataset_name": ("data_name",),
    "data_name": ("dataset_name",),
    "load": ("pretrained_model_name_or_path", "init_from"),
    "save": ("output",),
    "train_iters": ("steps",),
}


def _value(words: Union[str, List[str]]) -> Value:
    """As a flag's parser has it: a number, a switch, a text; of several words a list."""
    if isinstance(words, list):
        return [_value(word) for word in words] if len(words) != 1 else _value(words[0])
    if words in ("true", "false"):
        return words == "true"
    for number in (int, float):
        try:
            return number(words)
        except ValueError:
            pass
    return words


class Args:
    """The flags of the script, by their names with _ for -. One that was not given is what the run
    takes, or None. Unknown names raise AttributeError."""

    def __init__(self, argv: Sequence[str], own_data: bool):
        function = b"rapidformer_flags_of_own_data" if own_data else b"rapidformer_flags"
        text = json.dumps(list(argv)).encode()
        found = Call(None)(lambda run, listener: library.tessera_call(run, function, text, listener))
        if "help" in found:
            print(found["help"], end="")
            raise SystemExit(0)

        def named(values: dict) -> Dict[str, Value]:
            return {name.replace("-", "_"): _value(words) for name, words in values.items()}

        self._flags = {name.replace("-", "_"): words for name, words in found["fields"].items()}
        self._given = named(found["given"])
        self._fields = named(found["fields"])
        self._known = {name.replace("-", "_") for name in found["known"]}
        self._notices: List[str] = found["notices"]

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        for one in (name, *_ALSO.get(name, ())):
            for values in (self._given, self._fields):
                if one in values:
                    return values[one]
        if name not in self._known and name not in _ALSO:
            near = difflib.get_close_matches(name, self._known, 2)
            raise AttributeError(f"there is no flag {name}" + (f"; nearest: {', '.join(near)}" if near else ""))
        return None

    def __repr__(self) -> str:
        return f"Args({', '.join(f'{k}={v!r}' for k, v in self._given.items())})"


class _Timer:
    def __init__(self):
        self.seconds = 0.0
        self._begin: Optional[float] = None

    def start(self) -> None:
        self._begin = time.perf_counter()

    def stop(self) -> None:
        if self._begin is None:
            raise UsageError("a timer is stopped that was not started")
        self.seconds += time.perf_counter() - self._begin
        self._begin = None


class Timers:
    """Stopwatches by name: timers("data").start(), .stop(), timers.text()."""

    def __init__(self):
        self._timers: Dict[str, _Timer] = {}

    def __call__(self, name: str) -> _Timer:
        return self._timers.setdefault(name, _Timer())

    def text(self) -> str:
        return "time (ms)" + "".join(f" | {n}: {t.seconds * 1e3:.1f}" for n, t in self._timers.items())


class RapidformerEngine:
    """The flags, and what they run on.

    argv  the flags, by default those of this process
    """

    _current: Optional["RapidformerEngine"] = None

    def __init__(self, argv: Optional[Sequence[str]] = None):
        self.argv = list(sys.argv[1:] if argv is None else argv)
        self.args = Args(self.argv, own_data=True)
        self.logger = logging.getLogger("rapidformer")
        if not self.logger.handlers:
            handler = logging.StreamHandler(sys.stdout)
            handler.setFormatter(logging.Formatter("%(message)s"))
            self.logger.addHandler(handler)
            self.logger.setLevel(logging.INFO)
            self.logger.propagate = False
        self.timers = Timers()
        self._composed = None
        self._predictions: dict = {}
        RapidformerEngine._current = self

    def args_of_data(self) -> Args:
        """The flags, those of data too, which name files that are there."""
        return Args(self.argv, own_data=False)

    def build_data_loader(self, dataset, collate_fn=None):
        """As Finetuner.build_data_loader."""
        from ._own_loop import DataLoader, _Composed

        if self._composed is None or len(self._composed.datasets) == 2:
            self._composed = _Composed()
        self._composed.datasets.append(dataset)
        self._composed.collate = collate_fn or self._composed.collate
        return DataLoader(self, self._composed, len(self._composed.datasets) - 1)

    def compose(self, model_obj=None, lr_scheduler_fn=None):
        """The model, and an optimizer and a schedule whose step() does nothing: both are in the compiled
        step, which loss.backward() runs. optimizer.param_groups[0]["lr"] = 1e-4 is the rate of later steps. Flags say which they are; lr_scheduler_fn may be a functools.partial of
        transformers' get_linear_schedule_with_warmup."""
        from ._own_loop import compose

        if self._composed is None:
            raise UsageError("there is no data yet; call build_data_loader(dataset) first")
        return compose(self, self._composed, model_obj, lr_scheduler_fn)

    @staticmethod
    def gather(values):
        """What all devices predict: it is gathered already."""
        return values


def _engine() -> RapidformerEngine:
    if RapidformerEngine._current is None:
        raise UsageError("there is no engine yet; call RapidformerEngine() first")
    return RapidformerEngine._current


def get_args() -> Args:
    """The flags of the script: get_args().lr. They can be asked for before there is an engine."""
    if RapidformerEngine._current is None:
        RapidformerEngine()
    return _engine().args


def get_logger() -> logging.Logger:
    return _engine().logger


def get_timers() -> Timers:
    return _engine().timers
