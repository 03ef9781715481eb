"""One long call of the library, with events, lines, and Ctrl-C.

The call has a thread of its own. The caller's thread prints lines and runs callbacks, so that these
are where the caller is, and so that a signal is heard at any time, also while a model is compiled.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import queue
import threading
import time
import weakref
from typing import Any, Callable, List, Mapping, Optional

from ._errors import UsageError, error_of
from ._flags import flags_text
from ._library import EVENT, LINE, Listener, library


_SECOND = 1.0
_LONG = 60.0
_ALONE = "tessera alone"

_called = _forked = False
_calls: List[threading.Thread] = []
_running: weakref.WeakSet = weakref.WeakSet()  # what calls into Python
_lock = threading.Lock()


def _start(thread: threading.Thread, alone: bool) -> None:
    """Errors: it is, or another is, one beside which nothing else may run."""
    with _lock:
        _calls[:] = [other for other in _calls if other.is_alive()]
        for other in _calls:
            if alone or other.name == _ALONE:
                raise UsageError(
                    "tessera.bench runs alone, as it makes processes of this one, and another call "
                    "is running; wait for it"
                )
        thread.start()
        _calls.append(thread)


def _note_fork() -> None:
    global _forked
    _forked = _called


# The library's threads are not in a child, and it would wait for them for ever.
os.register_at_fork(after_in_child=_note_fork)


def end_at_exit(call: Any) -> None:
    """It is asked to end() before the interpreter does, unless it has done so."""
    _running.add(call)


def forget(call: Any) -> None:
    """It calls no more."""
    _running.discard(call)


@atexit.register
def _end_calls() -> None:
    """A run in a thread that does not keep the process saves: an interpreter that ends cannot be
    called, and what calls it is killed in the middle."""
    if _forked:
        return
    running = list(_running)
    for call in running:
        call.end()
    latest = time.monotonic() + _LONG
    while time.monotonic() < latest and any(call in _running for call in running):
        time.sleep(0.01)


def require_own_process() -> None:
    """Refuses a call in a child of a process that has called."""
    global _called
    if _forked:
        raise UsageError(
            "this process was forked from one that had called tessera, whose threads it lacks; "
            "start it anew, as by multiprocessing.get_context('spawn')"
        )
    _called = True


def give_back(free: Callable[[Any], None], handle: object) -> None:
    """Frees a handle. In a child of a process that has called nobody does: it would wait for threads."""
    if not _forked:
        free(handle)


class Call:
    """Calls `work(handle, listener)` of the library.

    on_line hears lines for people, on_event the events, as dicts; with on_event the run waits for
    each, and where it returns true, or either raises, it is asked to stop. All events are kept in
    `events`, as JSON. `alone`: no other call may run at the same time.
    """

    def __init__(
        self,
        on_line: Optional[Callable[[str], object]] = None,
        on_event: Optional[Callable[[dict], bool]] = None,
        alone: bool = False,
    ):
        self.events: List[bytes] = []
        self._on_line = on_line
        self._on_event = on_event
        self._alone = alone
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._answer: queue.SimpleQueue = queue.SimpleQueue()
        self._failure: Optional[BaseException] = None
        self._works = False  # the caller's thread runs what in_caller asked for
        self._handle: Optional[int] = None

    def command(
        self,
        name: str,
        flags: Mapping[str, object],
        program: Optional[ctypes.Structure] = None,
    ) -> Any:
        """What a command of `tessera` does, by the flags as keywords; its PATH is that named "".

        `program`: a tessera_program, whose samples and scores they are.
        """
        text, what = flags_text(flags), name.encode()
        if program is None:
            return self(lambda run, listener: library.tessera_call(run, what, text, listener))
        given = ctypes.byref(program)
        return self(lambda run, listener: library.tessera_call_with(run, what, text, given, listener))

    def save(self) -> None:
        """What the step at hand leaves is saved."""
        library.tessera_save(self._handle)

    def set_lr(self, rate: float) -> None:
        """Of steps after that at hand. Errors: it is none."""
        if library.tessera_set_lr(self._handle, rate):
            raise UsageError(f"lr is {rate}; give a rate of at most 1e30")

    def end(self) -> None:
        """As by Ctrl-C, in silence; from another thread."""
        self._fail(SystemExit())

    def in_caller(self, work: Callable[[], object]) -> object:
        """What `work` returns in the caller's thread; for threads of the library. Raises what it
        raises, or KeyboardInterrupt, where the call is to end."""
        answer: queue.SimpleQueue = queue.SimpleQueue()
        self._inbox.put(("work", (work, answer)))
        while True:
            try:
                done, result = answer.get(timeout=_SECOND)
            except queue.Empty:
                if self._failure is None or self._works:
                    continue
                raise KeyboardInterrupt from None  # it struck between two lines, and nobody answers
            if done:
                return result
            raise result

    def __call__(self, work: Callable[[Optional[int], object], int]) -> Any:
        """Returns the result, once the call has ended. Raises what a callback raised,
        KeyboardInterrupt, or the error of the library."""
        require_own_process()
        self._handle = library.tessera_run_new()
        line = LINE(self._line) if self._on_line else LINE()
        listener = Listener(None, EVENT(self._event), line)

        def call() -> None:
            try:
                work(self._handle, ctypes.byref(listener))
            except BaseException as failure:  # of Python, about the call
                self._failure = self._failure or failure
            finally:
                self._inbox.put(None)

        name = _ALONE if self._alone else "tessera"
        thread = threading.Thread(target=call, name=name, daemon=True)
        try:
            _start(thread, self._alone)
            end_at_exit(self)
            ended = False
            while not ended:
                try:
                    ended = self._attend(thread)
                except BaseException as failure:  # Ctrl-C, between two items
                    self._fail(failure)
            thread.join(_SECOND)
            if self._failure is not None:
                raise self._failure
            error = library.tessera_error(self._handle)
            if error is not None:
                raise error_of(json.loads(error))
            result = library.tessera_result(self._handle)
            return None if result is None else json.loads(result)
        finally:
            self._failure = None  # its traceback holds this object
            if not thread.is_alive():
                library.tessera_run_free(self._handle)
            forget(self)

    def _attend(self, thread: threading.Thread) -> bool:
        """Does what comes next; true when the call has ended."""
        try:
            # Ctrl-C may strike between get() and what follows, and the item is gone: so nobody
            # waits for one for ever.
            try:
                item = self._inbox.get(timeout=_SECOND)
            except queue.Empty:
                return not thread.is_alive() and self._inbox.empty()
            if item is None:
                return True
            what, text = item
            if what == "work":
                self._do(*text)
                return False
            if what == "line":
                if self._failure is None and self._on_line is not None:
                    self._on_line(text.decode(errors="replace"))
                return False
            stop = True
            try:
                if self._failure is None and self._on_event is not None:
                    stop = bool(self._on_event(json.loads(text)))
            finally:
                self._answer.put(stop)
        except BaseException as failure:  # Ctrl-C too: the run saves first
            self._fail(failure)
        return False

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        library.tessera_stop(self._handle)

    def _do(self, work: Callable[[], object], answer: queue.SimpleQueue) -> None:
        self._works = True
        try:
            if self._failure is not None:
                answer.put((False, KeyboardInterrupt()))
                return
            try:
                result = work()
            except Exception as failure:
                answer.put((False, failure))
            except BaseException as failure:
                answer.put((False, failure))
                raise
            else:
                answer.put((True, result))
        finally:
            self._works = False

    # These two are called by the library, in its threads.

    def _event(self, _user: object, text: bytes) -> int:
        self.events.append(text)
        if self._on_event is None:
            return 0
        self._inbox.put(("event", text))
        while True:
            try:
                return 1 if self._answer.get(timeout=_SECOND) else 0
            except queue.Empty:
                if self._failure is not None:
                    return 1

    def _line(self, _user: object, text: bytes) -> None:
        self._inbox.put(("line", text))
