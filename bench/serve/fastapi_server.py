"""What `cfaa_gpu serve` is compared with: the same lists from FastAPI, NumPy and SciPy.

Reads what `cfaa_gpu export RUN --out EXPORT` wrote of a run of signals, and the run's data:

    EXPORT=export DATA=data uvicorn fastapi_server:app --workers 2 --no-access-log
"""
import os
import pathlib

import numpy as np
import orjson
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response
from scipy import sparse

EXPORT = pathlib.Path(os.environ["EXPORT"])
DATA = pathlib.Path(os.environ["DATA"]) / "target"


def read(name):
    return np.load(EXPORT / f"target_{name}.npy")


def matrix(name, columns):
    offset = read(f"{name}_offset")
    return sparse.csr_matrix((read(f"{name}_value"), read(f"{name}_column"), offset),
                             shape=(len(offset) - 1, columns))


def ids(name):
    lines = (DATA / name).read_text().splitlines()[1:]
    return [line.split("\t")[1] for line in lines]


users, items = ids("users.tsv"), ids("items.tsv")
row_of, item_of = {u: i for i, u in enumerate(users)}, {v: i for i, v in enumerate(items)}
right = matrix("right", len(items))
left = matrix("left", right.shape[0])
has_factors = (EXPORT / "target_user_factors.npy").exists()
user_factors = read("user_factors") if has_factors else None
item_factors = read("item_factors") if has_factors else None
known = [[] for _ in users]
for split in ("train", "valid"):
    for line in (DATA / f"target.{split}.inter").read_text().splitlines()[1:]:
        user, item = line.split("\t")[:2]
        known[row_of[user]].append(item_of[item])
known = [np.array(k, dtype=np.int64) for k in known]

app = FastAPI()


@app.get("/recommend")
def recommend(user: str, top: int = 10):
    row = row_of.get(user)
    if row is None:
        raise HTTPException(404, "there is no such user")
    scores = (left[row] @ right).toarray()[0]
    if has_factors:
        scores += item_factors @ user_factors[row]
    scores[known[row]] = -np.inf
    best = np.argpartition(-scores, top)[:top]
    best = best[np.lexsort((best, -scores[best]))]
    answer = {"user": user, "known": len(known[row]),
              "items": [{"rank": i + 1, "item": items[v], "score": float(scores[v])}
                        for i, v in enumerate(best)]}
    return Response(orjson.dumps(answer), media_type="application/json")
