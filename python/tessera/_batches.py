"""Samples of Python as rows of numbers of one length, which the library reads."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._errors import DataError, UsageError
from ._rows import ENDLESS, Rows, is_mapping, length_of

try:
    import numpy
except ImportError:  # tessera.train needs none
    numpy = None

# Names of what models read of a text's tokens: rows as long as the context.
_OF_IDS = (
    "input_ids ids attention_mask mask token_type_ids types position_ids positions "
    "special_tokens_mask source"
).split()
_OF_TARGETS = ["labels", "decoder_input_ids", "decoder_attention_mask"]
_IDS, _MASKS = ("input_ids", "ids", "source"), ("attention_mask", "mask")
_OTHERS = (
    "start_positions end_positions start end next_sentence_label next pixel_values patches "
    "masked_positions last"
).split()
_READ = {*_OF_IDS, *_OF_TARGETS, *_OTHERS}
LABELS = ("labels", "start_positions", "end_positions", "start", "end", "next_sentence_label", "next")

_IGNORED = -100  # a label that does not count
_LEAST, _MOST = -(2**31), 2**31 - 1
_MOST_IN_ROW = 2**24


class Lengths:
    """How long rows are: those of ids, and those of targets where a text is written from another.

    As flags say it, or as the longest of all samples where these are cheap to look at, else as the
    first sample.
    """

    def __init__(self, all_rows: Sequence[Rows], flags: Mapping):
        self._rows = all_rows
        self._context, self._source = _length_flag(flags, "context"), _length_flag(flags, "source_context")
        self.apart = flags.get("task") == "seq2seq_lm"  # ids are of another text than targets
        self.ids: Optional[int] = None
        self.targets: Optional[int] = None
        self._settled = False
        self.numbers = False  # labels are no tokens
        self._differing: Optional[Tuple[int, int]] = None  # ids and labels of the first sample

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Labels of another length than ids are another text, to models that read two."""
        try:
            yield
        except UsageError as error:
            if self._differing is None or "--source-context" not in str(error):
                raise
            ids, labels = self._differing
            raise DataError(
                f"sample 0 of the dataset has {ids} input_ids and {labels} labels, which only a model that writes "
                "one text from another reads; give as many labels as input_ids, or one for a sample of a classifier"
            ) from None

    def of(self, name: str) -> Optional[int]:
        if name == "labels" and self.numbers:
            return None
        if name in _OF_TARGETS or (self.apart and name == "ids"):
            return self.targets
        return self.ids if name in _OF_IDS else None

    def settle(self, first: Mapping) -> None:
        """By the first sample: its rows, as arrays."""
        if self._settled:
            return
        self._settled = True
        ids = next((len(first[name]) for name in _IDS if name in first), None)
        self.numbers = "labels" in first and first["labels"].dtype.kind == "f"
        targets = next((len(first[n]) for n in _OF_TARGETS if n in first and not (n == "labels" and self.numbers)), None)
        self.apart = self.apart or "decoder_input_ids" in first or "source" in first
        if not self.apart and ids is not None and targets is not None and ids != targets:
            self.apart = True
            self._differing = (ids, targets)
        self.ids = (self._source if self.apart else self._context) or self._longest(_IDS) or ids
        self.targets = self.ids
        if self.apart or ids is None:
            self.targets = self._context or self._longest(("labels", "decoder_input_ids")) or targets

    def _longest(self, names: Sequence[str]) -> Optional[int]:
        longest = 0
        for rows in self._rows:
            for name in names:
                lengths = rows.lengths(name)
                if lengths is None:
                    return None
                longest = max(longest, max(lengths, default=0))
        return longest or None


def _length_flag(flags: Mapping, name: str) -> Optional[int]:
    """None also where it is no number, which the library refuses."""
    try:
        return int(flags[name]) or None
    except (KeyError, TypeError, ValueError):
        return None


class Batches:
    """Samples of one dataset as arrays [samples] or [samples, row] of i32 and f32, by name.

    left_out   names of columns that are neither numbers nor rows of them, once samples were read
    unmasked   a sample of the last batch that was filled up without an attention_mask; -1: none
    labels     by number, of the samples that were read, where they are kept
    """

    def __init__(
        self,
        rows: Rows,
        lengths: Lengths,
        collator: Optional[Callable] = None,
        drops: bool = True,
        keeps_labels: bool = False,
    ):
        self.rows = rows
        self.left_out: List[str] = []
        self.unmasked = -1
        self.labels: Dict[str, dict] = {}
        self.lengths = lengths
        self._collator = collator
        self._drops = drops
        self._keeps_labels = keeps_labels
        self._first: Optional[Dict[str, Tuple[bool, int]]] = None  # of each: is it a float, its dims
        self._dropped: Optional[frozenset] = None
        self._names: List[str] = []  # of the first sample
        self._plain: dict = {}  # what _plain_rows said of it

    def take(self, numbers: Sequence[int]) -> Dict[str, "numpy.ndarray"]:
        self.unmasked = -1
        samples = self._samples(numbers)
        if self._dropped is None:
            self._dropped = self._names_to_drop(samples[0])
            self.left_out = sorted(self._dropped)
        alike = self._alike(samples)
        if alike is not None:
            return self._noted(numbers, {k: _narrowed(k, numbers, *column) for k, column in alike.items()})
        if self._collator is None:
            given = self._columns(numbers, samples)
        else:
            given = self._collated(numbers, samples)
        self._settle(given)
        self._require_one_length(numbers, given)
        out = {name: self._column(name, numbers, column) for name, column in given.items()}
        self._note_unmasked(numbers, given, out)
        self._plain = {} if self._collator is not None or self.unmasked >= 0 else self._plain_rows(samples[0], out)
        return self._noted(numbers, out)

    def kind_of(self, name: str) -> Tuple[bool, int]:
        """Of a feature of the first sample: is it a float, its dims."""
        return (self._first or {}).get(name, (False, 0))

    def _noted(self, numbers: Sequence[int], out: Dict[str, "numpy.ndarray"]) -> Dict[str, "numpy.ndarray"]:
        if self._keeps_labels:
            for name in LABELS:
                if name in out:
                    self.labels.setdefault(name, {}).update(zip(numbers, out[name]))
        return out

    def _plain_rows(self, sample: Mapping, out: Mapping) -> dict:
        """Of a sample that is arrays as long as its rows are to be: their types and shapes."""
        plain = {}
        for name in self._names:
            array, column = sample[name], out[_renamed(name, self._names)]
            if type(array) is not numpy.ndarray or array.shape != column.shape[1:]:
                return {}
            if array.dtype.kind != column.dtype.kind:
                return {}
            plain[name] = (array.dtype, array.shape)
        return plain if len(sample) == len(plain) + len(self._dropped or ()) else {}

    def _alike(self, samples: Sequence[Mapping]) -> Optional[Dict[str, Tuple["numpy.ndarray", bool]]]:
        """Samples as the first one was, which need no look at each: arrays of one type and shape."""
        plain, count = self._plain, len(self._plain) + len(self._dropped or ())
        if not plain or any(type(sample) is not dict or len(sample) != count for sample in samples):
            return None
        out = {}
        for name, (dtype, shape) in plain.items():
            rows = [sample.get(name) for sample in samples]
            if any(type(row) is not numpy.ndarray or row.dtype != dtype or row.shape != shape for row in rows):
                return None
            out[_renamed(name, self._names)] = (numpy.array(rows), dtype.kind == "f")
        return out

    def digest(self) -> str:
        """Of some samples, as they are before a collator, which may draw numbers of its own."""
        size, most = self.rows.size, 16
        some = [0] if self.rows.in_order else sorted({i * (size - 1) // (most - 1) for i in range(most)})
        found = hashlib.sha256(str(size if size != ENDLESS else 0).encode())
        for sample in self._samples(some):
            for name in sorted(sample.keys()):
                value = sample[name]
                array = _numbers(value)
                if array is not None:
                    value = array.astype(numpy.float64).tobytes()
                elif not isinstance(value, (str, bytes)):
                    value = type(value).__name__
                found.update(f"{name}{value!r}".encode(errors="replace"))
        return found.hexdigest()

    def _settle(self, given: dict) -> None:
        first = {name: _numbers(column[0]) for name, column in given.items()}
        self.lengths.settle({k: row for k, row in first.items() if row is not None and row.ndim == 1})

    def _samples(self, numbers: Sequence[int]) -> List[Mapping]:
        samples = self.rows.take(numbers)
        for number, sample in zip(numbers, samples):
            if not is_mapping(sample):
                raise DataError(
                    f"sample {number} of the dataset is a {type(sample).__name__}; give a mapping of "
                    'features, as {"input_ids": [...], "labels": [...]}'
                )
            _require_names(sample, f"sample {number} of the dataset")
        return samples

    def _names_to_drop(self, sample: Mapping) -> frozenset:
        names = [name for name in sample.keys() if name not in _READ and not _is_feature(sample[name])]
        rows = [name for name in sample.keys() if name in _OF_IDS]
        # A collator may make numbers of texts.
        return frozenset(names if self._drops and (self._collator is None or rows) else ())

    def _columns(self, numbers: Sequence[int], samples: Sequence[Mapping]) -> Dict[str, list]:
        if not self._names:
            self._names = [name for name in samples[0].keys() if name not in self._dropped]
        names = self._names
        if not names:
            raise DataError(
                f"sample {numbers[0]} of the dataset has no numbers, only {_listed(samples[0].keys())}; "
                "tokenize texts, or give a data_collator that does"
            )
        for number, sample in zip(numbers, samples):
            mine = [name for name in sample.keys() if name not in self._dropped]
            if set(mine) != set(names):
                raise DataError(
                    f"sample {number} of the dataset has {_listed(mine)}, but the first one has "
                    f"{_listed(names)}; give all samples the same features"
                )
        return {_renamed(name, names): [sample[name] for sample in samples] for name in names}

    def _collated(self, numbers: Sequence[int], samples: Sequence[Mapping]) -> Dict[str, list]:
        batch = self._collator(
            [{k: sample[k] for k in sample.keys() if k not in self._dropped} for sample in samples]
        )
        if not is_mapping(batch):
            raise DataError(
                f"data_collator returned a {type(batch).__name__}; return a mapping of arrays "
                "[samples, ...]"
            )
        _require_names(batch, "what data_collator returned")
        names = list(batch.keys())
        out = {}
        for name in names:
            column = batch[name]
            size = length_of(column)
            if size != len(samples):
                raise DataError(
                    f"data_collator returned {'no row' if size is None else size} of '{name}' for "
                    f"{len(samples)} samples; return one row for each"
                )
            if name not in _READ and self._drops and not _is_feature(column[0]):
                self.left_out = sorted({*self.left_out, name})
                continue
            out[_renamed(name, names)] = list(column) if isinstance(column, (list, tuple)) else column
        return out

    def _column(self, name: str, numbers: Sequence[int], column: Sequence) -> "numpy.ndarray":
        """All values under a name, [samples] or [samples, row]."""
        whole = None if isinstance(column, list) else _numbers(column)
        if whole is not None and whole.ndim in (1, 2):
            rows: Sequence = whole
        else:
            rows = [self._row(name, number, value) for number, value in zip(numbers, column)]
        first, number = rows[0], numbers[0]
        if self._first is None:
            self._first = {}
        kind = self._first.setdefault(name, (first.dtype.kind == "f", first.ndim))
        for i, row in zip(numbers, rows) if isinstance(rows, list) else [(number, first)]:
            self._require_kind(name, i, row, kind)
        if kind[1] == 1:
            rows = self._padded(name, numbers, rows)
        out = numpy.asarray(rows) if not isinstance(rows, list) else numpy.stack(rows)
        return _narrowed(name, numbers, out, kind[0])

    def _row(self, name: str, number: int, value: object) -> "numpy.ndarray":
        out = _numbers(value)
        if out is not None and out.ndim == 3 and name == "pixel_values":  # channels, height, width
            return out.reshape(-1)
        if out is None or out.ndim > 1:
            shape = "" if out is None else f" of shape {list(out.shape)}"
            raise DataError(
                f"sample {number} of the dataset: feature '{name}' is {_shown(value)}{shape}; give a "
                "number, or a row of numbers"
            )
        return out

    @staticmethod
    def _require_kind(name: str, number: int, row: "numpy.ndarray", kind: Tuple[bool, int]) -> None:
        mine = (row.dtype.kind == "f", row.ndim)
        if row.ndim == 1 and row.size == 0:
            mine = (kind[0], 1)
        if mine == kind or (kind[0] and mine[1] == kind[1]):  # whole numbers among floats
            return
        words = [f"{'a row of ' if dims else 'one '}{'float' if f else 'whole number'}{'s' * dims}" for f, dims in (mine, kind)]
        raise DataError(
            f"sample {number} of the dataset: feature '{name}' is {words[0]}, {_shown(row.tolist())}, but "
            f"in the first sample it is {words[1]}; give the same in all samples"
        )

    def _padded(self, name: str, numbers: Sequence[int], rows: Sequence) -> "numpy.ndarray":
        length = self.lengths.of(name)
        if length is None:  # of no text: as the first
            length = self._first.setdefault("length of " + name, (False, len(rows[0])))[1]
        longest = max(range(len(rows)), key=lambda k: len(rows[k]))
        of_text = self.lengths.of(name) is not None
        if len(rows[longest]) > length or (not of_text and any(len(row) != length for row in rows)):
            k = longest if of_text else next(k for k in range(len(rows)) if len(rows[k]) != length)
            raise DataError(
                f"sample {numbers[k]} of the dataset: feature '{name}' has {len(rows[k])} numbers, and "
                + (
                    f"rows have {length}; cut it, or give context={len(rows[k])} or more, as long as the longest row"
                    if of_text
                    else f"that of the first sample {length}; give rows of one length"
                )
            )
        fill = _IGNORED if name == "labels" else 0
        if all(len(row) == length for row in rows):
            return rows
        if length > _MOST_IN_ROW:
            raise UsageError(f"context is {length}, and rows have at most {_MOST_IN_ROW} numbers; give less")
        kind = "f" if any(row.dtype.kind == "f" for row in rows) else "i"
        out = numpy.full((len(rows), length), fill, numpy.float64 if kind == "f" else numpy.int64)
        for k, row in enumerate(rows):
            out[k, : len(row)] = row
        return out

    def _require_one_length(self, numbers: Sequence[int], given: dict) -> None:
        """Of all rows of a text."""
        for targets in (False, True):
            first: Optional[str] = None
            for name, column in given.items():
                if name not in _OF_IDS and name not in _OF_TARGETS or name == "labels" and self.lengths.numbers:
                    continue
                of_targets = self.lengths.apart and (name in _OF_TARGETS or name == "ids")
                if of_targets is not targets or length_of(column[0]) is None:
                    continue
                if first is None:
                    first = name
                    continue
                for number, row, other in zip(numbers, column, given[first]):
                    lengths = length_of(row), length_of(other)
                    if None in lengths or lengths[0] == lengths[1]:
                        continue
                    if _numbers(row) is not None and _numbers(other) is not None:
                        raise DataError(
                            f"sample {number} of the dataset: '{name}' has {len(row)} numbers and "
                            f"'{first}' {len(other)}; give as many"
                        )

    def _note_unmasked(self, numbers: Sequence[int], given: dict, out: dict) -> None:
        if any(name in given for name in _MASKS):
            return
        for name in _IDS:
            if name not in out or out[name].ndim != 2 or (name == "ids" and self.lengths.apart):
                continue
            short = [k for k, row in enumerate(given[name]) if len(row) < out[name].shape[1]]
            if short:
                self.unmasked = int(numbers[short[0]])
                return


def _require_names(features: Mapping, what: str) -> None:
    for name in features.keys():
        if type(name) is not str or not name or name.startswith("batch.") or "\0" in name:
            raise DataError(f"{what} has a feature called {name!r}; call it by a word, as 'labels'")


def _renamed(name: str, names: Sequence[str]) -> str:
    return "labels" if name in ("label", "label_ids") and "labels" not in names else name


def _numbers(value: object) -> Optional["numpy.ndarray"]:
    """An array of int64, uint64 or a float; None: it is none of numbers."""
    if isinstance(value, (str, bytes)) or value is None or is_mapping(value):
        return None
    if isinstance(value, numpy.ma.MaskedArray):
        raise DataError("the dataset has a masked array; fill it, as by x.filled(0)")
    if hasattr(value, "detach"):  # a tensor of torch
        value = value.detach()
    try:
        out = numpy.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if out.dtype.kind == "b":
        out = out.astype(numpy.int32)
    if out.ndim == 1 and out.size == 0 and out.dtype.kind == "f":  # of an empty list
        out = out.astype(numpy.int32)
    return out if out.dtype.kind in "iuf" else None


def _is_feature(value: object) -> bool:
    numbers = _numbers(value)
    return numbers is not None and numbers.ndim <= 1


def _narrowed(name: str, numbers: Sequence[int], of: "numpy.ndarray", is_float: bool) -> "numpy.ndarray":
    """As i32 or f32. Errors: a number that these have not."""

    def refuse(bad: "numpy.ndarray", what: str) -> None:
        at = tuple(numpy.argwhere(bad)[0])
        where = f" at {at[1]}" if len(at) > 1 else ""
        raise DataError(
            f"sample {numbers[at[0]]} of the dataset: feature '{name}' has {of[at].item()!r}{where}; {what}"
        )

    if is_float:
        with numpy.errstate(over="ignore"):
            out = numpy.ascontiguousarray(of, dtype=numpy.float32)
        if not numpy.isfinite(out).all():
            refuse(~numpy.isfinite(out), f"give finite numbers, of at most {numpy.finfo('f4').max:.6g}")
        return out
    if of.dtype == numpy.int32:
        return numpy.ascontiguousarray(of)
    if of.size and (of.max() > _MOST or of.min() < _LEAST):
        refuse((of > _MOST) | (of < _LEAST), f"whole numbers are from {_LEAST} to {_MOST}")
    return numpy.ascontiguousarray(of, dtype=numpy.int32)


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) or "nothing"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
