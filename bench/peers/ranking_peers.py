"""Ranking by the MLP scorer (with the dot product) beside PyTorch, timed in turn.

    python bench/peers/ranking_peers.py build/cpu/cfaa_gpu [--threads 2]

Ours is `cfaa_gpu bench --filter ranking_mlp`: 9,984 users x 7,936 items, D 300, 64 hidden units, top 20.
PyTorch does the same in blocks of users, in three ways: the concatenation (u, v) of every pair through
the first layer; the first layer split, the user's half added to the item's; and that one compiled. The
first is timed on some of its users and scaled, since it multiplies 600 columns for each of 79 million
pairs. All three are compared with float64 first.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program", help="path of cfaa_gpu")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--block", type=int, default=64, help="users at a time, where layers are split")
ARGUMENTS = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(ARGUMENTS.threads)

import torch  # noqa: E402

torch.set_num_threads(ARGUMENTS.threads)
USERS, ITEMS, D, HIDDEN, K = 39 * 256, 31 * 256, 300, 64, 20


def our_seconds():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "bench.json"
        subprocess.run([ARGUMENTS.program, "bench", "--filter", "ranking_mlp", "--precision", "float",
                        "--device", "cpu", "--threads", str(ARGUMENTS.threads), "--seconds", "3",
                        "--out", str(path)], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(path))["cases"][0]["seconds"]["median"]


def make_model(dtype):
    generator = torch.Generator().manual_seed(1)

    def normal(*shape, spread):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype)

    return {"u": normal(USERS, D, spread=0.4), "v": normal(ITEMS, D, spread=0.4),
            "w1": normal(HIDDEN, 2 * D, spread=D ** -0.5), "b1": normal(HIDDEN, spread=0.1),
            "w2": normal(HIDDEN, spread=1.0), "b2": 0.1}


def concatenated(m, u):
    pairs = torch.cat([u[:, None].expand(-1, ITEMS, -1), m["v"][None].expand(len(u), -1, -1)], 2)
    hidden = torch.relu(pairs @ m["w1"].T + m["b1"])
    return torch.topk(hidden @ m["w2"] + m["b2"] + u @ m["v"].T, K)


def split(m, u):
    of_users = u @ m["w1"][:, :D].T + m["b1"]
    hidden = torch.relu(of_users[:, None] + m["of_items"][None])
    return torch.topk(hidden @ m["w2"] + m["b2"] + u @ m["v"].T, K)


def seconds(rank, m, block, users):
    m["of_items"] = m["v"] @ m["w1"][:, D:].T

    def work():
        for first in range(0, users, block):
            rank(m, m["u"][first:min(first + block, users)])

    rank(m, m["u"][:block])
    times = []
    while len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * USERS / users


def main():
    ours = our_seconds()
    print(f"{USERS} users x {ITEMS} items, D {D}, {HIDDEN} hidden units, top {K}; {ARGUMENTS.threads} "
          f"threads, torch {torch.__version__}")
    print(f"{'cfaa_gpu':<34}{ours:>8.3f} s", flush=True)
    m, exact = make_model(torch.float32), make_model(torch.float64)
    exact["of_items"], m["of_items"] = (x["v"] @ x["w1"][:, D:].T for x in (exact, m))
    expected = split(exact, exact["u"][:8]).values
    for name, rank, block, users in (("torch, concatenated", concatenated, 8, 128),
                                     ("torch, first layer split", split, ARGUMENTS.block, USERS),
                                     ("torch, split, compiled", torch.compile(split),
                                      ARGUMENTS.block, USERS)):
        found = rank(m, m["u"][:8]).values.double()
        if not bool(((found - expected).abs() <= 1e-4 * expected.abs()).all()):
            print(f"{name:<34}wrong")
            continue
        theirs = seconds(rank, m, block, users)
        print(f"{name:<34}{theirs:>8.3f} s  {theirs / ours:.1f} times ours", flush=True)


main()
