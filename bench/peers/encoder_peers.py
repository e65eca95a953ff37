"""`cfaa_gpu embed` beside sentence-transformers, bare PyTorch and onnxruntime, timed in turn.

    tools/get_model minilm
    bench/peers/encoder_run build/cpu/cfaa_gpu [--sentences 8000]

All sides encode the same distinct sentences of real reviews with the same model, in float32, on the
same number of threads, last layer, pooled and normalised as the model's modules.json says.

  cfaa_gpu embed           reading, tokenizing, engine and writing; the time of the whole process too
  sentence-transformers    encode() as a user calls it, on a list in memory
  PyTorch, onnxruntime     the network alone on ready-made batches: tokens in tensors, sorted by
                           length, padded within a batch; the best of several batch sizes

Vectors are compared before anything is timed: a cosine of 0.99999 or less to encode() is an error
and the exit code 1. Rounds are interleaved, and the fastest of each side counts. The share of the
peak is that of useful operations (real tokens, no padding) in the FMA peak that `cfaa_gpu bench`
measures right before.
"""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program")
parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path("build/models/minilm"))
parser.add_argument("--fixtures", type=pathlib.Path, default=os.environ.get("CFAA_FIXTURES"),
                    required="CFAA_FIXTURES" not in os.environ)
parser.add_argument("--sentences", type=int, default=8000)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--without", default="", help="peers to leave out: torch,onnxruntime")
options = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(options.threads)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "true" if options.threads > 1 else "false"

import numpy  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

torch.set_num_threads(options.threads)
scratch = tempfile.TemporaryDirectory()
folder = pathlib.Path(scratch.name)


def real_sentences():
    reviews = []
    for path in sorted((options.fixtures / "data/amazon").glob("*.json.gz")):
        with gzip.open(path, "rt") as lines:
            reviews += [json.loads(line).get("reviewText", "") for line in lines]
    reviews = reviews[:: max(1, len(reviews) // options.sentences)]
    file = folder / "reviews.jsonl"
    file.write_text("".join(json.dumps({"text": r}) + "\n" for r in reviews))
    done = subprocess.run([options.program, "sentences", "--lang", "en", "--format", "json", "--json",
                           str(file)], capture_output=True, check=True, text=True)
    distinct = {}
    for review, line in zip(reviews, done.stdout.splitlines()):
        for start, end in json.loads(line)["sentences"]:
            text = review[start:end].strip()
            if text:
                distinct[text] = None
    texts = list(distinct)
    return texts[:: max(1, len(texts) // options.sentences)][: options.sentences]


texts = real_sentences()
corpus = folder / "corpus.jsonl"
corpus.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))

library = SentenceTransformer(str(options.model), device="cpu").eval()
network = library[0].auto_model
tokenizer = library.tokenizer
limit = library.max_seq_length
ids = [tokenizer(t, truncation=True, max_length=limit)["input_ids"] for t in texts]
tokens = sum(map(len, ids))
config = network.config
operations = sum(config.num_hidden_layers * len(s) * (
    2 * (4 * config.hidden_size ** 2 + 2 * config.hidden_size * config.intermediate_size)
    + 4 * len(s) * config.hidden_size) for s in ids)


def ready_batches(size):
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for at in range(0, len(order), size):
        rows = [ids[i] for i in order[at:at + size]]
        length = max(map(len, rows))
        batch = numpy.zeros((len(rows), length), numpy.int64)
        mask = numpy.zeros((len(rows), length), numpy.int64)
        for r, row in enumerate(rows):
            batch[r, :len(row)], mask[r, :len(row)] = row, 1
        yield batch, mask


# A child's peak memory counts that of the process it was forked from, so embed is started from a
# small one, which prints the peak to its standard error as its last line.
LAUNCHER = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); "
            "sys.exit(code)")
memory = 0.0  # GB


def ours():
    global memory
    out = folder / "vectors.npy"
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, options.program, "embed", str(corpus), "--model",
         str(options.model), "--as", "sentence-transformers", "--out", str(out), "--threads",
         str(options.threads), "--device", "cpu", "--fresh", "--json"],
        capture_output=True, text=True)
    whole = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    memory = max(memory, int(done.stderr.splitlines()[-1]) / 1e6)
    return json.loads(done.stdout)["seconds"], whole, out


def encode():
    return library.encode(texts, batch_size=32, show_progress_bar=False)


def torch_sides():
    for size in (16, 32, 64):
        batches = [(torch.from_numpy(b), torch.from_numpy(m)) for b, m in ready_batches(size)]

        def run(batches=batches):
            with torch.inference_mode():
                for batch, mask in batches:
                    network(input_ids=batch, attention_mask=mask)

        yield f"PyTorch, ready batches of {size}", run


def onnxruntime_sides():
    import onnxruntime

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, input_ids, attention_mask):
            return self.network(input_ids=input_ids,
                                attention_mask=attention_mask).last_hidden_state

    file = str(folder / "model.onnx")
    example = tuple(torch.ones((2, 9), dtype=torch.int64) for _ in range(2))
    names = ["input_ids", "attention_mask"]
    torch.onnx.export(Hidden().eval(), example, file, input_names=names, output_names=["hidden"],
                      dynamic_axes={n: {0: "b", 1: "s"} for n in names + ["hidden"]}, dynamo=False)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    for size in (16, 32, 64):
        batches = list(ready_batches(size))

        def run(batches=batches):
            for batch, mask in batches:
                session.run(None, {"input_ids": batch, "attention_mask": mask})

        yield f"onnxruntime, ready batches of {size}", run


_, _, out = ours()
mine, theirs = numpy.load(out).astype(numpy.float64), encode().astype(numpy.float64)
cosine = ((mine * theirs).sum(1) / numpy.linalg.norm(mine, axis=1)
          / numpy.linalg.norm(theirs, axis=1)).min()
if not cosine > 0.99999:
    sys.exit(f"the vectors differ: least cosine {cosine}")

sides = {"sentence-transformers encode()": encode}
for name, make in (("torch", torch_sides), ("onnxruntime", onnxruntime_sides)):
    if name in options.without.split(","):
        continue
    try:
        sides.update(make())
    except Exception as problem:  # a peer that cannot be had is left out of the table, visibly
        print(f"{name}: left out: {str(problem).splitlines()[0]}", file=sys.stderr)

peak_file = folder / "peaks.json"
subprocess.run([options.program, "bench", "--quick", "--precision", "float", "--filter", "linear",
                "--device", "cpu", "--threads", str(options.threads), "--out", str(peak_file)],
               capture_output=True, check=True)
peak = json.loads(peak_file.read_text())["peaks"]["flops_float"]

seconds, whole_seconds = float("inf"), float("inf")
best = dict.fromkeys(sides, float("inf"))
for _ in range(options.rounds):
    one, whole, _ = ours()
    seconds, whole_seconds = min(seconds, one), min(whole_seconds, whole)
    for name, run in sides.items():
        start = time.perf_counter()
        run()
        best[name] = min(best[name], time.perf_counter() - start)

print(f"{len(texts)} sentences, {tokens} tokens, {options.threads} threads, float32; least cosine to "
      f"encode() {cosine:.7f}\nFMA peak {1e-9 * peak:.0f} GFLOP/s; embed's peak memory {memory:.2f} GB")
print(f"\n{'':36}{'seconds':>9}{'tokens/s':>11}{'of peak':>9}{'embed is':>10}")
for name, time_of in [("cfaa_gpu embed", seconds), ("cfaa_gpu embed, whole process", whole_seconds),
                      *best.items()]:
    print(f"{name:36}{time_of:9.2f}{tokens / time_of:11.0f}{operations / time_of / peak:8.0%}"
          f"{time_of / seconds:9.2f}x")
