"""tessera.ProgressBar: a run as it goes, in a terminal or a notebook."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Optional, TextIO

from . import _html
from ._train import Step

_SECONDS = 0.1  # between two pictures
_SECONDS_OF_LINES = 5.0  # where none can be written over


class ProgressBar:
    """A callback that shows how far a run is, its loss and the time that is left.

        tessera.train(preset="gpt2-tiny", data="my.txt", output="runs/mine", steps=200,
                      callbacks=[tessera.ProgressBar()], lines=None)

    In a notebook it is HTML, in a terminal a line that is written over, else a line now and then.
    file  takes text; by default sys.stdout
    """

    def __init__(self, file: Optional[TextIO] = None):
        self._file = file
        self._done: Optional[int] = None  # None: no run is under way
        self._begun = self._shown = 0.0
        self._first = 0
        self._handle = None  # of what a notebook displays

    def __call__(self, step: Step) -> None:
        if step.steps == 0:  # a rank that does not lead, which does not know them
            return
        now = time.monotonic()
        if self._done is None or step.number <= self._done:
            self._begun, self._first = now - step.seconds, step.number - 1
            self._shown, self._handle = 0.0, None
        self._done = step.number
        ended = step.stopped or step.number >= step.steps
        notebook = None if self._file else _display_of_notebook()
        file = self._file or sys.stdout
        terminal = notebook is None and file.isatty()
        if ended or now - self._shown >= (_SECONDS if notebook or terminal else _SECONDS_OF_LINES):
            self._shown = now
            words = self._words(step, now)
            if notebook:
                self._update(notebook, step, words)
            elif terminal:
                self._write_over(file, step, words, ended)
            else:
                file.write(words + "\n")
        if ended:
            self._done = None

    def _words(self, step: Step, now: float) -> str:
        took = now - self._begun
        left = took / (step.number - self._first) * (step.steps - step.number)
        return (
            f"step {step.number}/{step.steps}  loss {step.loss:.4f}  "
            f"{clock(took)} gone, {clock(left)} left"
        )

    @staticmethod
    def _write_over(file: TextIO, step: Step, words: str, ended: bool) -> None:
        columns = max(shutil.get_terminal_size().columns - 1, 1)
        wide = min(40, columns - len(words) - 4)
        if wide >= 4:
            full = wide * step.number // max(step.steps, 1)
            words = f"[{'#' * full}{' ' * (wide - full)}]  {words}"
        file.write("\r" + words[:columns].ljust(columns) + ("\n" if ended else ""))
        file.flush()

    def _update(self, display, step: Step, words: str) -> None:
        picture = display.HTML(
            f'<progress value="{step.number}" max="{step.steps}" style="width:20em"></progress> '
            f"{_html.text(words)}"
        )
        if self._handle is None:
            self._handle = display.display(picture, display_id=True)
        else:
            self._handle.update(picture)


def clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes = f"{rest // 60}:{rest % 60:02}"
    return f"{hours}:{minutes.zfill(5)}" if hours else minutes


def _display_of_notebook():
    """IPython.display where this is the kernel of a notebook; else None. Nothing is imported anew."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if getattr(shell, "kernel", None) is None:
        return None
    import IPython.display

    return IPython.display
