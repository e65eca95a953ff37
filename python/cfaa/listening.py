"""What the library says while it works: messages to `logging`, progress to tqdm or the like."""

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from cfaa._native import Error

log = logging.getLogger("cfaa")
Progress = bool | Callable[..., Any]  # tqdm if it is there; no; what is called as tqdm.tqdm


def _bar_maker(progress: Progress) -> Callable[..., Any] | None:
    """What makes bars: None for no progress; otherwise called as tqdm.tqdm is."""
    if progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return PlainBar if sys.stderr.isatty() else None
        return tqdm
    if not progress:
        return None
    if not callable(progress):
        raise Error(f"progress: is {progress!r}; give True, False, or what is called as tqdm.tqdm")
    return progress


class PlainBar:
    """A line that is drawn over, where tqdm is not installed."""

    def __init__(self, total: float | None = None, desc: str = "", unit: str = "",
                 initial: float = 0, **_: Any) -> None:
        self.total, self.desc, self.unit, self.n = total, desc, unit, initial

    def update(self, count: float) -> None:
        self.n += count
        whole = f" of {self.total}" if self.total else ""
        sys.stderr.write(f"\r{self.desc}: {self.n:g}{whole} {self.unit}")
        sys.stderr.flush()

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        pass

    def close(self) -> None:
        sys.stderr.write("\n")


class Listener:
    """Called with (kind, text) by the thread that waits for the work."""

    def __init__(self, progress: Progress = False, **takers: Callable[[Any], Any]) -> None:
        self._make_bar = _bar_maker(progress)
        self._takers = takers  # by kind: what takes the text's JSON
        self._label: str | None = None
        self._bar: Any = None
        self._done = 0

    def __call__(self, kind: str, text: str) -> None:
        if kind == "progress":
            self._show(json.loads(text))
        elif kind in self._takers:
            self._takers[kind](json.loads(text))
        elif kind in ("info", "warning", "error"):
            getattr(log, kind)("%s", text)

    def _show(self, moment: dict[str, Any]) -> None:
        if self._make_bar is None:
            return
        scale = moment["scale"]
        if self._bar is None or self._label != moment["label"]:
            self.close()
            self._label, self._done = moment["label"], moment["resumed"] * scale
            self._bar = self._make_bar(total=moment["total"] * scale or None, desc=self._label,
                                       unit=moment["unit"], initial=self._done)
        if moment["note"]:
            self._bar.set_postfix_str(moment["note"], refresh=False)
        done = moment["done"] * scale
        self._bar.update(done - self._done)
        self._done = done
        if moment["last"]:
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
