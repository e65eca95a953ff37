"""Configurations as Python has them: dicts, keyword arguments, or the path of a file."""

import json
import os

import numpy as np

from cfaa._native import Error


def plain(value):
    """What JSON cannot write, as it can: NumPy's numbers and arrays, paths."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def nested(values):
    """{"train.epochs": 5} as {"train": {"epochs": 5}}, at any depth."""
    result = {}
    for key, value in values.items():
        *path, last = str(key).split(".")
        at = result
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise Error(f"config: '{key}' is given beside a value of '{part}'; give one of them")
        if isinstance(value, dict):
            value = nested(value)
            if isinstance(at.get(last), dict):
                value = {**at[last], **value}
        at[last] = value
    return result


def to_json(values):
    try:
        return json.dumps(values, default=plain)
    except TypeError as error:
        raise Error(f"config: {error}") from None


def path_and_json(config):
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
