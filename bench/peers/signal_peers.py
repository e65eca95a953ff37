"""Signals beside what people use for them, in one run on the same data, timed in turn.

    python bench/peers/signal_peers.py build/cpu/cfaa_gpu [--threads 2]

Random reviews of 8,000 items: EASE^R beside bare threaded potrf + potri of a matrix of that size,
iALS (64 factors, 16 sweeps) beside `implicit` with use_cg=False, and the TF-IDF of the training
reviews beside scikit-learn's TfidfVectorizer. Ours is the time that `baseline --json` reports for
making the signal, from the prepared files to scores. Needs numpy, scipy, scikit-learn and implicit:

    python3 -m venv build/peers && build/peers/bin/pip install scipy scikit-learn==1.7.2 implicit==0.7.3
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program", help="path of cfaa_gpu")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--items", type=int, default=8000)
parser.add_argument("--users", type=int, default=20000)
parser.add_argument("--reviews", type=int, default=110000, help="of the training split")
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--only", default="tfidf,ials,ease")
ARGUMENTS = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(ARGUMENTS.threads)

import numpy  # noqa: E402
import scipy.linalg.lapack  # noqa: E402
import scipy.sparse  # noqa: E402


def write_reviews(path, prefix, count, users, items, random):
    """Words by Zipf's law, 60 in a review, popular items by a power of their rank."""
    words = numpy.array([f"w{i:x}" for i in range(50000)])
    with open(path, "w") as file:
        item = (items * random.random(count) ** 2).astype(int)
        item[:items] = numpy.arange(items)  # each at least once
        user = random.integers(0, users, count)
        for u, i in zip(user, item):
            text = " ".join(words[numpy.minimum(random.zipf(1.2, 60), len(words)) - 1])
            file.write(json.dumps({"user_id": f"{prefix}u{u}", "item_id": f"{prefix}i{i}",
                                   "rating": 5, "text": text}) + "\n")


def prepared(folder):
    random = numpy.random.default_rng(0)
    write_reviews(f"{folder}/s.jsonl", "s", 2000, 50, 50, random)
    write_reviews(f"{folder}/t.jsonl", "t", ARGUMENTS.reviews, ARGUMENTS.users, ARGUMENTS.items, random)
    subprocess.run([ARGUMENTS.program, "prepare", "--source", f"{folder}/s.jsonl", "--target",
                    f"{folder}/t.jsonl", "--source-core", "1,1", "--target-core", "1,1",
                    "--split-ratio", "98:1:1", "--out", f"{folder}/data"], check=True,
                   stdout=subprocess.DEVNULL)
    return f"{folder}/data"


def ours(data, name, *flags):
    done = subprocess.run([ARGUMENTS.program, "baseline", data, name, "--json", "--bootstrap", "0",
                           "--threads", str(ARGUMENTS.threads), *flags], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["seconds"]["train"]


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def liked_matrix(data):
    """(users, items) of the training positives."""
    rows = [line.split("\t") for line in open(f"{data}/target/target.train.inter")][1:]
    users = {user: i for i, user in enumerate(sorted({row[0] for row in rows}))}
    items = {item: i for i, item in enumerate(sorted({row[1] for row in rows}))}
    ones = numpy.ones(len(rows), numpy.float32)
    return scipy.sparse.csr_matrix(
        (ones, ([users[row[0]] for row in rows], [items[row[1]] for row in rows])))


def ease_peer(data):
    items = liked_matrix(data).shape[1]
    random = numpy.random.default_rng(1)
    matrix = random.standard_normal((items, items)) * 1e-3
    matrix = numpy.asfortranarray(matrix + matrix.T + 200 * numpy.eye(items))

    def invert():
        factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
        assert failed == 0
        scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    return invert


def ials_peer(data):
    import implicit.cpu.als
    matrix = liked_matrix(data)

    def fit():
        implicit.cpu.als.AlternatingLeastSquares(
            factors=64, iterations=16, use_cg=False, num_threads=ARGUMENTS.threads,
            random_state=0).fit(matrix, show_progress=False)
    return fit


def tfidf_peer(data):
    from sklearn.feature_extraction.text import TfidfVectorizer
    texts = [json.loads(line)["text"] for line in open(f"{os.path.dirname(data)}/t.jsonl")]
    return lambda: TfidfVectorizer(min_df=3, sublinear_tf=True).fit_transform(texts)


CASES = {
    "ease": ("EASE^R", "ease", "potrf + potri", ease_peer),
    "ials": ("iALS", "ials", "implicit, use_cg=False", ials_peer),
    "tfidf": ("TF-IDF", "text", "scikit-learn", tfidf_peer),
}


def main():
    with tempfile.TemporaryDirectory() as folder:
        data = prepared(folder)
        print("| signal | ours | peer | peer / ours |\n|---|---|---|---|")
        for case in ARGUMENTS.only.split(","):
            title, name, peer_name, make = CASES[case]
            peer = make(data)
            own, other = [], []
            for _ in range(ARGUMENTS.repeat):
                own.append(ours(data, name))
                other.append(timed(peer))
            mine, theirs = statistics.median(own), statistics.median(other)
            print(f"| {title} | {mine:.2f} s | {peer_name}: {theirs:.2f} s | {theirs / mine:.2f} |",
                  flush=True)


main()
