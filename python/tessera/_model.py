"""tessera.Model: a model that is called, writes texts, and is trained further."""

from __future__ import annotations

import json
import os
import queue
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from ._arrays import Inputs, arrays_of
from ._call import Call, end_at_exit, forget, give_back, require_own_process
from ._errors import UsageError, error_of, shown
from ._flags import Flag, flags_text
from ._library import EVENT, LINE, Listener, library

Path = Union[str, os.PathLike]
Prompt = Union[str, Sequence[int]]

_HUB = "transformers"
_OURS = "tessera"


def _done(run: object) -> Any:
    """The result of a call, or its error."""
    error = library.tessera_error(run)
    if error is not None:
        raise error_of(json.loads(error))
    result = library.tessera_result(run)
    return None if result is None else json.loads(result)


class _Run:
    """The handle of one call."""

    def __enter__(self) -> object:
        require_own_process()
        self._run = library.tessera_run_new()
        return self._run

    def __exit__(self, *_: object) -> None:
        library.tessera_run_free(self._run)


class Output(dict):
    """What a call of a model returns: numpy arrays of f32 by name, as attributes too.

    logits  [batch, length, vocabulary] of models of language, [batch, classes] of classifiers
    loss    a float, with labels; else None
    """

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            if name == "loss":
                return None
            raise AttributeError(f"there is no {name}; there are {', '.join(self)}") from None


class _SharedRun:
    """The handle of a call that two threads hold; it goes with the last."""

    def __init__(self):
        self.handle = library.tessera_run_new()

    def end(self) -> None:
        library.tessera_stop(self.handle)

    def __del__(self) -> None:
        library.tessera_run_free(self.handle)


class _Texts(Iterator[str]):
    """Pieces of a text as they are written; dropped or closed, it writes no more of them."""

    def __init__(self, model: "Model", prompts: bytes, flags: bytes):
        pieces: queue.SimpleQueue = queue.SimpleQueue()
        run = _SharedRun()

        def on_event(_user: object, text: bytes) -> int:
            pieces.put(json.loads(text)["piece"])
            return 0

        def write() -> None:  # holds nothing of this object, which may be dropped meanwhile
            listener = Listener(None, EVENT(on_event), LINE())
            try:
                with model._in_use() as handle:
                    library.tessera_model_write(run.handle, handle, prompts, flags, listener)
                pieces.put(None)
            except BaseException as failure:
                pieces.put(failure)
            forget(run)

        self._pieces = pieces
        self._run: Optional[_SharedRun] = run
        self._thread = threading.Thread(target=write, name="tessera", daemon=True)
        end_at_exit(run)
        self._thread.start()

    def __next__(self) -> str:
        if self._run is None:
            raise StopIteration
        piece = self._pieces.get()
        if isinstance(piece, str):
            return piece
        self._thread.join()
        run, self._run = self._run, None
        if piece is not None:
            raise piece
        _done(run.handle)
        raise StopIteration

    def close(self) -> None:
        if self._stop():
            self._thread.join()

    def __del__(self) -> None:
        self._stop()  # waits for nobody: it may run in the thread that writes

    def _stop(self) -> bool:
        run, self._run = getattr(self, "_run", None), None
        if run is not None:
            library.tessera_stop(run.handle)
        return run is not None


class Model:
    """A model, to be called with batches of any size, to write texts, to be trained by a Trainer.

        model = tessera.Model.from_pretrained("runs/mine")     # a run, a checkpoint, a folder, a name
        model(input_ids=ids, attention_mask=mask).logits       # numpy, torch or any DLPack in, numpy out
        model.generate("The ", tokens=100, temperature=0.8)

    config  a dict of what the model is
    labels  names of classes, by number
    source  where its weights are: the path that it was opened from, or the last checkpoint of a
            training; None: it is new
    """

    def __init__(self, **flags: Flag):
        """A new model with random weights: the flags of a model and of devices (docs/reference/
        flags.md), as preset="gpt2-tiny", vocab_size=50257, seed=1, devices=2. Raises UsageError.
        """
        self.flags = {name: value for name, value in flags.items() if name != "init_from"}
        self.source: Any = flags.get("init_from")
        self._model = None
        self._lock = threading.Lock()
        self._open()

    @classmethod
    def from_pretrained(cls, path: Path, **flags: Flag) -> "Model":
        """The model at a path: a run, a checkpoint or a folder of transformers; or one of Hugging
        Face by its name, if it has been downloaded.

        flags  task="sequence_classification" and classes=2 give it another head, which is new where
               the weights have none; devices=2, tensor_model_parallel_size=2, ... say where it
               computes, bf16=True in which floats. Without them f32 on one device.

        Raises CheckpointError, DataError or UsageError, as the command does.
        """
        return cls(init_from=os.fspath(path), **flags)

    def _open(self) -> None:
        with _Run() as run:
            flags = {**self.flags, "init_from": self.source}
            model = library.tessera_model_open(run, flags_text(flags))
            about = _done(run)
        self._close()
        with self._lock:
            self._model = model
        self.config: Dict[str, object] = about["config"]
        self.labels: List[str] = about["labels"]
        self.notices: List[str] = about["notices"]
        self._hub_names: bool = about["hub_names"]

    @contextmanager
    def _in_use(self) -> Iterator[object]:
        """The library's model, which nobody else uses or closes meanwhile."""
        with self._lock:
            if self._model is None:
                raise UsageError("the model is closed; open it again")
            yield self._model

    def _trained(self, checkpoint: str) -> None:
        """The weights are those of a checkpoint from here on, which says what the model is."""
        said = {"preset", *self.config} - {"context", "source_context"}  # as long as rows were
        self.flags = {name: value for name, value in self.flags.items() if name not in said}
        self.source = checkpoint
        self._open()

    def __call__(self, **inputs: object) -> Output:
        """transformers' model(**inputs), without dropout.

        Inputs have the names that transformers gives them: input_ids [batch, length],
        attention_mask, token_type_ids, labels, decoder_input_ids, pixel_values [batch, channels,
        height, width], ...: numpy, torch, jax or lists; whole numbers, or float32. A causal model
        shifts labels itself, and -100 counts nowhere. Raises UsageError or DataError, which names
        the input and the place.
        """
        given = Inputs({name: value for name, value in inputs.items() if value is not None})
        with _Run() as run:
            with self._in_use() as model:
                library.tessera_model_call(run, model, given.arrays, given.count)
            _done(run)
            out = Output(arrays_of(run))
        if "loss" in out:
            out["loss"] = float(out["loss"])
        return out

    def generate(
        self, prompt: Union[Prompt, Sequence[Prompt]] = "", *, stream: bool = False, **flags: Flag
    ) -> Union[str, List[str], List[int], List[List[int]], Iterator[str]]:
        """Texts, as `tessera sample` writes them: behind a prompt, or, of a model that translates,
        from it.

            model.generate("The ", tokens=100)                    # a str, without the prompt
            model.generate(["The ", "A "], temperature=0)         # a list of str
            model.generate([5, 17, 3], tokens=20)                 # ids in, ids out
            for piece in model.generate("The ", stream=True): print(piece, end="")

        flags: tokens (500), temperature (0.8, of translations 0), top_k, top_p, seed, beams,
        length_penalty, samples (texts of each prompt), stop (texts that end one), rows (texts that
        are written at a time). What a tokenizer of transformers returns is a prompt too: input_ids,
        and attention_mask, which says which of these are padding.
        """
        if "input_ids" in flags and isinstance(prompt, str) and not prompt:
            prompt = flags.pop("input_ids")
        if flags.get("attention_mask") is not None:
            prompt = _without_padding(prompt, flags.pop("attention_mask"))
        alone = isinstance(prompt, str) or _is_ids(prompt)
        prompts = [prompt] if alone else list(prompt)
        of_ids = bool(prompts) and all(not isinstance(one, str) for one in prompts)
        plain = [one if isinstance(one, str) else _ids(one) for one in prompts]
        text = json.dumps(plain).encode()
        if stream:
            if not alone or of_ids or flags.get("samples", 1) != 1:
                raise UsageError("stream=True is for one text behind one prompt; leave it out")
            require_own_process()
            return _Texts(self, text, flags_text(flags))
        how = flags_text(flags)
        with self._in_use() as model:
            written = Call()(
                lambda run, listener: library.tessera_model_write(run, model, text, how, listener)
            )
        out = [one["ids"] if of_ids else one["text"] for one in written]
        return out[0] if alone and len(out) == 1 else out

    def state_dict(self, names: Optional[str] = None) -> Dict[str, object]:
        """All parameters, whole, as numpy arrays of f32 by name.

        names  "transformers": its names and layout, as save_pretrained writes them; "tessera": the
               paths of blocks, as "layers.0.attn.qkv.weight". Without it transformers' where it has
               a class of this model, and the model came from a folder.
        """
        if names not in (None, _HUB, _OURS):
            raise UsageError(f"names is {shown(names)}; give {_HUB!r} or {_OURS!r}")
        of_folder = self.source is not None and os.path.isfile(
            os.path.join(self.source, "config.json")
        )
        hub = names == _HUB or (names is None and self._hub_names and of_folder)
        with _Run() as run:
            with self._in_use() as model:
                library.tessera_model_parameters(run, model, int(hub))
            _done(run)
            return dict(arrays_of(run))

    def save_pretrained(
        self, folder: Path, *, dtype: str = "f32", overwrite: bool = False
    ) -> List[str]:
        """Writes config.json, weights and the tokenizer as transformers loads them. Returns the names
        of parameters that its class has none for. A folder that has a model is refused without
        overwrite.
        """
        flags = dict(folder=os.fspath(folder), dtype=dtype, overwrite=overwrite)
        with _Run() as run:
            with self._in_use() as model:
                library.tessera_model_save(run, model, flags_text(flags))
            return _done(run)["left_out"]

    def encode(self, text: str) -> List[int]:
        """The ids of a text, without special tokens."""
        return self._tokens({"text": text})["ids"]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        return self._tokens({"ids": _ids(ids)})["text"]

    def _tokens(self, asked: dict) -> dict:
        with _Run() as run:
            with self._in_use() as model:
                library.tessera_model_tokens(run, model, json.dumps(asked).encode())
            return _done(run)

    def _close(self) -> None:
        with self._lock:
            model, self._model = self._model, None
            if model is not None:
                give_back(library.tessera_model_free, model)

    def close(self) -> None:
        """Gives its memory and devices back; also done when nobody holds it."""
        self._close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None) is not None:
            self._close()

    def __repr__(self) -> str:
        of = f" of {self.source}" if self.source else ", new"
        closed = " (closed)" if self._model is None else ""
        return f"<tessera.Model {self.config['family']}, {self.config['task']}{of}{closed}>"


def _ids(value: Any) -> List[int]:
    try:
        out = list(value.tolist() if hasattr(value, "tolist") else value)
        if all(isinstance(one, int) and not isinstance(one, bool) for one in out):
            return out
    except Exception:  # of whatever it is
        pass
    raise UsageError(f"{shown(value)} is neither a text nor a list of ids; give one")


def _without_padding(prompts: Any, masks: Any) -> List[Any]:
    """Of ids, or rows of them, those where the mask is not 0."""
    prompts, masks = [one.tolist() if hasattr(one, "tolist") else one for one in (prompts, masks)]
    if not isinstance(prompts, (list, tuple)) or not prompts or isinstance(prompts[0], str):
        raise UsageError("an attention_mask is for ids, and the prompt has none; leave it out")
    if not isinstance(masks, (list, tuple)) or len(masks) != len(prompts):
        size = len(masks) if isinstance(masks, (list, tuple)) else shown(masks)
        raise UsageError(f"attention_mask has {size} rows or numbers, and the ids have {len(prompts)}; give as many")
    if not _is_ids(prompts):
        return [_without_padding(prompt, mask) for prompt, mask in zip(prompts, masks)]
    return [one for one, kept in zip(prompts, masks) if kept]


def _is_ids(value: object) -> bool:
    try:
        plain = value.tolist() if hasattr(value, "tolist") else value
    except Exception:  # of whatever it is
        return False
    return isinstance(plain, (list, tuple)) and bool(plain) and isinstance(plain[0], int)
