"""The tables of docs/results.md: every row trained and tested under one protocol.

    python bench/results.py build/cpu/cfaa_gpu OUT real SOURCE TARGET     # two review files
    python bench/results.py build/cpu/cfaa_gpu OUT synthetic 1 0 0.5 2    # shifts

Settings were chosen on validation (docs/results.md says how); here they are only run: seeds 0 .. 4,
two runs at a time with one thread each. A finished run is kept, so the script resumes where it
stopped. Needs Python's standard library.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import statistics
import subprocess
import sys

SEEDS = range(5)
SMALL = ["configs/demo.json"]  # D = 64, K = 64; other keys are the program's defaults
SMALLER = ["model.dim=32", "model.layers=[32]", "alignment.k=32"]
VARIANTS = {v: [f"model.variant={v}"] for v in ("base", "v", "h", "full")}
# Reviews alone, one G for both domains, no label of the target: what alignment was made for.
UNSUPERVISED = ["train.target_supervision=none", "model.inputs=[\"review\"]", "model.towers=shared",
                "model.layers=[]", "model.review.scale=unit", "model.output_scale=0.4",
                "train.learning_rate=3e-3", "losses.vertical.weight=2", "train.epochs=200",
                "train.patience=200"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True,
                          env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


def train(program, data, out, config, sets, seed):
    place = f"{out}/seed-{seed}"
    if not os.path.exists(f"{place}/result.json"):
        run(program, "train", data, *config, "--out", place, "--threads", "1", "--json", "--set",
            f"train.seed={seed}", "eval.bootstrap=0", *sets)


def read(path):
    with open(path) as file:
        return json.load(file)


def discrepancy(program, place):
    kept = f"{place}/discrepancy.json"
    if not os.path.exists(kept):
        text = run(program, "discrepancy", place, "--threads", "1", "--json")
        with open(kept, "w") as file:
            file.write(text)
    return read(kept)


def norms(place):
    """Gradient norms of L_C, L_O and L_A with respect to Z, first and last logged; nothing untrained."""
    lines = [json.loads(line) for line in open(f"{place}/metrics.jsonl")]
    lines = [line for line in lines if "norm/score" in line]
    ends = (lines[0], lines[-1]) if lines else ()
    return [", ".join(f"{line.get(f'norm/{loss}', 0):.2g}" for loss in ("score", "vertical", "horizontal"))
            for line in ends] or ["", ""]


class Table:
    """Rows of runs on one data set, all trained at once, then shown beside the first."""

    def __init__(self, program, data, out):
        self.program, self.data, self.out = program, data, out
        self.rows, self.baselines = {}, []

    def train(self, name, config, sets):
        self.rows[name] = (config, sets)

    def baseline(self, name):
        self.baselines.append(name)
        if not glob.glob(f"{self.out}/{name}/**/result.json", recursive=True):
            seeds = ["--seeds", str(len(SEEDS))] if name == "mf" else []
            run(self.program, "baseline", self.data, name, "--out", f"{self.out}/{name}", *seeds,
                "--bootstrap", "0")

    def values(self, name, metric):
        found = sorted(glob.glob(f"{self.out}/{name}/seed-*/result.json"))
        found = found or [f"{self.out}/{name}/result.json"]
        values = [read(path)["target"][metric] for path in found]
        return values if len(values) > 1 else values * len(SEEDS)

    def finish(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for job in [pool.submit(train, self.program, self.data, f"{self.out}/{name}", *row, seed)
                        for name, row in self.rows.items() for seed in SEEDS]:
                job.result()

    def show(self, reference):
        base = self.values(reference, "NDCG@10")
        print(f"\n| row | NDCG@10 | Recall@10 | against {reference} |\n|---|---|---|---|")
        for name in self.baselines + list(self.rows):
            cells = []
            for metric in ("NDCG@10", "Recall@10"):
                values = self.values(name, metric)
                cells.append(f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}")
            differences = [a - b for a, b in zip(self.values(name, "NDCG@10"), base)]
            error = statistics.stdev(differences) / len(differences) ** 0.5
            cells.append("" if name == reference else f"{statistics.mean(differences):+.4f} ± {error:.4f}")
            print(f"| {name} | " + " | ".join(cells) + " |")
        print("\n| row | A-distance users, items | gradient norms: first | last | spread kept |\n"
              "|---|---|---|---|---|")
        for name in self.rows:
            place = f"{self.out}/{name}/seed-0"
            found = discrepancy(self.program, place)
            vertical = found["users"]["vertical"]
            cells = [", ".join(f"{found[s]['proxy_distance']['distance']:.2f}"
                               for s in ("users", "items")),
                     *norms(place),
                     f"{100 * vertical['spread_source']:.0f} %, {100 * vertical['spread_target']:.0f} %"]
            print(f"| {name} | " + " | ".join(cells) + " |")
        sys.stdout.flush()


def prepared(program, out, source, target, model):
    os.makedirs(out, exist_ok=True)
    data = f"{out}/data"
    if not os.path.exists(f"{data}/prepare.json"):
        run(program, "prepare", "--source", source, "--target", target, "--out", data)
    run(program, "embed", data, "--model", model)
    return data


def real(program, out, source, target, model):
    data = prepared(program, out, source, target, model)
    table = Table(program, data, out)
    for name in ("popularity", "itemknn", "mf"):
        table.baseline(name)
    for variant, sets in VARIANTS.items():
        table.train(variant, SMALL, sets)
    table.train("as_published", ["configs/as_published.json"], ["model.dim=64", "alignment.k=64"])
    for variant in ("base", "v"):
        table.train("strong-" + variant, ["configs/strong.json"], VARIANTS[variant])
    table.train("untrained", SMALL, ["train.epochs=0"])
    table.finish()
    table.show("base")


def synthetic(program, out, shifts, model):
    for shift in shifts:
        place = f"{out}/shift-{shift}"
        os.makedirs(place, exist_ok=True)
        if not os.path.exists(f"{place}/raw"):
            run(program, "synthesize", "--shift", shift, "--out", f"{place}/raw")
        data = prepared(program, place, f"{place}/raw/source.jsonl", f"{place}/raw/target.jsonl", model)
        for name, sets in (("none", UNSUPERVISED), ("negatives", [])):
            table = Table(program, data, f"{place}/{name}")
            for baseline in ("popularity", "mf"):
                table.baseline(baseline)
            for variant in ("base", "v", "full") if shift in ("0", "1") else ("base", "v"):
                table.train(variant, SMALL, SMALLER + sets + VARIANTS[variant])
            if name == "none":
                table.train("base, standardized", SMALL,
                            SMALLER + sets + ["model.variant=base", "model.review.scale=standardize"])
            table.train("untrained", SMALL, SMALLER + sets + ["train.epochs=0"])
            table.finish()
            print(f"\n### shift {shift}, target_supervision {name}")
            table.show("base")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("--model", default="build/models/minilm", help="of tools/get_model")
    parser.add_argument("which", choices=["real", "synthetic"])
    parser.add_argument("files", nargs="*", help="real: the source's and the target's reviews; synthetic: shifts")
    arguments = parser.parse_args()
    if arguments.which == "synthetic":
        synthetic(arguments.program, arguments.out, arguments.files, arguments.model)
    elif len(arguments.files) == 2:
        real(arguments.program, arguments.out, *arguments.files, arguments.model)
    else:
        sys.exit("results.py: 'real' needs two review files, the source's and the target's")


main()
