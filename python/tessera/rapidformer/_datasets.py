"""Tables as datasets: what a script does with Hugging Face's `datasets`, for local files."""

from __future__ import annotations

import csv
import json
import os
import random
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Union

from .._errors import DataError, UsageError
from .._typed import typed

_PARTS = {"train": ("train",), "validation": ("validation", "valid", "dev"), "test": ("test",)}
_ENDINGS = (".tsv", ".csv", ".jsonl", ".json", ".parquet", ".arrow", ".txt")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


class Dataset:
    """Rows with named columns: len(), dataset[3], dataset["text"], map(), select(), ..."""

    def __init__(self, columns: Dict[str, list]):
        self._columns = {name: list(values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise UsageError(f"columns have different lengths: {lengths}")

    @property
    def column_names(self) -> List[str]:
        return list(self._columns)

    @property
    def columns(self) -> Dict[str, list]:
        return self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, which: Union[int, str, slice]) -> Union[dict, list]:
        if isinstance(which, str):
            self._require([which])
            return self._columns[which]
        return {name: values[which] for name, values in self._columns.items()}

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def map(
        self,
        function: Callable[[dict], Optional[dict]],
        batched: bool = False,
        batch_size: int = 1000,
        remove_columns: Union[str, Sequence[str]] = (),
    ) -> "Dataset":
        """With the columns that the function makes of a row, or, batched, of columns of rows."""
        gone = [remove_columns] if isinstance(remove_columns, str) else list(remove_columns)
        self._require(gone)
        made: Dict[str, list] = {}
        step = batch_size if batched else 1
        for begin in range(0, len(self), step):
            found = function(self[begin : begin + step] if batched else self[begin]) or {}
            if begin and sorted(found) != sorted(made):
                raise UsageError(
                    f"map: of row {begin} the function makes {_listed(found)}, and of the first {_listed(made)}; "
                    "make the same columns of each"
                )
            for name, value in dict(found).items():
                made.setdefault(name, []).extend(value if batched else [value])
        kept = {name: values for name, values in self._columns.items() if name not in gone}
        return Dataset({**kept, **made})

    def rename_column(self, old: str, new: str) -> "Dataset":
        self._require([old])
        return Dataset({new if name == old else name: v for name, v in self._columns.items()})

    def rename_column_(self, old: str, new: str) -> None:
        self._columns = self.rename_column(old, new)._columns

    def remove_columns(self, names: Union[str, Iterable[str]]) -> "Dataset":
        gone = [names] if isinstance(names, str) else list(names)
        self._require(gone)
        return Dataset({name: v for name, v in self._columns.items() if name not in gone})

    def select(self, rows: Iterable[int]) -> "Dataset":
        numbers = list(rows)
        return Dataset({name: [v[i] for i in numbers] for name, v in self._columns.items()})

    def shuffle(self, seed: Optional[int] = None) -> "Dataset":
        numbers = list(range(len(self)))
        random.Random(seed).shuffle(numbers)
        return self.select(numbers)

    def filter(self, function: Callable[[dict], bool]) -> "Dataset":
        return self.select(i for i in range(len(self)) if function(self[i]))

    def _require(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._columns:
                raise UsageError(f"there is no column {name!r}; there are {', '.join(self._columns)}")

    def __repr__(self) -> str:
        return f"Dataset({len(self)} rows: {', '.join(self._columns)})"


class DatasetDict(dict):
    """Datasets by name: "train", "validation", "test"."""

    def _each(self, name: str, *args, **kwargs) -> "DatasetDict":
        return DatasetDict({k: getattr(v, name)(*args, **kwargs) for k, v in self.items()})

    def map(self, *args, **kwargs) -> "DatasetDict":
        return self._each("map", *args, **kwargs)

    def rename_column(self, old: str, new: str) -> "DatasetDict":
        return self._each("rename_column", old, new)

    def rename_column_(self, old: str, new: str) -> None:
        for dataset in self.values():
            dataset.rename_column_(old, new)

    def remove_columns(self, names) -> "DatasetDict":
        return self._each("remove_columns", names)

    def filter(self, function) -> "DatasetDict":
        return self._each("filter", function)

    @property
    def column_names(self) -> Dict[str, List[str]]:
        return {name: dataset.column_names for name, dataset in self.items()}


def load_dataset(
    path: Union[str, os.PathLike],
    name: Optional[str] = None,
    *,
    data_files: Union[None, str, Dict[str, str]] = None,
    split: Optional[str] = None,
) -> Union[Dataset, DatasetDict]:
    """Tables of local files: nothing is downloaded.

        load_dataset("glue", "mrpc")     # glue/mrpc/train.tsv, dev.tsv, test.tsv; or .csv, .jsonl, ...
        load_dataset("csv", data_files={"train": "a.csv", "validation": "b.csv"})

    Parquet and Arrow files are read with pyarrow, where it is installed.
    """
    if data_files is not None:
        files = {"train": data_files} if isinstance(data_files, (str, os.PathLike)) else dict(data_files)
    else:
        folder = os.path.join(os.fspath(path), name or "")
        files = _files_in(folder)
        if not files:
            raise DataError(
                f"there is no table in {folder!r}: put train{_ENDINGS[0]} there, with the names of columns "
                f"in the first row, and dev or validation, and test; or {', '.join(_ENDINGS[1:])}"
            )
    out = DatasetDict({part: Dataset(_read(file)) for part, file in files.items()})
    if split is None:
        return out
    if split not in out:
        raise DataError(f"there is no part {split!r}; there are {', '.join(out)}")
    return out[split]


def _files_in(folder: str) -> Dict[str, str]:
    out = {}
    for part, names in _PARTS.items():
        found = [os.path.join(folder, n + e) for n in names for e in _ENDINGS]
        found = [file for file in found if os.path.isfile(file)]
        if found:
            out[part] = found[0]
    return out


def _read(file: Union[str, os.PathLike]) -> Dict[str, list]:
    file = os.fspath(file)
    ending = os.path.splitext(file)[1]
    if ending in (".parquet", ".arrow"):
        return _read_arrow(file, ending)
    try:
        with open(file, newline="", encoding="utf-8") as lines:
            if ending == ".txt":
                return {"text": [line.rstrip("\r\n") for line in lines]}
            if ending in (".json", ".jsonl"):
                return _columns_of_json(file, lines.read())
            return _columns_of_table(file, lines, "\t" if ending == ".tsv" else ",")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file!r} cannot be read: {error}") from None


def _read_arrow(file: str, ending: str) -> Dict[str, list]:
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise UsageError(f"{file!r} needs pyarrow: pip install pyarrow, or write it as .jsonl") from None
    try:
        table = pyarrow.parquet.read_table(file) if ending == ".parquet" else _arrow_table(pyarrow, file)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise DataError(f"{file!r} cannot be read: {error}") from None
    return table.to_pydict()


def _arrow_table(pyarrow, file: str):
    """Of a file, or, as `datasets` writes it, of a stream."""
    with pyarrow.memory_map(file) as source:
        try:
            return pyarrow.ipc.open_stream(source).read_all()
        except pyarrow.ArrowInvalid:
            return pyarrow.feather.read_table(file)


def _columns_of_json(file: str, text: str) -> Dict[str, list]:
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else [
            json.loads(line) for line in text.splitlines() if line.strip()
        ]
    except ValueError as error:
        raise DataError(f"{file!r} is no JSON: {error}") from None
    return _columns_of_rows(file, rows, 1)


def _columns_of_table(file: str, lines: Iterable[str], delimiter: str) -> Dict[str, list]:
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    table = [row for row in csv.reader(lines, delimiter=delimiter, quoting=quoting) if row]
    if not table:
        raise DataError(f"{file!r} is empty; its first row has the names of columns")
    twice = [name for name in table[0] if table[0].count(name) > 1]
    if twice:
        raise DataError(f"{file!r}: two columns are called {twice[0]!r}; give each a name of its own")
    for number, row in enumerate(table):
        if len(row) != len(table[0]):
            raise DataError(
                f"{file!r}: row {number + 1} has {len(row)} columns, and the first has {len(table[0])}"
            )
    return {name: typed([row[i] for row in table[1:]]) for i, name in enumerate(table[0])}


def _columns_of_rows(file: str, rows: list, first: int) -> Dict[str, list]:
    out: Dict[str, list] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or (number and sorted(row) != sorted(out)):
            raise DataError(
                f"{file!r}: row {number + first} is no object with the keys {', '.join(out) or 'of columns'}"
            )
        for name, value in row.items():
            out.setdefault(name, []).append(value)
    return out
