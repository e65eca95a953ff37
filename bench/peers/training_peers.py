"""A step of CFAA (variant full) beside the same step in PyTorch, eager and compiled, timed in turn.

    cmake --build --preset cpu --target cfaa_gpu random_reviews
    python bench/peers/training_peers.py build/cpu [--threads 2]

Ours is `cfaa_gpu bench --filter train_step`: the paper's sizes (N 256, D 300, K 128, 1.7 million source
interactions, 768-dimensional reviews), batches assembled meanwhile. Theirs is bench/peers/cfaa_torch.py
on a trace of the same shapes from a small data set, made here, on which its numbers are compared with
ours first. The small tables are in PyTorch's favour: its gradients of tables are dense.
"""

import argparse
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("build", type=pathlib.Path, help="folder of cfaa_gpu and random_reviews")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=5.0, help="at least, of ours")
parser.add_argument("--only", choices=("eager", "compiled"), help="one of PyTorch's two")
parser.add_argument("--json", default="", help="file for the figures")
ARGUMENTS = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(ARGUMENTS.threads)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cfaa_torch  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(ARGUMENTS.threads)


def call(name, *arguments):
    command = [str(ARGUMENTS.build / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(" ".join(command) + ":\n" + done.stderr)


def make_trace(folder):
    call("cfaa_gpu", "synthesize", "--out", folder / "raw", "--users", 1500, "--items", 800,
         "--interactions", 15000)
    call("cfaa_gpu", "prepare", "--source", folder / "raw/source.jsonl", "--target",
         folder / "raw/target.jsonl", "--out", folder / "data")
    call("random_reviews", folder / "data", 768)
    call("cfaa_gpu", "train", folder / "data", "--out", folder / "run", "--trace", folder / "trace",
         "--trace-steps", 2, "--set", "train.epochs=1", "--set", "train.eval_every=0",
         "--set", "eval.bootstrap=0", "--threads", ARGUMENTS.threads)
    return sorted(glob.glob(str(folder / "trace/step-*.safetensors")))[-1]


def our_step(folder):
    path = folder / "bench.json"
    call("cfaa_gpu", "bench", "--filter", "train_step", "--precision", "float", "--device", "cpu",
         "--threads", ARGUMENTS.threads, "--seconds", ARGUMENTS.seconds, "--out", path)
    return {c["name"]: c["seconds"]["median"] for c in json.load(open(path))["cases"]}


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        trace = make_trace(folder)
        if not cfaa_torch.check(trace):
            sys.exit("PyTorch computes something else, so that times mean nothing")
        ours = our_step(folder)
        figures = {"threads": ARGUMENTS.threads, "torch": torch.__version__, "cfaa_gpu": ours}
        print(f"a step of CFAA, {ARGUMENTS.threads} threads, torch {torch.__version__}")
        print(f"{'cfaa_gpu':<16}{1e3 * ours['train_step']:>10.1f} ms", flush=True)
        for name in ("eager", "compiled"):
            if ARGUMENTS.only not in (None, name):
                continue
            seconds = figures[name] = cfaa_torch.time_step(trace, name == "compiled")
            print(f"{'torch ' + name:<16}{1e3 * seconds:>10.1f} ms  "
                  f"{seconds / ours['train_step']:.1f} times ours", flush=True)
        for part, seconds in ours.items():
            if "/" in part:
                print(f"  {part.split('/')[1]:<14}{1e3 * seconds:>10.1f} ms")
        if ARGUMENTS.json:
            json.dump(figures, open(ARGUMENTS.json, "w"), indent=2)


main()
