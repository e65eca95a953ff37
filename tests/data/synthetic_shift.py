"""How far apart the two synthetic domains lie under a real sentence encoder.

    python synthetic_shift.py MODEL_DIR raw/ [REVIEWS]

MODEL_DIR: a BERT model directory (config.json, model.safetensors, vocab.txt), say all-MiniLM-L6-v2.
Needs numpy, torch and tokenizers. As `embed` does, a sentence is the mean of the penultimate
layer's tokens, and a review, a user or an item the mean of its sentences. Printed for reviews,
users and items: |mean_source - mean_target| over the within-domain spread, which is the root mean
square distance of the vectors from their domain's mean, averaged (as squares) over both domains.
"""
import json
import math
import re
import sys

import numpy
import torch
from tokenizers import BertWordPieceTokenizer


def load_safetensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    kinds = {"F32": torch.float32, "F16": torch.float16, "I64": torch.int64}
    return {name: torch.frombuffer(bytearray(data[e["data_offsets"][0]:e["data_offsets"][1]]),
                                   dtype=kinds[e["dtype"]]).reshape(e["shape"])
            for name, e in header.items() if name != "__metadata__"}


class Encoder:
    def __init__(self, folder):
        self.config = json.load(open(folder + "/config.json"))
        self.w = load_safetensors(folder + "/model.safetensors")
        self.tokenizer = BertWordPieceTokenizer(folder + "/vocab.txt", lowercase=True)

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.w[name + ".weight"],
                                              self.w[name + ".bias"], 1e-12)

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    @torch.no_grad()
    def __call__(self, sentences):
        """Penultimate layer, mean over real tokens: (sentences, hidden)."""
        encoded = [self.tokenizer.encode(s).ids[:256] for s in sentences]
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
        result = numpy.zeros((len(encoded), self.config["hidden_size"]), dtype=numpy.float32)
        for start in range(0, len(order), 256):
            batch = order[start:start + 256]
            result[batch] = self.forward([encoded[i] for i in batch]).numpy()
        return result

    def forward(self, rows):
        length = max(map(len, rows))
        ids = torch.tensor([r + [0] * (length - len(r)) for r in rows])
        real = torch.tensor([[1.0] * len(r) + [0.0] * (length - len(r)) for r in rows])
        x = (self.w["embeddings.word_embeddings.weight"][ids]
             + self.w["embeddings.position_embeddings.weight"][:length]
             + self.w["embeddings.token_type_embeddings.weight"][0])
        x = self.norm(x, "embeddings.LayerNorm")
        heads = self.config["num_attention_heads"]
        for layer in range(self.config["num_hidden_layers"] - 1):
            p = f"encoder.layer.{layer}."
            split = lambda y: y.reshape(*y.shape[:2], heads, -1).transpose(1, 2)
            q, k, v = (split(self.linear(x, p + "attention.self." + n))
                       for n in ("query", "key", "value"))
            scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
            scores = scores + (1 - real)[:, None, None, :] * -1e9
            mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
            x = self.norm(x + self.linear(mixed, p + "attention.output.dense"),
                          p + "attention.output.LayerNorm")
            h = torch.nn.functional.gelu(self.linear(x, p + "intermediate.dense"))
            x = self.norm(x + self.linear(h, p + "output.dense"), p + "output.LayerNorm")
        return (x * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


def domain_vectors(encoder, path, count):
    reviews = [json.loads(line) for line, _ in zip(open(path), range(count))]
    sentences, owner = [], []
    for i, review in enumerate(reviews):
        for sentence in re.findall(r"[^.]+\.", review["text"]):
            sentences.append(sentence.strip())
            owner.append(i)
    unique = sorted(set(sentences))
    vectors = dict(zip(unique, encoder(unique)))
    rows = numpy.array([vectors[s] for s in sentences])

    def mean_by(keys):
        names = sorted(set(keys))
        index = {n: i for i, n in enumerate(names)}
        at = numpy.array([index[k] for k in keys])
        total = numpy.zeros((len(names), rows.shape[1]))
        numpy.add.at(total, at, rows)
        return total / numpy.bincount(at)[:, None]

    return {"reviews": mean_by(owner),
            "users": mean_by([reviews[i]["user_id"] for i in owner]),
            "items": mean_by([reviews[i]["parent_asin"] for i in owner])}


def main():
    encoder = Encoder(sys.argv[1])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1500
    source = domain_vectors(encoder, sys.argv[2] + "/source.jsonl", count)
    target = domain_vectors(encoder, sys.argv[2] + "/target.jsonl", count)
    for what in source:
        s, t = source[what], target[what]
        gap = numpy.linalg.norm(s.mean(0) - t.mean(0))
        spread = math.sqrt((((s - s.mean(0)) ** 2).sum(1).mean()
                            + ((t - t.mean(0)) ** 2).sum(1).mean()) / 2)
        print(f"{what:8} gap {gap:.3f}  spread {spread:.3f}  ratio {gap / spread:.2f}")


main()
