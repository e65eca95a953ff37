"""RecBole loads a prepared directory as it is, and sees in it what `prepare` says it wrote.

    python recbole_load.py data/ [data2/ ...]

Each domain goes through RecBole's `benchmark_filename`: users, items and the rows of every split
must be those of prepare.json and of the .inter files, the ids RecBole gives back the raw ones, and
its own full-ranking evaluation must find as many positives per split. Exit 1 where they differ.
Needs RecBole (1.2.1 as it is, with numpy < 2 and pandas < 3).
"""
import json
import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")

from recbole.config import Config  # noqa: E402
from recbole.data import create_dataset, data_preparation  # noqa: E402

SPLITS = ["train", "valid", "test"]


def load(data, domain):
    config = Config(model="BPR", dataset=domain, config_dict={
        "data_path": data, "benchmark_filename": SPLITS, "use_gpu": False,
        "load_col": {"inter": ["user_id", "item_id", "rating", "label", "timestamp"]},
        "eval_args": {"mode": "full", "order": "RO", "group_by": "user"}})
    dataset = create_dataset(config)
    return dataset, data_preparation(config, dataset)


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        next(file)
        return [line.rstrip("\n").split("\t") for line in file]


def must(same, what):
    if not same:
        sys.exit(f"recbole_load: {what}")


def check(data, domain, wrote):
    dataset, loaders = load(data, domain)
    # RecBole counts its padding as a user and an item.
    must(dataset.user_num - 1 == wrote["users"], f"{domain}: {dataset.user_num - 1} users")
    must(dataset.item_num - 1 == wrote["items"], f"{domain}: {dataset.item_num - 1} items")
    must(dataset.inter_num == wrote["interactions"], f"{domain}: {dataset.inter_num} interactions")
    for split, loader in zip(SPLITS, loaders):
        expected = rows_of(os.path.join(data, domain, f"{domain}.{split}.inter"))
        feat = loader.dataset.inter_feat
        found = zip(dataset.id2token("user_id", feat["user_id"].numpy()),
                    dataset.id2token("item_id", feat["item_id"].numpy()),
                    feat["rating"].tolist(), feat["label"].tolist())
        must(len(feat) == len(expected) == wrote[split], f"{domain}: {len(feat)} rows in {split}")
        must(sorted(found) == sorted((u, i, float(r), float(y)) for u, i, r, y, _ in expected),
             f"{domain}: other rows in {split}")
        if split != "train":
            positives = sum(len(items) for items in loader.uid2positive_item if items is not None)
            must(positives == len(expected), f"{domain}: {positives} held out in {split}")
    print(f"{data}: {domain}: {wrote['users']} users, {wrote['items']} items, "
          + ", ".join(f"{wrote[s]} {s}" for s in SPLITS) + ": as RecBole reads it")


def main():
    logging.disable(logging.CRITICAL)
    folders, sys.argv = sys.argv[1:], sys.argv[:1]  # RecBole reads the command line too
    for data in folders:
        report = json.load(open(os.path.join(data, "prepare.json")))
        for domain in ("source", "target"):
            check(data, domain, report["result"][domain])


main()
