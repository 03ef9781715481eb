"""A training loop of one's own: steps and predictions when the program asks for them."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from ._arrays import arrays_of
from ._call import Call, give_back
from ._errors import UsageError
from ._flags import flags_text
from ._library import EVENT, LINE, Listener, library
from ._train import rate_of
from ._trainer import Trainer


class Loop:
    """What a Trainer trains, step by step; nothing is saved but by save_pretrained().

        loop = tessera.Loop(trainer)
        for batch in loop.batches(epoch=1):
            print(loop.step(batch)["loss"])
        loss, predictions = loop.predict()

    batch, epochs  samples of a step, and passes that flags ask for (0: none did)

    Calls of several threads wait for each other.
    """

    def __init__(self, trainer: Trainer):
        self._loop: Optional[int] = None
        program, flags = trainer._program_and_flags()
        self._program = program
        # The library calls these until the loop is closed.
        self._functions = program.functions()
        self._struct = self._functions.__enter__()
        self._lines = lines = trainer.lines
        hears = LINE(lambda _user, text: program.hear(text, lines)) if lines else LINE()
        self._listener = Listener(None, EVENT(), hears)
        self._lock = threading.Lock()
        self._caller: Optional[int] = None  # the thread that has the lock

        def open_loop(run: int, _: object) -> int:
            text = flags_text(flags)
            self._loop = library.tessera_loop_open(
                run, text, ctypes.byref(self._struct), ctypes.byref(self._listener)
            )
            return 0

        about = self._during(open_loop)
        self.batch: int = about["batch"]
        self.epochs: int = about["epochs"]

    def batches(self, epoch: int) -> List[int]:
        """The steps of an epoch, counted from 1: the number of the first sample of each. Samples are in
        a new order in each epoch."""
        return self._run(library.tessera_loop_batches, _whole(epoch))

    def step(self, batch: int) -> Dict[str, object]:
        """Gradients of a batch and the update: loss, lr, grad_norm, step, skipped; a loss or norm that is
        inf or nan is nan."""
        found = self._run(library.tessera_loop_step, _whole(batch))
        return {name: _number(value) for name, value in found.items()}

    def set_lr(self, rate: Optional[float]) -> None:
        """The learning rate of later steps, until it is set again; None: the schedule's."""
        self._run(library.tessera_loop_set_lr, rate_of(rate))

    def predict(self) -> Tuple[float, Dict[str, object]]:
        """The loss over the held-out samples, and what is predicted of them, as numpy arrays by name."""
        found: List[tuple] = []

        def predict(run: int, loop: int) -> int:
            code = library.tessera_loop_predict(run, loop)
            found.extend(arrays_of(run))
            return code

        return _number(self._run(predict)["loss"]), dict(found)

    def labels(self) -> Dict[str, dict]:
        """Of the held-out samples that were read: by name, by the number of the sample."""
        held_out = self._program.held_out
        return {} if held_out is None else held_out.labels

    def save_pretrained(self, folder) -> None:
        """The model as it is now, as transformers loads it."""
        path = os.fsencode(folder)
        if b"\0" in path:
            raise UsageError(f"a folder is {folder!r}, which has a zero byte; leave it out")
        self._run(library.tessera_loop_save, path)

    def close(self) -> None:
        """Gives its memory and devices back. Later calls are refused."""
        with self._alone():
            loop, self._loop = self._loop, None
            if loop is not None:
                give_back(library.tessera_loop_free, loop)
                self._functions.__exit__(None, None, None)

    def __enter__(self) -> "Loop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None:
            self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Calls of several threads wait for each other. A function of the loop cannot call it: that
        would wait for itself."""
        if self._caller == threading.get_ident():
            raise UsageError("the loop is called by a function that it runs; call it when that has returned")
        with self._lock:
            self._caller = threading.get_ident()
            try:
                yield
            finally:
                self._caller = None

    def _run(self, function: Callable, *given: object):
        def work(run: int, _: object) -> int:
            if self._loop is None:
                raise UsageError("the loop is closed; open another")
            return function(run, self._loop, *given)

        return self._during(work)

    def _during(self, work: Callable[[int, object], int]):
        with self._alone():
            call = Call(self._lines)
            return self._program.during(call, lambda: call(work))


def _number(value):
    return math.nan if value is None else value  # JSON has neither inf nor nan


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{value!r} is no whole number; give one of loop.batches(epoch)")
    number = value.__index__()
    if not -(2**62) < number < 2**62:
        raise UsageError(f"{number} is no number of a batch")
    return number
