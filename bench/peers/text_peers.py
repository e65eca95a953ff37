"""Tokenizers and sentence splitter beside PyPI tokenizers and spaCy, one thread, timed in turn.

    python3 bench/peers/text_peers.py build/cpu/cfaa_gpu [--rounds 5]

Both sides work on the same review texts, already in memory; starting, loading and reading are in
neither time. Ours is `cfaa_gpu tokenize|sentences --time`, theirs encode_batch (and its variant
without offsets, encode_batch_fast) and nlp.pipe with the sentences read off. The fastest round of
processor time counts, which other work on the machine disturbs least. The numbers of tokens and
sentences of both sides must agree, else the table says so and the exit code is 1.
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

os.environ["TOKENIZERS_PARALLELISM"] = "false"

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program")
parser.add_argument("--fixtures", type=pathlib.Path, default=os.environ.get("CFAA_FIXTURES"),
                    required="CFAA_FIXTURES" not in os.environ)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--reviews", type=int, default=4000, help="how many reviews the peers get")
options = parser.parse_args()

import spacy  # noqa: E402
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer  # noqa: E402

reviews = []
for path in sorted((options.fixtures / "data/amazon").glob("*.json.gz")):
    with gzip.open(path, "rt") as lines:
        reviews += [json.loads(line).get("reviewText", "") for line in lines]
reviews = reviews[:: max(1, len(reviews) // options.reviews)]
nlp = spacy.blank("en")
nlp.add_pipe("sentencizer")
sentences = [s.text for doc in nlp.pipe(reviews) for s in doc.sents]


def ours(arguments, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")
        file.flush()
        done = subprocess.run([options.program, *arguments, "--format", "json", "--time",
                               str(options.rounds * 4), file.name], capture_output=True, check=True)
    return json.loads(done.stdout)


def theirs(work):
    """Seconds of the fastest round, and what the work counted."""
    best = float("inf")
    for _ in range(options.rounds):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


wrong = False
print(f"{len(reviews)} reviews, {len(sentences)} sentences; one thread, MB/s of processor time\n")
print(f"{'':34}{'cfaa_gpu':>10}{'peer':>10}{'ratio':>9}")


def row(title, mine, unit, peer):
    global wrong
    seconds, count = peer
    megabytes = mine["bytes"] / 1e6
    agree = mine[unit] == count
    wrong = wrong or not agree
    print(f"{title:34}{megabytes / mine['cpu_seconds']:10.1f}{megabytes / seconds:10.2f}"
          f"{seconds / mine['cpu_seconds']:8.1f}x" + ("" if agree else "   results differ"))


def spacy_sentences():
    # As in daily use: spaCy keeps its cache of words between texts.
    return sum(1 for doc in nlp.pipe(reviews) for _ in doc.sents)


vocabularies = options.fixtures / "tokenizers"
bert = BertWordPieceTokenizer(str(vocabularies / "bert-base-uncased/vocab.txt"))._tokenizer
folder = vocabularies / "roberta-base"
roberta = ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))._tokenizer
for title, model, tokenizer, special in (("WordPiece", "bert-base-uncased", bert, 0),
                                         ("byte BPE", "roberta-base", roberta, 2)):
    mine = ours(["tokenize", "--model", str(vocabularies / model), "--special", "parity"], sentences)
    for name, encode in (("encode_batch", tokenizer.encode_batch),
                         ("encode_batch_fast", tokenizer.encode_batch_fast)):
        # This peer adds no <s> and </s>; ours does, two a text.
        row(f"{title} / {name}", mine, "tokens",
            theirs(lambda: sum(len(e.ids) for e in encode(sentences)) + special * len(sentences)))
row("sentences / spaCy sentencizer", ours(["sentences", "--lang", "en"], reviews), "sentences",
    theirs(spacy_sentences))
sys.exit(wrong)
