"""Writes a model directory with random weights of a given size, to measure time and memory without
downloading anything.

    python3 bench/peers/random_encoder.py build/models/roberta-large-shaped \
        --family roberta --layers 24 --hidden 1024 --heads 16 --vocabulary 50265 \
        [--tokenizer DIR]

The tokenizer's files are copied from another model's folder. Needs numpy.
"""
import argparse
import json
import pathlib
import shutil
import struct

import numpy

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--family", choices=("bert", "roberta"), default="roberta")
parser.add_argument("--layers", type=int, default=24)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--heads", type=int, default=16)
parser.add_argument("--vocabulary", type=int, default=50265)
parser.add_argument("--tokenizer", type=pathlib.Path)
options = parser.parse_args()

hidden, wide = options.hidden, 4 * options.hidden
roberta = options.family == "roberta"
positions, types = (514, 1) if roberta else (512, 2)

shapes = {"embeddings.word_embeddings.weight": (options.vocabulary, hidden),
          "embeddings.position_embeddings.weight": (positions, hidden),
          "embeddings.token_type_embeddings.weight": (types, hidden)}


def norm(name):
    shapes[name + ".weight"] = shapes[name + ".bias"] = (hidden,)


def linear(name, out, inner):
    shapes[name + ".weight"], shapes[name + ".bias"] = (out, inner), (out,)


norm("embeddings.LayerNorm")
for layer in range(options.layers):
    block = f"encoder.layer.{layer}"
    for part in ("query", "key", "value"):
        linear(f"{block}.attention.self.{part}", hidden, hidden)
    linear(f"{block}.attention.output.dense", hidden, hidden)
    norm(f"{block}.attention.output.LayerNorm")
    linear(f"{block}.intermediate.dense", wide, hidden)
    linear(f"{block}.output.dense", hidden, wide)
    norm(f"{block}.output.LayerNorm")

header, at = {}, 0
for name, shape in shapes.items():
    end = at + 4 * int(numpy.prod(shape))
    header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, end]}
    at = end
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)

options.folder.mkdir(parents=True, exist_ok=True)
random = numpy.random.default_rng(1)
with open(options.folder / "model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for name, shape in shapes.items():
        values = random.standard_normal(shape, dtype=numpy.float32) * numpy.float32(0.02)
        if name.endswith("LayerNorm.weight"):
            values += 1
        file.write(values.tobytes())
config = {"model_type": options.family, "hidden_size": hidden, "num_hidden_layers": options.layers,
          "num_attention_heads": options.heads, "intermediate_size": wide,
          "vocab_size": options.vocabulary, "max_position_embeddings": positions,
          "type_vocab_size": types, "pad_token_id": 1 if roberta else 0,
          "layer_norm_eps": 1e-5 if roberta else 1e-12, "hidden_act": "gelu"}
(options.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
if options.tokenizer:
    for name in ("vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json"):
        if (options.tokenizer / name).exists():
            shutil.copy(options.tokenizer / name, options.folder / name)
print(f"{options.folder}: {at / 1e9:.2f} GB of weights")
