"""What `cfaa_gpu prepare` does, as one would write it in Python: json, gzip, pandas.

    python prepare_peer.py SOURCE TARGET OUT [--core 5] [--seed 0] [--program cfaa_gpu [--threads 2]]

Reads Amazon JSON lines (2014/2018 or 2023, plain or gzip), removes duplicates, takes the k-core,
drops overlap, binarises, keeps the target's positives, splits 8:1:1 by the same keyed draws, and
writes the same files (all but prepare.json and the derived index.bin). With --program it also runs
the program on the same input, compares every file byte by byte, and prints both times and peak
memories. Needs pandas, numpy and xxhash.
"""
import argparse
import gzip
import json
import os
import resource
import struct
import subprocess
import sys
import time

import numpy
import pandas
import xxhash


def read(path):
    rows = []
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            r = json.loads(line)
            if "reviewerID" in r:
                rows.append((r["reviewerID"], r["asin"], r["overall"],
                             r.get("unixReviewTime", 0) * 1000, r.get("reviewText") or ""))
            else:
                rows.append((r["user_id"], r.get("parent_asin") or r["asin"], r["rating"],
                             r["timestamp"], r.get("text") or ""))
    return pandas.DataFrame(rows, columns=["user", "item", "rating", "time", "text"])


def core(frame, least):
    while True:
        users, items = frame["user"].value_counts(), frame["item"].value_counts()
        keep = (frame["user"].map(users) >= least) & (frame["item"].map(items) >= least)
        if keep.all():
            return frame
        frame = frame[keep]


def draws(frame, purpose, domain, seed):
    prefix = f"{purpose}\t{domain}\t"
    return numpy.array([
        (xxhash.xxh3_64_intdigest((prefix + user + "\t" + item).encode(), seed=seed) >> 11) * 2.0 ** -53
        for user, item in zip(frame["user"], frame["item"])])


def seconds(milliseconds):
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def write(frame, out, name, seed):
    folder = os.path.join(out, name)
    os.makedirs(folder)
    u = draws(frame, "split", name, seed)
    part = numpy.where(u < 0.8, "train", numpy.where(u < 0.8 + 0.1, "valid", "test"))
    train = frame[part == "train"]
    for column, file in (("user", "users.tsv"), ("item", "items.tsv")):
        counts = train[column].value_counts()
        ids = numpy.sort(frame[column].unique())
        pandas.DataFrame({"index": range(len(ids)), column + "_id": ids,
                          "training_interactions": [counts.get(i, 0) for i in ids]}).to_csv(
            os.path.join(folder, file), sep="\t", index=False)
    table = pandas.DataFrame({
        "user_id:token": frame["user"], "item_id:token": frame["item"],
        "rating:float": frame["rating"].map("{:g}".format),
        "label:float": (frame["rating"] >= 4).astype(int),
        "timestamp:float": frame["time"].map(seconds)})
    for split in ("train", "valid", "test"):
        table[part == split].to_csv(os.path.join(folder, f"{name}.{split}.inter"), sep="\t",
                                    index=False)
    texts = [t.encode() for t in train["text"]]
    offsets = numpy.concatenate([[0], numpy.cumsum([len(t) for t in texts])]).astype("<u8")
    payload = offsets.tobytes() + b"".join(texts)
    with open(os.path.join(folder, f"{name}.train.text"), "wb") as file:
        file.write(struct.pack("<8sQQQ", b"CFAATXT1", len(texts), int(offsets[-1]),
                               xxhash.xxh3_64_intdigest(payload)))
        file.write(payload)


def prepare(source, target, out, least, seed):
    frames = []
    for path in (source, target):
        frame = read(path).sort_values(["user", "item", "time", "rating", "text"])
        frames.append(core(frame.drop_duplicates(["user", "item"], keep="last"), least))
    source, target = frames
    target = target[~target["user"].isin(source["user"].unique())
                    & ~target["item"].isin(source["item"].unique())]
    target = target[target["rating"] >= 4]
    write(source, out, "source", seed)
    write(target, out, "target", seed)


def compare(a, b):
    names = []
    for folder, _, files in os.walk(a):
        names += [os.path.relpath(os.path.join(folder, f), a) for f in files]
    for name in sorted(names):
        if open(os.path.join(a, name), "rb").read() != open(os.path.join(b, name), "rb").read():
            sys.exit(f"prepare_peer: {name} differs")
    print(f"{len(names)} files are the same bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("out")
    parser.add_argument("--core", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    if a.program:
        other = a.out + ".program"
        command = [a.program, "prepare", "--source", a.source, "--target", a.target, "--out", other,
                   "--source-core", str(a.core), "--target-core", str(a.core), "--seed", str(a.seed),
                   "--threads", str(a.threads), "--json"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        program = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"program: {program:.2f} s ({usage.ru_utime + usage.ru_stime:.2f} s of the processor), "
              f"{usage.ru_maxrss / 1024:.0f} MiB")
    start, start_cpu = time.perf_counter(), time.process_time()
    prepare(a.source, a.target, a.out, a.core, a.seed)
    peer, peer_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"python:  {peer:.2f} s ({peer_cpu:.2f} s of the processor), {memory:.0f} MiB")
    if a.program:
        print(f"ratio:   {peer / program:.1f}")
        compare(a.out, other)


main()
