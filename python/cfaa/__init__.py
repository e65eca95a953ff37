"""Alignment losses, and review-based recommendation across two domains.

    value, (gs, gt) = cfaa.vertical_loss(zs, zt, k=128)     # NumPy, or anything with __dlpack__
    value, (gs, gt) = cfaa.horizontal_loss(zs, zt)

    vectors = cfaa.Encoder("path/to/model").encode(texts)
    data = cfaa.prepare(source="source.jsonl.gz", target="target.jsonl.gz", out="data")
    run = cfaa.train(data)
    run.recommend("A1B2", top=10)
    cfaa.compare([run, other])
"""

import os

from cfaa import _native, baselines
from cfaa._native import Error
from cfaa.alignment import (Coupling, TypicalSamples, coupling, horizontal_loss, typical_samples,
                            vertical_loss)
from cfaa.data import Data, embed, prepare
from cfaa.encoder import Encoder
from cfaa.runs import Run, compare, evaluate, report, train
from cfaa.tables import Comparison, Metrics, Recommendation, Table

Error.__module__ = "cfaa"
Error.__doc__ = "What is wrong, in one sentence that says what to do."
__version__ = _native.version
__all__ = ["Comparison", "Coupling", "Data", "Encoder", "Error", "Metrics", "Recommendation", "Run",
           "Table", "TypicalSamples", "baselines", "compare", "coupling", "embed", "evaluate",
           "horizontal_loss", "prepare", "report", "set_threads", "train", "typical_samples",
           "vertical_loss"]


def set_threads(count: int) -> None:
    """Threads of the CPU that every call computes with from now on; 0: one per core.

    Results have the same bits on any number of threads.
    """
    if count < 0:
        raise Error(f"set_threads: {count} threads; give 0, one per core, or how many")
    _native.set_threads(count)


os.register_at_fork(after_in_child=_native.forget_contexts)
