"""The counts that `cfaa_gpu prepare` must reach, by plain Python and nothing of the project.

    python golden_counts.py SOURCE.json.gz TARGET.json.gz [SEED]

Needs the package xxhash (the draws are XXH3-64 of "purpose\\tdomain\\tuser\\titem" with the seed).
Prints one line per step and domain: interactions, users, items; then the splits.
"""
import collections
import gzip
import json
import sys

import xxhash


def read(path):
    rows = {}
    for line in gzip.open(path, "rt", encoding="utf-8"):
        r = json.loads(line)
        row = (r.get("unixReviewTime", 0), r["overall"], r.get("reviewText", ""))
        pair = (r["reviewerID"], r["asin"])
        rows[pair] = max(rows.get(pair, row), row)
    return rows


def core(rows, least):
    while True:
        users = collections.Counter(u for u, _ in rows)
        items = collections.Counter(i for _, i in rows)
        kept = {p: r for p, r in rows.items() if users[p[0]] >= least and items[p[1]] >= least}
        if len(kept) == len(rows):
            return kept
        rows = kept


def draw(purpose, domain, pair, seed):
    message = "\t".join((purpose, domain) + pair).encode()
    return (xxhash.xxh3_64_intdigest(message, seed=seed) >> 11) * 2.0 ** -53


def counts(name, rows):
    print(name, len(rows), len({u for u, _ in rows}), len({i for _, i in rows}))


def splits(domain, rows, seed):
    tally = collections.Counter()
    for pair in rows:
        u = draw("split", domain, pair, seed)
        tally["train" if u < 0.8 else "valid" if u < 0.9 else "test"] += 1
    print(domain, "train", tally["train"], "valid", tally["valid"], "test", tally["test"])


def main():
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    source, target = read(sys.argv[1]), read(sys.argv[2])
    counts("duplicates source", source)
    counts("duplicates target", target)
    source, target = core(source, 5), core(target, 5)
    counts("core source", source)
    counts("core target", target)
    users = {u for u, _ in source} & {u for u, _ in target}
    items = {i for _, i in source} & {i for _, i in target}
    print("overlap users", len(users), "items", len(items))
    target = {p: r for p, r in target.items() if p[0] not in users and p[1] not in items}
    counts("overlap target", target)
    print("positives source", sum(r[1] >= 4 for r in source.values()))
    target = {p: r for p, r in target.items() if r[1] >= 4}
    counts("negatives target", target)
    splits("source", source, seed)
    splits("target", target, seed)
    half = {p: r for p, r in target.items() if draw("keep", "target", p, seed) < 0.5}
    counts("half of the target", half)


main()
