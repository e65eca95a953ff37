"""Configurations as Python has them: dicts, keyword arguments, or the path of a file."""

import json
import os
from typing import Any

import numpy as np

from cfaa._native import Error

Place = str | os.PathLike[str]  # of a file or a folder; Data and Run are such, too
Config = dict[str, Any] | Place


def plain(value: Any) -> Any:
    """What JSON cannot write, as it can: NumPy's numbers and arrays, paths."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """{"train.epochs": 5} as {"train": {"epochs": 5}}, at any depth."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = str(key).split(".")
        at = result
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise Error(f"config: '{key}' is given beside a value of '{part}'; give one")
        if isinstance(value, dict):
            value = nested(value)
            if isinstance(at.get(last), dict):
                value = {**at[last], **value}
        at[last] = value
    return result


def to_json(values: Any) -> str:
    """Options as the library reads them."""
    try:
        return json.dumps(values, default=plain)
    except TypeError as error:
        raise Error(f"config: {error}") from None


def path_and_json(config: Config | None) -> tuple[str, str]:
    """A configuration as the pair (path of a file or "", JSON of an object)."""
    if config is None:
        return "", "{}"
    if isinstance(config, (str, os.PathLike)):
        return os.fspath(config), "{}"
    if isinstance(config, dict):
        values = dict(config)
        path = os.fspath(values.pop("include", ""))
        return path, to_json(nested(values))
    raise Error(f"config: is a {type(config).__name__}; give a dict, or the path of a file")
