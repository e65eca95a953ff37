"""Results as plain objects that a notebook shows as tables."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from cfaa._native import Error


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    head = "".join(f"<th>{html.escape(str(column))}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in rows)
    caption = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = [list(map(str, columns))] + [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


class Table(list[dict[str, Any]]):
    """A list of dicts, a row each."""

    def columns(self) -> list[str]:
        """Every key that a row has."""
        return list(dict.fromkeys(key for row in self for key in row))

    def shown_columns(self) -> list[str]:
        """Those that are shown in a notebook."""
        return self.columns()

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        columns = self.shown_columns()
        return columns, [[row.get(column) for column in columns] for row in self]

    def _caption(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        return html_table(*self._shown(), caption=self._caption())

    def __str__(self) -> str:
        return text_table(*self._shown())

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; pandas must be installed."""
        try:
            import pandas
        except ImportError:
            raise Error("to_pandas: pandas is not installed; this object is a list of dicts "
                        "as it is") from None
        return pandas.DataFrame(list(self), columns=self.columns())


class Metrics(dict[str, Any]):
    """Metrics by name, such as metrics["NDCG@10"], with what they were measured on."""

    def values_at(self) -> dict[str, float]:
        """The metrics alone: {"HR@5": ..., "NDCG@10": ...}."""
        return {key: value for key, value in self.items() if "@" in key}

    def _repr_html_(self) -> str:
        lengths = list(dict.fromkeys(key.partition("@")[2] for key in self.values_at()))
        names = list(dict.fromkeys(key.partition("@")[0] for key in self.values_at()))
        rows = [[name] + [self.get(f"{name}@{k}") for k in lengths] for name in names]
        return html_table([""] + [f"@{k}" for k in lengths], rows, caption=self.get("domain", ""))

    def __repr__(self) -> str:
        shown = ", ".join(f"{key} {value:.4f}" for key, value in self.values_at().items()
                          if key.endswith("@10"))
        return f"<Metrics {shown}>"


class Recommendation(Table):
    """A user's list, best first: rows with item, score and, where there are, the reasons."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields["items"])
        self.user: str = fields["user"]
        self.known: int = fields.get("known", 0)  # of the user's items, none of them here

    @property
    def items(self) -> list[str]:
        return [row["item"] for row in self]

    def shown_columns(self) -> list[str]:
        order = ("rank", "item", "title", "score", "signal", "because", "review")
        return [column for column in order if any(row.get(column) for row in self)]

    def _caption(self) -> str:
        return f"for {self.user}"


class Comparison(Table):
    """Runs in one table, the best validation first, with tests against the first that was given."""

    def __init__(self, fields: dict[str, Any]) -> None:
        rows = []
        for row in fields["rows"]:
            cells = {"run": row["run"], "variant": row["variant"], "seeds": len(row["seeds"])}
            if "validation" in row:
                cells["validation"] = row["validation"]["mean"]
            for name, metric in row["metrics"].items():
                cells[name] = metric["mean"]
            rows.append(cells)
        super().__init__(rows)
        self.details = fields  # everything, the paired tests by seed and by user included
