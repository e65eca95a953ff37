"""t-SNE beside openTSNE and scikit-learn, in one run on the same rows, timed in turn.

    ninja -C build/cpu tsne_call && python bench/peers/tsne_peers.py [rows.npy] [--rows 10000]

Rows of 64 attributes: two domains of twelve topics each, half of which they share, or those of a
.npy file. Every embedding is measured by the same definition, whatever its maker reports: the
Kullback-Leibler divergence of exact affinities (perplexity 30, 90 neighbours) from the kernels of
all pairs. Beside the seconds stand those of the processor, all threads together, which other work
on the machine disturbs less. Needs numpy, scikit-learn and openTSNE:

    python3 -m venv build/peers && build/peers/bin/pip install openTSNE==1.0.4 scikit-learn==1.9.1
"""

import argparse
import os
import pathlib
import resource
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("file", nargs="?", help="rows to embed; none: synthetic ones")
parser.add_argument("--rows", type=int, default=10000)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--repeat", type=int, default=1)
parser.add_argument("--only", default="ours,openTSNE,scikit-learn")
ARGUMENTS = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(ARGUMENTS.threads)

import numpy  # noqa: E402
import openTSNE  # noqa: E402
import sklearn  # noqa: E402
from sklearn.manifold import TSNE  # noqa: E402

CALL = pathlib.Path(__file__).resolve().parents[2] / "build/cpu/tsne_call"
PERPLEXITY = 30


def synthetic(count):
    random = numpy.random.default_rng(0)
    centres = random.normal(size=(18, 64))
    topic = random.integers(0, 12, count) + 6 * (numpy.arange(count) % 2)
    return (centres[topic] + 0.7 * random.normal(size=(count, 64))).astype(numpy.float32)


def divergence(affinities, points):
    points = points.astype(numpy.float64)
    total = 0.0
    for begin in range(0, len(points), 500):
        ahead = points[begin:begin + 500, None, :] - points[None, :, :]
        total += (1 / (1 + (ahead ** 2).sum(axis=2))).sum()
    total -= len(points)  # a point's kernel with itself
    pairs = affinities.tocoo()
    kernel = 1 / (1 + ((points[pairs.row] - points[pairs.col]) ** 2).sum(axis=1))
    return float((pairs.data * numpy.log(pairs.data * total / kernel)).sum())


def ours(rows):
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f"{folder}/rows.npy", rows)
        subprocess.run([CALL, f"{folder}/rows.npy", f"{folder}/points.npy", str(ARGUMENTS.threads)],
                       check=True, stdout=subprocess.DEVNULL)
        return numpy.load(f"{folder}/points.npy")


def opentsne(rows):
    return numpy.asarray(openTSNE.TSNE(perplexity=PERPLEXITY, n_jobs=ARGUMENTS.threads,
                                       random_state=0).fit(rows))


def scikit_learn(rows):
    return TSNE(perplexity=PERPLEXITY, n_jobs=ARGUMENTS.threads, random_state=0).fit_transform(rows)


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main():
    rows = numpy.load(ARGUMENTS.file) if ARGUMENTS.file else synthetic(ARGUMENTS.rows)
    affinities = openTSNE.affinity.PerplexityBasedNN(
        rows, perplexity=PERPLEXITY, method="exact", n_jobs=ARGUMENTS.threads).P
    makers = {"ours": ours, "openTSNE": opentsne, "scikit-learn": scikit_learn}
    print(f"{len(rows)} rows of {rows.shape[1]}, {ARGUMENTS.threads} threads; openTSNE "
          f"{openTSNE.__version__}, scikit-learn {sklearn.__version__}")
    for _ in range(ARGUMENTS.repeat):
        for name in ARGUMENTS.only.split(","):
            start, used = time.perf_counter(), processor_seconds()
            points = makers[name](rows)
            print(f"{name:<13}{time.perf_counter() - start:8.1f} s {processor_seconds() - used:8.1f} s "
                  f"of the processor   divergence {divergence(affinities, points):.4f}", flush=True)


main()
