"""Golden cases of the alignment losses, which an independent float64 implementation made, and what
the tests measure with."""

import gc
import json
import os
import pathlib
import resource

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def fixture_folder(name):
    """The case's folder, in the repository or in CFAA_FIXTURES; None where it is in neither."""
    places = [REPOSITORY / "tests/fixtures/alignment" / name]
    if "CFAA_FIXTURES" in os.environ:
        places.append(pathlib.Path(os.environ["CFAA_FIXTURES"], "fixtures/alignment", name))
    return next((place for place in places if place.exists()), None)


class GoldenCase:
    def __init__(self, name, dtype):
        self.folder = fixture_folder(name)
        case = json.loads((self.folder / "case.json").read_text())
        self.options = {key: value for key, value in case["parameters"].items() if key != "name"}
        self.expected = case["expected"]
        self.zs, self.zt = (self.array(side).astype(dtype) for side in ("zs", "zt"))

    def array(self, name):
        return np.load(self.folder / f"{name}.npy")


def distance(a, b):
    """Relative to the larger norm; NaN where one has a NaN, which no bound accepts."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b), 1e-300)


def resident():
    """Bytes of this process in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
