"""What bench/table1 and bench/label_curve share: rows that are trained and tested with the program,
each once, and their differences user by user. Needs Python's standard library.
"""

import concurrent.futures
import dataclasses
import glob
import json
import math
import os
import statistics
import subprocess
import sys

METRIC = "NDCG@10"


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a table. `settings` are tried on validation of the first seed, and the best is
    run; `seeded`: another random seed gives another result."""

    name: str
    command: tuple  # of the program, before and after the data: ("train", ("configs/demo.json",))
    settings: tuple = ((),)  # of --set
    seeded: bool = False


def baseline(name, *flags):
    return Row(" ".join((name,) + flags[1::2]), ("baseline", (name,) + flags), seeded=name == "mf")


def trained(name, config, settings=((),)):
    """A network of a configuration file; every setting is a tuple of KEY=VALUE."""
    return Row(name, ("train", (config,)), settings, seeded=True)


def residual(variant):
    """The default with a network on top, trained on what the signals leave over."""
    return trained(f"default+{variant}", "configs/demo.json",
                   (("signals.residual=model", f"model.variant={variant.lower()}"),))


def weighed(name, *sets):
    """The default: signals, weighed."""
    return Row(name, ("train", ()), (sets,))


def is_network(row):
    """Trained by a configuration file."""
    return row.command[0] == "train" and bool(row.command[1])


def cut_short(row, steps):
    """The row with at most `steps` steps where it is a network; 0: as its configuration says."""
    if steps == 0 or not is_network(row):
        return row
    return dataclasses.replace(row, settings=tuple(sets + (f"train.steps={steps}",)
                                                   for sets in row.settings))


class Refused(SystemExit):
    """The program ended with an error."""


SIGNALS = ("popularity", "itemknn", "ease", "cease", "ials", "content", "text")
SIMPLE = ("popularity", "itemknn", "mf", "rp3beta", "ease", "cease", "ials", "content", "text")


class Program:
    def __init__(self, path, threads):
        self.path, self.threads = path, str(threads)

    def run(self, *arguments):
        done = subprocess.run((self.path,) + arguments, capture_output=True, text=True,
                              env=dict(os.environ, OPENBLAS_NUM_THREADS=self.threads))
        if done.returncode != 0:
            raise Refused(f"{self.path} {' '.join(arguments)}\n{done.stderr[-2000:]}")
        return done.stdout

    def prepared(self, place, source, target, model, flags=(), reuse=(), summaries=False):
        """A prepared directory with review vectors, and summaries where they are asked for. Vectors of
        `reuse` are not computed again."""
        if not os.path.exists(f"{place}/prepare.json"):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            self.run("prepare", "--source", source, "--target", target, "--out", place, *flags)
        made = "user_summary_sums.npy" if summaries else "embed.json"
        if not os.path.exists(f"{place}/target/{made}"):
            known = [flag for other in reuse for flag in ("--reuse", other)]
            more = ("--fresh", "--set", "embed.summaries=true") if summaries else ()
            self.run("embed", place, "--model", model, *known, *more)
        return place

    def measured(self, data, place, row, seed, sets):
        """One run, done only where its result is not there yet."""
        if not os.path.exists(f"{place}/result.json"):
            command, arguments = row.command
            if command == "train":
                # A key of `train` would ask for a network where no configuration is given.
                random = f"train.seed={seed}" if arguments else f"signals.seed={seed}"
                self.run("train", data, *arguments, "--out", place, "--threads", self.threads,
                         "--set", random, "eval.bootstrap=0", *sets)
            else:
                tune = [] if row.name in ("popularity", "content", "text") else ["--tune"]
                seeded = ["--seed", str(seed)] if row.seeded else []
                if not has_validation(data):
                    tune = []
                self.run("baseline", data, *arguments, *tune, *seeded, "--out", place, "--threads",
                         self.threads, "--bootstrap", "0")
        with open(f"{place}/result.json") as file:
            return json.load(file)


def has_validation(data):
    with open(f"{data}/target/target.valid.inter") as file:
        next(file)
        return any(line.split("\t")[3] == "1" for line in file)


def valid_of(result):
    return result.get("valid", {}).get(METRIC) if isinstance(result.get("valid"), dict) else \
        result.get("valid")


def measure_row(program, data, place, row, seeds):
    """The row on one prepared directory: chosen setting, value on validation, values by seed and
    user."""
    chosen, tried = 0, []
    if len(row.settings) > 1 and has_validation(data):
        for s, sets in enumerate(row.settings):
            result = program.measured(data, f"{place}/setting-{s}", row, seeds[0], sets)
            tried.append(valid_of(result) or 0)
        chosen = max(range(len(tried)), key=lambda s: (tried[s], -s))
    values, valid, places = [], [], []
    for seed in seeds if row.seeded else seeds[:1]:
        first = len(row.settings) > 1 and seed == seeds[0] and tried
        where = f"{place}/setting-{chosen}" if first else f"{place}/seed-{seed}"
        result = program.measured(data, where, row, seed, row.settings[chosen])
        valid.append(valid_of(result))
        values.append(user_values(where))
        places.append(where)
    known = [v for v in valid if v is not None]
    return {"setting": list(row.settings[chosen]), "tried": tried,
            "valid": statistics.mean(known) if known else None, "seeds": values,
            "place": places[0]}


def user_values(place):
    found = glob.glob(f"{place}/*target*.tsv") or glob.glob(f"{place}/*users*.tsv")
    if not found:
        raise SystemExit(f"{place}: has no table of users' metrics")
    with open(found[0]) as file:
        column = next(file).rstrip("\n").split("\t").index(METRIC)
        return {cells[0]: float(cells[column])
                for cells in (line.rstrip("\n").split("\t") for line in file)}


def merged(measured, draws):
    """Draws of labels on the same split count as further seeds: their users are the same."""
    return [{"seeds": [values for found in measured[first:first + draws]
                       for values in found["seeds"]]}
            for first in range(0, len(measured), draws)]


def by_user(measured):
    """NDCG@10 of each user, the mean over random seeds."""
    return {user: statistics.mean(values[user] for values in measured["seeds"])
            for user in measured["seeds"][0]}


def seed_means(measured):
    return [statistics.mean(values.values()) for values in measured["seeds"]]


def mean_and_error(values):
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.mean(values), error


def difference(one, other):
    """Paired by user, pooled over the prepared directories: mean and standard error."""
    pairs = []
    for a, b in zip(one, other):
        a, b = by_user(a), by_user(b)
        pairs += [a[user] - b[user] for user in a]
    return mean_and_error(pairs)


def seed_difference(one, other):
    """Paired by random seed, where both rows have as many; a row without seeds stands for all."""
    pairs = []
    for a, b in zip(one, other):
        a, b = seed_means(a), seed_means(b)
        longest = max(len(a), len(b))
        pairs += [x - y for x, y in zip(a * (longest // len(a)), b * (longest // len(b)))]
    return mean_and_error(pairs)


def best_on_validation(rows):
    """Of each prepared directory the row of `rows` (name: measured by directory) that validation
    prefers, and the names taken; nothing to choose by: the first."""
    chosen, names = [], []
    for place in range(len(next(iter(rows.values())))):
        name = max(rows, key=lambda n: rows[n][place]["valid"] or 0)
        chosen.append(rows[name][place])
        names.append(name)
    return chosen, names


def random_ranking(data):
    """What a random order is worth to each test user, in expectation."""
    def pairs(split, held_out):
        with open(f"{data}/target/target.{split}.inter") as file:
            next(file)
            for cells in (line.split("\t") for line in file):
                if not held_out or float(cells[3]) > 0:
                    yield cells[0]
    with open(f"{data}/target/items.tsv") as file:
        items = sum(1 for _ in file) - 1
    masked, positives = {}, {}
    for split in ("train", "valid"):
        for user in pairs(split, False):
            masked[user] = masked.get(user, 0) + 1
    for user in pairs("test", True):
        positives[user] = positives.get(user, 0) + 1
    gain = [1 / math.log2(place + 2) for place in range(10)]
    return {"valid": None, "seeds": [{
        user: count / (items - masked.get(user, 0)) * sum(gain) / sum(gain[:count])
        for user, count in positives.items()}]}


def parse_pairs(texts):
    """NAME=SOURCE,TARGET of the command line."""
    pairs = {}
    for text in texts:
        name, _, files = text.partition("=")
        source, _, target = files.partition(",")
        if not (name and source and target):
            sys.exit(f"'{text}' is not NAME=SOURCE,TARGET: a name and two review files")
        pairs[name] = (source, target)
    return pairs


def write(path, text):
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def in_parallel(jobs, tasks):
    """Results in the order of the tasks."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [done.result() for done in [pool.submit(task) for task in tasks]]
