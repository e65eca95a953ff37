"""What to beat: models of one domain alone, measured under the same protocol.

    cfaa.baselines.cease("data", tune=True)["NDCG@10"]

Each takes the prepared directory and

    domain, split    "target" or "source"; "test" or "valid"
    tune             try a fixed grid on validation and take the best
    out              a directory for the result, which compare, Run and evaluate read
    force            replace what another program left in `out`
    eval             keys of the configuration's `eval` section, a dict
    options          its own settings, by the names of `cfaa_gpu baseline --help`

and returns Metrics.
"""

import json
import os
from typing import Any

from cfaa import _native
from cfaa.configuration import Place, nested, to_json
from cfaa.listening import Listener, Progress
from cfaa.tables import Metrics


def _measure(name: str, data: Place, *, domain: str = "target", split: str = "test",
             tune: bool = False, out: Place | None = None, force: bool = False,
             eval: dict[str, Any] | None = None, device: str = "auto", threads: int = 0,
             progress: Progress = False, **options: Any) -> Metrics:
    with Listener(progress) as listener:
        return Metrics(json.loads(_native.baseline(
            listener, os.fspath(data), name, os.fspath(out) if out else "", tune, force, domain,
            split, to_json(nested(eval or {})), to_json(nested(options)), device, threads)))


def popularity(data: Place, **options: Any) -> Metrics:
    """What most users liked."""
    return _measure("popularity", data, **options)


def itemknn(data: Place, **options: Any) -> Metrics:
    """Items near to what a user has: neighbours, shrink."""
    return _measure("itemknn", data, **options)


def mf(data: Place, **options: Any) -> Metrics:
    """Matrix factorisation with the pairwise loss of BPR: dim, learning_rate, epochs, seed, ..."""
    return _measure("mf", data, **options)


def rp3beta(data: Place, **options: Any) -> Metrics:
    """Random walks of three steps: rp3_alpha, rp3_beta."""
    return _measure("rp3beta", data, **options)


def ease(data: Place, **options: Any) -> Metrics:
    """EASE^R, a linear model of items in closed form: ease_lambda."""
    return _measure("ease", data, **options)


def cease(data: Place, **options: Any) -> Metrics:
    """EASE^R that also reads the items' words: cease_lambda, cease_omega."""
    return _measure("cease", data, **options)


def ials(data: Place, **options: Any) -> Metrics:
    """Factors by alternating least squares: ials_dim, ials_lambda, ials_alpha, ials_sweeps."""
    return _measure("ials", data, **options)


def content(data: Place, **options: Any) -> Metrics:
    """Items whose reviews say what those of a user's items say: vectors ("tfidf", "encoder")."""
    return _measure("content", data, **options)


def text(data: Place, **options: Any) -> Metrics:
    """Items whose reviews say what the user writes."""
    return _measure("text", data, **options)
