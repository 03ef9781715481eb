"""A training loop of one's own: steps and predictions when the program asks for them."""

from __future__ import annotations

import ctypes
import os
from typing import Callable, Dict, List, Optional, Tuple

from ._arrays import arrays_of
from ._call import Call
from ._errors import UsageError
from ._flags import flags_text
from ._library import EVENT, LINE, Listener, library
from ._trainer import Trainer


class Loop:
    """What a Trainer trains, step by step; nothing is saved but by save_pretrained().

        loop = tessera.Loop(trainer)
        for batch in loop.batches(epoch=1):
            print(loop.step(batch)["loss"])
        loss, predictions = loop.predict()

    batch, epochs  samples of a step, and passes that flags ask for (0: none did)
    """

    def __init__(self, trainer: Trainer):
        self._loop: Optional[int] = None
        program, flags = trainer._program_and_flags()
        self._program = program
        # The library calls these until the loop is closed.
        self._functions = program.functions()
        self._struct = self._functions.__enter__()
        lines = trainer.lines
        hears = LINE(lambda _user, text: lines(text.decode(errors="replace"))) if lines else LINE()
        self._listener = Listener(None, EVENT(), hears)

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
        """Gradients of a batch and the update: loss, lr, grad_norm, step, skipped."""
        return self._run(library.tessera_loop_step, _whole(batch))

    def predict(self) -> Tuple[float, Dict[str, object]]:
        """The loss over the held-out samples, and what is predicted of them, as numpy arrays by name."""
        loop, found = self._opened(), []

        def predict(run: int, _: object) -> int:
            code = library.tessera_loop_predict(run, loop)
            found.extend(arrays_of(run))
            return code

        return self._during(predict)["loss"], dict(found)

    def labels(self) -> Dict[str, dict]:
        """Of the held-out samples that were read: by name, by the number of the sample."""
        held_out = self._program.held_out
        return {} if held_out is None else held_out.labels

    def save_pretrained(self, folder) -> None:
        """The model as it is now, as transformers loads it."""
        self._run(library.tessera_loop_save, os.fspath(folder).encode())

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            library.tessera_loop_free(loop)
            self._functions.__exit__(None, None, None)

    def __enter__(self) -> "Loop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None:
            self.close()

    def _opened(self) -> int:
        if self._loop is None:
            raise UsageError("the loop is closed; open another")
        return self._loop

    def _run(self, function: Callable, *given: object):
        loop = self._opened()
        return self._during(lambda run, _: function(run, loop, *given))

    def _during(self, work: Callable[[int, object], int]):
        call = Call(None)
        return self._program.during(call, lambda: call(work))


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{value!r} is no whole number; give one of loop.batches(epoch)")
    number = value.__index__()
    if not -(2**62) < number < 2**62:
        raise UsageError(f"{number} is no number of a batch")
    return number
