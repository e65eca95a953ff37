"""An independent implementation of `cfaa_gpu evaluate`, in NumPy, and a comparison with it.

    python bench/peers/evaluate_peer.py --program build/cpu/cfaa_gpu [--device cpu] [--cases 12]
                                        [--data PREPARED]

makes random data (or takes a prepared directory) and random embeddings, every other time with many
ties, runs the program on them, and demands the same lists, item by item, and metrics within 1e-12,
for the full and the sampled protocol. Where they are installed, RecBole's and ranx's own metrics of
the same lists are held against it as well.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

MASK32 = np.uint64(0xFFFFFFFF)


def philox(seed, index, stream):
    """Philox4x32-10 of 64-bit counters; the four words of each (index, stream)."""
    index, stream = np.broadcast_arrays(np.asarray(index, np.uint64), np.asarray(stream, np.uint64))
    c = [index & MASK32, index >> np.uint64(32), stream & MASK32, stream >> np.uint64(32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            p1 & MASK32,
            (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            p0 & MASK32,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def sample(others, wanted, user, seed):
    """Floyd's sampling of `wanted` of the sorted list `others`."""
    wanted = min(wanted, len(others))
    chosen = set()
    lasts = range(len(others) - wanted, len(others))
    words = philox(seed, np.array(lasts, np.uint64), user)
    for n, last in enumerate(lasts):
        draw = (((int(words[0][n]) << 32) | int(words[1][n])) * (last + 1)) >> 64
        chosen.add(last if draw in chosen else draw)
    return [others[i] for i in chosen]


def rows_of(path):
    with open(path) as file:
        next(file)
        return [line.rstrip("\n").split("\t") for line in file]


class Data:
    def __init__(self, folder, domain="target"):
        at = pathlib.Path(folder) / domain
        self.users = [row[1] for row in rows_of(at / "users.tsv")]
        self.items = [row[1] for row in rows_of(at / "items.tsv")]
        user, item = ({name: i for i, name in enumerate(ids)} for ids in (self.users, self.items))
        self.split = {
            name: [(user[r[0]], item[r[1]], float(r[3])) for r in rows_of(at / f"{domain}.{name}.inter")]
            for name in ("train", "valid", "test")
        }

    def per_user(self, names, positives_only):
        result = [set() for _ in self.users]
        for name in names:
            for user, item, label in self.split[name]:
                if label > 0 or not positives_only:
                    result[user].add(item)
        return result


def score_matrix(u, v):
    """Double dot products, their terms added in index order."""
    scores = np.zeros((len(u), len(v)))
    for i in range(u.shape[1]):
        scores += np.multiply.outer(u[:, i].astype(np.float64), v[:, i].astype(np.float64))
    return scores


def rank(scores, masked, positives, k, candidates, seed):
    lists = {}
    every = np.arange(scores.shape[1])
    for user, wanted in enumerate(positives):
        if not wanted:
            continue
        items = np.setdiff1d(every, sorted(masked[user]))
        if candidates:
            others = np.setdiff1d(items, sorted(wanted)).tolist()
            drawn = sample(others, candidates, user, seed)
            items = np.array(sorted(set(drawn) | (wanted - masked[user])))
        order = np.lexsort((items, -scores[user, items]))
        lists[user] = items[order[:k]].tolist()
    return lists


def metrics(lists, positives, ks, item_count):
    result, per_user = {}, {}
    for k in ks:
        rows = []
        for user, full in lists.items():
            shown, wanted = full[:k], positives[user]
            ranks = [r for r, item in enumerate(shown, 1) if item in wanted]
            ideal = math.fsum(1 / math.log2(r + 1) for r in range(1, min(k, len(wanted)) + 1))
            rows.append([
                float(bool(ranks)),
                len(ranks) / len(wanted),
                math.fsum(1 / math.log2(r + 1) for r in ranks) / ideal,
                1 / ranks[0] if ranks else 0.0,
                len(ranks) / k,
                len(ranks),
                len(wanted),
            ])
        rows = np.array(rows)
        for name, column in zip(("HR", "Recall", "NDCG", "MRR", "Precision"), rows.T):
            result[f"{name}@{k}"] = math.fsum(column) / len(rows)
        result[f"pooled_HR@{k}"] = rows[:, 5].sum() / rows[:, 6].sum()
        shown = {item for full in lists.values() for item in full[:k]}
        result[f"Coverage@{k}"] = len(shown) / item_count
        per_user[k] = rows
    return result, per_user


def intervals(per_user, resamples, seed):
    users = len(next(iter(per_user.values())))
    sums = {k: [] for k in per_user}
    for b in range(resamples):
        words = np.stack(philox(seed, np.arange((users + 3) // 4), b), axis=1).reshape(-1)[:users]
        draw = ((words * np.uint64(users)) >> np.uint64(32)).astype(np.int64)
        for k, rows in per_user.items():
            total = rows[draw].sum(axis=0)
            sums[k].append(np.append(total[:5] / users, total[5] / total[6]))
    names = ("HR", "Recall", "NDCG", "MRR", "Precision", "pooled_HR")
    return {
        f"{name}@{k}": np.percentile(np.array(values)[:, m], [2.5, 97.5])
        for k, values in sums.items() for m, name in enumerate(names)
    }


def recbole_metrics(lists, positives, ks, item_count):
    import torch
    from recbole.evaluator import metrics as m
    from recbole.evaluator.collector import DataStruct

    np.float = float  # RecBole 1.2.1 was written for a NumPy that had it
    width = max(ks)
    lists = {u: full for u, full in lists.items() if len(full) == width}
    hits = [[item in positives[u] for item in full] + [len(positives[u])] for u, full in lists.items()]
    data = DataStruct()
    data.set("rec.topk", torch.tensor(np.array(hits, dtype=np.int64)))
    data.set("rec.items", torch.tensor(list(lists.values())))
    data.set("data.num_items", item_count)
    config = {"topk": list(ks), "metric_decimal_place": 15}
    found = {}
    for metric, name in ((m.Hit, "hit"), (m.Recall, "recall"), (m.NDCG, "ndcg"), (m.MRR, "mrr"),
                         (m.Precision, "precision"), (m.ItemCoverage, "itemcoverage")):
        values = metric(config).calculate_metric(data)
        ours = {"hit": "HR", "recall": "Recall", "ndcg": "NDCG", "mrr": "MRR",
                "precision": "Precision", "itemcoverage": "Coverage"}[name]
        for k in ks:
            found[f"{ours}@{k}"] = float(values[f"{name}@{k}"])
    return found, lists


def ranx_metrics(lists, positives, ks):
    import ranx

    qrels = ranx.Qrels({str(u): {str(i): 1 for i in positives[u]} for u in lists})
    run = ranx.Run({
        str(u): {str(i): float(len(full) - r) for r, i in enumerate(full)} for u, full in lists.items()
    })
    names = {"hit_rate": "HR", "recall": "Recall", "ndcg": "NDCG", "mrr": "MRR", "precision": "Precision"}
    wanted = [f"{name}@{k}" for name in names for k in ks]
    values = ranx.evaluate(qrels, run, wanted)
    return {names[key.split("@")[0]] + "@" + key.split("@")[1]: float(v) for key, v in values.items()}


def make_data(folder, random, users, items):
    """A prepared directory."""
    ids = [sorted(f"{name}{n}" for n in random.permutation(10 * count)[:count])
           for name, count in (("u", users), ("i", items))]
    for domain in ("source", "target"):
        at = pathlib.Path(folder) / domain
        at.mkdir(parents=True, exist_ok=True)
        pairs = {(u, i) for u, i in zip(random.integers(0, users, users * 12),
                                        random.zipf(1.3, users * 12) % items)}
        splits = {"train": [], "valid": [], "test": []}
        for u, i in sorted(pairs):
            name = ("train", "valid", "test")[min(2, random.integers(0, 6) // 2)]
            splits[name].append((u, i, int(random.integers(0, 5) > 0)))
        for axis, (name, count) in enumerate((("users", users), ("items", items))):
            seen = np.zeros(count, int)
            for row in splits["train"]:
                seen[row[axis]] += 1
            with open(at / f"{name}.tsv", "w") as file:
                file.write(f"index\t{name[:-1]}_id\ttraining_interactions\n")
                file.writelines(f"{n}\t{ids[axis][n]}\t{seen[n]}\n" for n in range(count))
        for name, rows in splits.items():
            with open(at / f"{domain}.{name}.inter", "w") as file:
                file.write("user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n")
                file.writelines(f"{ids[0][u]}\t{ids[1][i]}\t{1 + 4 * y}\t{y}\t0\n" for u, i, y in rows)


def make_embeddings(folder, random, users, items, d, levels, dtype):
    """Embeddings and their scores; `levels` steps per unit make ties."""
    factors = [random.normal(size=(count, d)) for count in (users, items)]
    if levels:
        factors = [np.round(f * levels) / levels for f in factors]
    factors = [f.astype(dtype) for f in factors]
    np.save(f"{folder}/U.npy", factors[0])
    np.save(f"{folder}/V.npy", factors[1])
    np.save(f"{folder}/S.npy", score_matrix(*factors))
    return factors


def worst(ours, theirs):
    return max(abs(ours[key] - value) for key, value in theirs.items())


def compare(program, device, prepared, folder, factors, ks, candidates, split, source):
    data = Data(prepared)
    positives = data.per_user([split], True)
    masked = data.per_user(["train", "valid"] if split == "test" else ["train"], False)
    expected = rank(score_matrix(*factors), masked, positives, max(ks), candidates, seed=7)
    values, per_user = metrics(expected, positives, ks, len(data.items))

    command = [program, "evaluate", prepared, "--json", "--lists", f"{folder}/lists.tsv", "--device",
               device, "--split", split, "--k", ",".join(map(str, ks)), "--bootstrap", "100",
               "--bootstrap-seed", "3", "--candidates", str(candidates), "--candidate-seed", "7"]
    command += (["--scores", f"{folder}/S.npy"] if source == "scores" else
                ["--user-embeddings", f"{folder}/U.npy", "--item-embeddings", f"{folder}/V.npy"])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    report = json.loads(done.stdout)
    item = {name: i for i, name in enumerate(data.items)}
    user = {name: i for i, name in enumerate(data.users)}
    lists = {u: [] for u in expected}
    for row in rows_of(f"{folder}/lists.tsv"):
        lists[user[row[0]]].append(item[row[2]])

    different = sum(lists[u] != expected[u] for u in expected)
    error = worst(report, values)
    bounds = intervals(per_user, 100, 3)
    interval_error = max(np.abs(np.array(report["interval"][k]) - v).max() for k, v in bounds.items())
    line = (f"{split} {source} candidates {candidates}: {len(expected)} users x {len(data.items)} "
            f"items, {different} lists differ, metrics within {error:.1e}, intervals within "
            f"{interval_error:.1e}")
    peer_error = 0.0
    for name, peer in (("RecBole", recbole_metrics), ("ranx", ranx_metrics)):
        try:
            if peer is recbole_metrics:
                found, whole = peer(lists, positives, ks, len(data.items))
                against = metrics(whole, positives, ks, len(data.items))[0]
            else:
                found, against = peer(lists, positives, ks), report
        except ImportError:
            continue
        difference = worst(against, found)
        peer_error = max(peer_error, difference)
        line += f", {name} within {difference:.1e}"
    print(line)
    return different == 0 and error <= 1e-12 and interval_error <= 1e-12 and peer_error <= 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data")
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    good = True
    for case in range(arguments.cases):
        with tempfile.TemporaryDirectory() as folder:
            dtype = np.float64 if case % 3 == 2 else np.float32
            if not arguments.data:
                make_data(folder, random, users=int(random.integers(20, 300)),
                          items=int(random.integers(15, 1500)))
            data = Data(arguments.data or folder)
            factors = make_embeddings(folder, random, len(data.users), len(data.items),
                                      d=int(random.integers(1, 40)),
                                      levels=(0, 1, 3)[case % 3 if case % 2 else 1], dtype=dtype)
            for split, candidates, source in (("test", 0, "embeddings"), ("valid", 0, "embeddings"),
                                              ("test", 0, "scores"), ("test", 99, "embeddings")):
                good &= compare(arguments.program, arguments.device, arguments.data or folder, folder,
                                factors, (1, 5, 10, 20), candidates, split, source)
    print("all equal" if good else "DIFFERENT")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
