"""Training, and what one does with a run."""

import functools
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cfaa import _native
from cfaa._native import Error
from cfaa.configuration import Config, Place, nested, path_and_json, to_json
from cfaa.data import Reviews, field, rows_of
from cfaa.encoder import model_folder
from cfaa.listening import Listener, Progress, log
from cfaa.tables import Comparison, Metrics, Recommendation, Table


class Run:
    """A run that `cfaa.train` or the program wrote, or a baseline that was kept.

    path      its directory
    data      where its data are now, if they were moved
    device    "auto", "cpu", "cuda" or "cuda:1"
    """

    def __init__(self, path: Place, *, data: Place | None = None, device: str = "auto",
                 threads: int = 0) -> None:
        self.path = pathlib.Path(path)
        self._open = (os.fspath(data) if data else "", device, threads)
        if not self.path.is_dir():
            raise Error(f"{self.path}: there is no such directory; give what train wrote")

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"<Run {os.fspath(self.path)!r}>"

    @functools.cached_property
    def _model(self) -> _native.Model:
        return _native.Model(os.fspath(self.path), *self._open)

    def _json(self, name: str) -> dict[str, Any]:
        file = self.path / name
        if not file.exists():
            raise Error(f"{file}: is not there; has the run finished?")
        return json.loads(file.read_text())

    @property
    def config(self) -> dict[str, Any]:
        """The whole configuration, as a dict of sections."""
        return self._json("run.json")["config"]

    @property
    def result(self) -> dict[str, Any]:
        """Metrics of the test split by domain, the best step, and the validation that chose it."""
        return self._json("result.json")

    @property
    def metrics(self) -> Table:
        """Losses, gradient norms and validations by step: a Table, a row a line of the log."""
        file = self.path / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return Table(json.loads(line) for line in lines)

    def recommend(self, user: str | None = None, *, reviews: Reviews | None = None, top: int = 10,
                  domain: str = "target", encoder: Place | None = None) -> Recommendation:
        """A list for a user, without what the user already has, by the best parameters.

        user       the raw id of a user of the data; or
        reviews    what somebody whom training never saw wrote: dicts (or a table) with text, item
                   and rating, each of which may be missing, or texts alone. Without a rating the
                   item was liked. A known user, presented so, has the same list, but that no
                   row of an id table is a newcomer's.
        encoder    of a run that reads vectors of reviews: the folder (or the name in Hugging
                   Face's cache) of the model that made them, to read the newcomer's by

        Returns Recommendation: a list of dicts, best first, with item, score and the reasons.
        """
        if (user is None) == (reviews is None):
            raise Error("recommend: give the id of a user, or the reviews of somebody new")
        if user is not None:
            return Recommendation(json.loads(self._model.recommend(user, domain, top)))
        lists = self._for_newcomers(reviews, domain, top, encoder)
        if len(lists) != 1:
            raise Error(f"recommend: the reviews are of {len(lists)} users; give those of one, or "
                        "take recommend_all(reviews=...)")
        return lists[0]

    def recommend_all(self, *, reviews: Reviews | None = None, top: int = 10,
                      domain: str = "target",
                      encoder: Place | None = None) -> list[Recommendation]:
        """Every user's list, in the order of the data, without reasons.

        reviews    of users whom training never saw, instead, as in `recommend`, each with its user
        encoder    as in `recommend`
        """
        if reviews is not None:
            return self._for_newcomers(reviews, domain, top, encoder)
        lists = json.loads(self._model.recommend_all(domain, top))
        return [Recommendation(fields) for fields in lists]

    def _for_newcomers(self, reviews: Reviews, domain: str, top: int,
                       encoder: Place | None) -> list[Recommendation]:
        fields = [{"text": row} if isinstance(row, str) else row
                  for row in rows_of([reviews] if isinstance(reviews, str) else reviews)]
        for number, row in enumerate(fields):
            if not isinstance(row, dict) or not row.keys() & {"item", "text"}:
                raise Error(f"review {number} is {row!r}; give a text, or a dict with text, item "
                            "and rating")

        def column(name: str, missing: Any) -> list[Any]:
            values = (field(row.get(name)) for row in fields)
            return [missing if value is None else value for value in values]

        ratings = [float(rating) for rating in column("rating", math.nan)]
        made = json.loads(self._model.recommend_newcomers(
            list(map(str, column("user", "you"))), list(map(str, column("item", ""))),
            list(map(str, column("text", ""))), ratings, domain, top,
            "" if encoder is None else model_folder(encoder)))
        unknown = [item for item in made["unknown_items"] if item]
        if unknown:
            log.warning("items that the data do not have: %s; of their reviews the texts count",
                        ", ".join(unknown))
        return [Recommendation(fields) for fields in made["lists"]]

    def embeddings(self, domain: str, side: str) -> np.ndarray:
        """Embeddings of a domain's users or items: float32 (rows, D), rows as in `ids`.

        domain    "target" or "source"
        side      "user" or "item"
        """
        return self._model.embeddings(domain, side)

    def ids(self, domain: str, side: str) -> list[str]:
        """Raw ids of a domain's users or items, in the order of every matrix."""
        return _native.ids(self._model.data, domain, side)

    def evaluate(self, *, domain: str = "target", split: str = "test",
                 **options: Any) -> Metrics:
        """HR, Recall, NDCG and MRR of the run's lists; options are those of cfaa.evaluate."""
        return Metrics(json.loads(self._model.evaluate(domain, split, to_json(nested(options)))))

    def report(self, out: Place = "report.html", *, data: Place | None = None,
               **options: Any) -> pathlib.Path:
        """The run as a page for a browser; see cfaa.report."""
        return report([self], out, data=data or self._open[0] or None, **options)


def train(data: Place, config: Config | None = None, *, out: Place = "run", fresh: bool = False,
          from_step: int = -1, callbacks: Iterable[Callable[[dict[str, Any]], Any]] = (),
          device: str = "auto", threads: int = 0, progress: Progress = True) -> Run:
    """Trains a run in the directory `out`, or resumes the one that is there.

    data         a prepared directory, or Data
    config       a dict of sections, {"train": {"epochs": 5}} or {"train.epochs": 5}, or the path of
                 a configuration file, or a dict with its path under "include". Without one, or
                 with `signals` and `eval` alone, signals are weighed; otherwise CFAA is trained.
    fresh        start over instead of resuming
    from_step    the checkpoint to resume from; -1: the newest
    callbacks    called with each line of metrics as it comes, a dict with "step". An exception
                 stops the run at its next checkpoint.
    progress     True (tqdm where it is installed), False, or what is called as tqdm.tqdm

    Interrupted (Ctrl-C), it keeps a checkpoint, and the same call resumes. The same configuration,
    device and data give the same bytes as `cfaa_gpu train`. Returns Run.
    """
    callbacks = list(callbacks)

    def take(metrics: dict[str, Any]) -> None:
        for callback in callbacks:
            callback(metrics)

    path, values = path_and_json(config)
    with Listener(progress, metrics=take) as listener:
        _native.train(listener, os.fspath(data), os.fspath(out), path, values, fresh, from_step,
                      device, threads)
    return Run(out, data=data, device=device, threads=threads)


def evaluate(scores: Any, data: Place | None = None, *, domain: str = "target",
             split: str = "test", device: str = "auto", threads: int = 0,
             **options: Any) -> Metrics:
    """Metrics of any model's scores, under the protocol of every other row.

    scores    (users, items) of float32 or float64; or a pair of embeddings (users, D), (items, D)
              whose products are the scores; or a Run. Rows and columns in the order of Data.ids.
    data      a prepared directory, or Data; not for a Run
    split     "test" or "valid"
    options   keys of the configuration's `eval` section: k=[5, 10, 20], mask, candidates,
              bootstrap, ...

    Returns Metrics: metrics["NDCG@10"], with intervals and what they were measured on.
    """
    if isinstance(scores, Run):
        return scores.evaluate(domain=domain, split=split, **options)
    if data is None:
        raise Error("evaluate: scores of arrays need the data that they are of; give data")
    first, second = scores if isinstance(scores, (tuple, list)) else (scores, None)
    return Metrics(json.loads(_native.evaluate_arrays(
        os.fspath(data), first, second, domain, split, to_json(nested(options)), device, threads)))


def compare(runs: Iterable[Place], *, metrics: Iterable[str] = (),
            domain: str = "target") -> Comparison:
    """Runs in one table, each tested against the first.

    runs       directories, or Runs; a folder of seed-* runs is one row
    metrics    columns, such as ["NDCG@10", "HR@5"]

    Returns Comparison: a list of dicts, the best validation first; `.details` has the tests.
    """
    places = [os.fspath(run) for run in runs]
    return Comparison(json.loads(_native.compare(places, list(metrics), domain)))


def report(runs: Iterable[Place], out: Place = "report.html", *, metrics: Iterable[str] = (),
           domain: str = "target", users: int = 200, top: int = 10, data: Place | None = None,
           force: bool = False, device: str = "auto", threads: int = 0,
           progress: Progress = True) -> pathlib.Path:
    """Runs as a page for a browser: comparison, learning curves, maps of embeddings, lists.

    runs       directories, or Runs; a folder of seed-* runs is one row
    out        the page, one HTML file that loads nothing from elsewhere
    metrics    columns, such as ["NDCG@10", "HR@5"]
    users      whose lists are shown, at most, of `top` items each
    data       where the runs' data are now, if they were moved
    force      replace an `out` that is no such page

    Returns the page's path.
    """
    with Listener(progress) as listener:
        _native.report(listener, [os.fspath(run) for run in runs], os.fspath(out), list(metrics),
                       domain, os.fspath(data) if data else "", users, top, force, device, threads)
    return pathlib.Path(out)
