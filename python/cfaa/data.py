"""Raw reviews of two domains to a prepared directory, and their texts to vectors."""

import contextlib
import datetime
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cfaa import _native
from cfaa._native import Error
from cfaa.configuration import Place, nested, plain, to_json
from cfaa.listening import Listener, Progress
from cfaa.tables import html_table, text_table

# Files, dicts, or Any: tables of other libraries.
Reviews = Place | list[Place] | Iterable[Mapping[str, Any]] | Any


class Data:
    """A prepared directory: `Data("data")` opens what `cfaa.prepare` or the program wrote."""

    def __init__(self, path: Place) -> None:
        self.path = pathlib.Path(path)
        _native.require_prepared(os.fspath(path))

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    @property
    def report(self) -> dict[str, Any]:
        """prepare.json: what was read, what each step did, what there is now."""
        return json.loads((self.path / "prepare.json").read_text())

    def ids(self, domain: str, side: str) -> list[str]:
        """Raw ids of the users or items of a domain, in the order of every matrix."""
        return _native.ids(os.fspath(self.path), domain, side)

    def embed(self, model: Place, **options: Any) -> dict[str, Any]:
        """See cfaa.embed."""
        return embed(self, model, **options)

    def _counts(self) -> tuple[list[str], list[list[Any]]]:
        keys = ["users", "items", "interactions", "train", "valid", "test"]
        counts = self.report["result"]
        return ["domain"] + keys, [[name] + [counts[name][key] for key in keys]
                                   for name in ("source", "target")]

    def __repr__(self) -> str:
        return f"<Data {os.fspath(self.path)!r}>\n{text_table(*self._counts())}"

    def _repr_html_(self) -> str:
        return html_table(*self._counts(), caption=os.fspath(self.path))


def rows_of(table: Any) -> Iterable[Any]:
    """The rows of a table of pandas, polars or Arrow, or an iterable of dicts."""
    if hasattr(table, "to_pylist"):  # Arrow
        return table.to_pylist()
    if hasattr(table, "collect"):  # polars, lazy
        table = table.collect()
    if hasattr(table, "iter_rows"):  # polars
        return table.iter_rows(named=True)
    if hasattr(table, "to_dict"):  # pandas
        return table.to_dict("records")
    return table


def field(value: Any) -> Any:
    """A cell as a reader of reviews takes it: a time as seconds, None for a missing one."""
    if isinstance(value, (str, int)) or value is None:
        return value
    if type(value).__name__ in ("NAType", "NaTType") or value != value:  # pandas' two, and NaN
        return None
    if isinstance(value, datetime.datetime):
        # Without a zone it is UTC, as pandas has it, wherever the machine stands.
        return (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)).timestamp()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day,
                                 tzinfo=datetime.UTC).timestamp()
    return value


def _write_table(table: Any, path: pathlib.Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for number, row in enumerate(rows_of(table)):
            if not isinstance(row, dict):
                raise Error(f"row {number} of {path.stem} is a {type(row).__name__}; give dicts "
                            "with user, item, rating, text and timestamp, or a table with them")
            fields = {str(key): field(value) for key, value in row.items()}
            fields = {key: value for key, value in fields.items() if value is not None}
            file.write(json.dumps(fields, ensure_ascii=False, default=plain) + "\n")


@contextlib.contextmanager
def _files(folder: str, **inputs: Any) -> Iterator[dict[str, list[str]]]:
    """Each input as a list of paths; tables are written to files of that name."""
    paths: dict[str, list[str]] = {}
    for name, given in inputs.items():
        if given is None:
            paths[name] = []
        elif isinstance(given, (str, os.PathLike)):
            paths[name] = [os.fspath(given)]
        elif (isinstance(given, (list, tuple)) and
              all(isinstance(one, (str, os.PathLike)) for one in given)):
            paths[name] = [os.fspath(one) for one in given]
        else:
            path = pathlib.Path(folder, f"{name}.jsonl")
            _write_table(given, path)
            paths[name] = [os.fspath(path)]
    yield paths


def prepare(source: Reviews, target: Reviews, out: Place, *, source_titles: Reviews | None = None,
            target_titles: Reviews | None = None, force: bool = False, threads: int = 0,
            **options: Any) -> Data:
    """Raw reviews of two domains to leak-free training, validation and test splits.

    source, target   review files (JSON lines, CSV, TSV, .inter; plain, gzip or zstd): a path or a
                     list of them; or a table with the columns user, item, rating, text and
                     timestamp: of pandas, polars or Arrow, or an iterable of dicts
    out              the directory to write
    source_titles, target_titles    files about items with an id and a title
    force            replace a prepared directory
    options          keys of the configuration's `prepare` section: source_core="5,5", seed=0, ...

    The same files and options give the same bytes as `cfaa_gpu prepare`. Returns Data.
    """
    config = to_json({"prepare": nested(options)})
    with tempfile.TemporaryDirectory() as folder, _files(
            folder, source=source, target=target, source_titles=source_titles,
            target_titles=target_titles) as paths, Listener() as listener:
        _native.prepare(listener, paths["source"], paths["target"], paths["source_titles"],
                        paths["target_titles"], os.fspath(out), force, config, threads)
    return Data(out)


def embed(data: Place, model: Place, *, fresh: bool = False, force: bool = False,
          device: str = "auto", threads: int = 0, progress: Progress = True,
          **options: Any) -> dict[str, Any]:
    """Vectors of the training reviews of a prepared directory, written into it.

    data       a prepared directory, or Data
    model      the folder of a BERT or RoBERTa model, or its name in Hugging Face's cache
    fresh      forget what an interrupted call has left
    options    keys of the configuration's `embed` section: layer="last", max_length=256, ...

    Interrupted (Ctrl-C), the same call resumes. Returns a dict of what was done, by domain.
    """
    from cfaa.encoder import model_folder
    config = to_json({"embed": {**nested(options), "model": model_folder(model)}})
    with Listener(progress) as listener:
        return json.loads(_native.embed(listener, os.fspath(data), config, fresh, force, device,
                                        threads))
