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

from cfaa import _native
from cfaa.configuration import nested, to_json
from cfaa.listening import Listener
from cfaa.tables import Metrics


def _measure(name, data, *, domain="target", split="test", tune=False, out=None, force=False,
             eval=None, device="auto", threads=0, progress=False, **options):
    with Listener(progress) as listener:
        return Metrics(json.loads(_native.baseline(
            listener, os.fspath(data), name, os.fspath(out) if out else "", tune, force, domain,
            split, to_json(nested(eval or {})), to_json(nested(options)), device, threads)))


def popularity(data, **options):
    """What most users liked."""
    return _measure("popularity", data, **options)


def itemknn(data, **options):
    """Items near to what a user has: neighbours, shrink."""
    return _measure("itemknn", data, **options)


def mf(data, **options):
    """Matrix factorisation with the pairwise loss of BPR: dim, learning_rate, epochs, seed, ..."""
    return _measure("mf", data, **options)


def rp3beta(data, **options):
    """Random walks of three steps: rp3_alpha, rp3_beta."""
    return _measure("rp3beta", data, **options)


def ease(data, **options):
    """EASE^R, a linear model of items in closed form: ease_lambda."""
    return _measure("ease", data, **options)


def cease(data, **options):
    """EASE^R that also reads the items' words: cease_lambda, cease_omega."""
    return _measure("cease", data, **options)


def ials(data, **options):
    """Factors by alternating least squares: ials_dim, ials_lambda, ials_alpha, ials_sweeps."""
    return _measure("ials", data, **options)


def content(data, **options):
    """Items whose reviews say what those of a user's items say: vectors ("tfidf", "encoder")."""
    return _measure("content", data, **options)


def text(data, **options):
    """Items whose reviews say what the user writes."""
    return _measure("text", data, **options)
