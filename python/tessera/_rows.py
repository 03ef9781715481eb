"""Datasets of Python as samples by number: lists, columns, streams, batches of torch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import List, Optional, Sequence

from ._errors import DataError, UsageError

# Nobody knows how many there are.
ENDLESS = 2**40


def is_mapping(value: object) -> bool:
    """Also transformers' BatchEncoding, which is no Mapping."""
    return isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


class Rows:
    """Samples by number, each a mapping of features.

    size      how many there are; ENDLESS where that is not known
    in_order  they can be read one after the other alone, and the first one again
    columns   names and values of all samples, where these lie in memory; else None
    """

    in_order = False
    size: int
    columns: Optional[dict] = None

    def take(self, numbers: Sequence[int]) -> List[Mapping]:
        raise NotImplementedError

    def lengths(self, name: str) -> Optional[Iterable]:
        """Of the rows under this name, where it is cheap to know them all; else None."""
        return None


class _Mapped(Rows):
    """An object with __len__ and __getitem__, as torch's datasets; __getitems__ gives many at once."""

    def __init__(self, dataset: Sized):
        self._dataset = dataset
        self.size = len(dataset)

    def take(self, numbers: Sequence[int]) -> List[Mapping]:
        many = getattr(self._dataset, "__getitems__", None)
        if many is None:
            return [self._dataset[i] for i in numbers]
        samples = list(many(list(numbers)))
        if len(samples) != len(numbers):
            raise DataError(f"__getitems__ was asked for {len(numbers)} samples and returned {len(samples)}")
        return samples

    def lengths(self, name: str) -> Optional[Iterable]:
        if isinstance(self._dataset, (list, tuple)):
            rows = (row[name] for row in self._dataset if is_mapping(row) and name in row.keys())
        elif getattr(self._dataset, "column_names", None):  # of Hugging Face
            rows = iter(self._dataset[name] if name in self._dataset.column_names else ())
        else:
            return None
        return (length for length in map(length_of, rows) if length is not None)


class _Columns(Rows):
    """A mapping of columns, each with a value for every sample."""

    def __init__(self, columns: Mapping):
        self.columns = {name: columns[name] for name in columns.keys()}
        sizes = {name: length_of(column) for name, column in self.columns.items()}
        for name, size in sizes.items():
            if size is None or is_mapping(self.columns[name]):
                raise DataError(
                    f"column {name!r} of a dataset is a {type(self.columns[name]).__name__}; give a "
                    "value for each sample"
                )
        if len(set(sizes.values())) > 1:
            raise DataError(f"columns of a dataset have other lengths than each other: {sizes}")
        self.size = next(iter(sizes.values()), 0)

    def take(self, numbers: Sequence[int]) -> List[Mapping]:
        return [{name: column[i] for name, column in self.columns.items()} for i in numbers]

    def lengths(self, name: str) -> Optional[Iterable]:
        column = self.columns.get(name)
        if column is None:
            return ()
        shape = getattr(column, "shape", None)
        if shape is not None:
            return shape[1:2]
        return (length for length in map(length_of, column) if length is not None)


class _Stream(Rows):
    """An iterable of samples or of batches, which begins again where it ends."""

    in_order = True

    def __init__(self, dataset: Iterable):
        self._dataset = dataset
        self._rows: Optional[Iterator] = None
        self._first: Optional[Mapping] = None
        self._next = 0  # the number of what _rows gives next
        loader = [getattr(dataset, name, None) for name in ("batch_size", "batch_sampler")]
        self._batches = is_loader(dataset) and loader != [None, None]
        self.size = self._known_size()

    def _known_size(self) -> int:
        try:
            if not self._batches:
                return len(self._dataset)
            batches, batch = len(self._dataset), getattr(self._dataset, "batch_size", None)
            if not batch:  # a batch_sampler of one's own
                return ENDLESS
            if getattr(self._dataset, "drop_last", False):
                return batches * batch
            sampler = getattr(self._dataset, "sampler", None)
            return len(self._dataset.dataset if sampler is None else sampler)
        except (TypeError, AttributeError):
            return ENDLESS

    def take(self, numbers: Sequence[int]) -> List[Mapping]:
        return [self._sample(i) for i in numbers]

    def _sample(self, number: int) -> Mapping:
        if number == 0 and self._first is not None:
            return self._first
        if number < self._next:
            self._begin()
        while True:
            sample = self._advance()
            if self._next == 1:
                self._first = sample
            if self._next > number:
                return sample

    def _begin(self) -> None:
        rows = iter(self._dataset)
        if rows is self._dataset and self._rows is not None:
            raise DataError(
                f"an iterator of samples was read up to {self._next} and cannot begin again; give a "
                "list, or an object whose __iter__ begins anew"
            )
        self._rows, self._next = self._samples_of(rows), 0

    def _advance(self) -> Mapping:
        if self._rows is None:
            self._begin()
        for sample in self._rows:
            self._next += 1
            return sample
        if self._next == 0:
            raise DataError("an iterable of samples is empty; give it some")
        number = self._next
        self._begin()
        for sample in self._rows:
            self._next = number + 1
            return sample
        raise DataError(
            f"an iterable of samples ended after {number} and gives no more; give fewer steps, or an "
            "object whose __iter__ begins anew"
        )

    def _samples_of(self, rows: Iterator) -> Iterator[Mapping]:
        for item in rows:
            if self._batches or _is_batch(item):
                if not self._batches and self.size != ENDLESS:
                    raise DataError(
                        "an iterable whose length is that of its batches does not say how many samples there "
                        "are; leave __len__ out and give steps, or give samples, or a DataLoader of torch"
                    )
                yield from samples_of_batch(item)
            else:
                yield item


def length_of(row: object) -> Optional[int]:
    try:
        return len(row)
    except TypeError:  # a number, also a tensor of one
        return None


def is_loader(dataset: object) -> bool:
    """It gives batches, as torch.utils.data.DataLoader."""
    return hasattr(dataset, "collate_fn") and hasattr(dataset, "batch_sampler")


def _is_batch(item: object) -> bool:
    if not is_mapping(item):
        return False
    shapes = [getattr(item[name], "shape", ()) for name in item.keys()]
    return (
        len(shapes) > 0
        and all(len(shape) > 0 for shape in shapes)
        and len({shape[0] for shape in shapes}) == 1
        and any(len(shape) > 1 for shape in shapes)
    )


def samples_of_batch(batch: object) -> List[Mapping]:
    if not is_mapping(batch):
        raise DataError(
            f"an iterable gave a {type(batch).__name__}; give mappings of features, as "
            '{"input_ids": [...], "labels": [...]}'
        )
    names = list(batch.keys())
    sizes = {name: length_of(batch[name]) for name in names}
    if None in sizes.values():
        raise DataError(f"features of a batch have no samples: {[n for n in names if sizes[n] is None]}")
    if len(set(sizes.values())) > 1:
        raise DataError(f"features of a batch have other numbers of samples than each other: {sizes}")
    count = next(iter(sizes.values()), 0)
    return [{name: batch[name][i] for name in names} for i in range(count)]


def rows_of(dataset: object, use: str) -> Rows:
    """Samples of a dataset of any kind. `use`: what errors call it."""
    if is_mapping(dataset) and not hasattr(dataset, "column_names"):
        return _Columns(dataset)
    sized = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if sized and not is_loader(dataset) and getattr(dataset, "ndim", 1) > 0:
        if isinstance(dataset, (str, bytes)):
            raise UsageError(f"{use} is a text; give samples, or name a file by the flag data")
        return _Mapped(dataset)
    if isinstance(dataset, Iterable) and getattr(dataset, "ndim", 1) > 0:
        return _Stream(dataset)
    raise UsageError(
        f"{use} is a {type(dataset).__name__}; give a list of samples, an object with __len__ and "
        "__getitem__, a mapping of columns, or an iterable"
    )


def whole(rows: Rows) -> Rows:
    """The same, of which any sample can be read at any time."""
    if not rows.in_order:
        return rows
    dataset, rows.size = rows._dataset, ENDLESS
    samples: List[Mapping] = list(rows._samples_of(iter(dataset)))
    return _Mapped(samples)
