"""Makes the small golden data of this folder with the Python references.

    python3 tests/data/text/make.py ../shared        (tokenizers 0.23.3)

  bert/ roberta/   tiny vocabularies, and tokenizer.json of the same in bert_json/ roberta_json/
  tokens.*.jsonl   {"text", "ids", "ids_plain", "tokens"}: literals of special tokens as tokens / as text
  sentences.*.jsonl  some lines of ../shared/fixtures/text, which spaCy 3.8.18 made
"""
import json
import pathlib
import random
import sys

from tokenizers import (AddedToken, BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer, models,
                        pre_tokenizers, processors)

here = pathlib.Path(__file__).parent
shared = pathlib.Path(sys.argv[1])
rng = random.Random(5)


def lines(name):
    return [json.loads(line) for line in (shared / "fixtures/text" / name).read_text().splitlines()]


def write(name, rows):
    (here / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


for language, count in (("en", 20), ("zh", 12)):
    rows = lines(f"sentences.{language}.jsonl")
    write(f"sentences.{language}.jsonl",
          [row for kind in ("review", "nasty", "fuzz") for row in
           rng.sample([r for r in rows if r["kind"] == kind and len(r["text"]) < 400], count)])

texts = [row["text"] for row in lines("bert-base-uncased.jsonl")]
reviews, strange = texts[:1500], texts[1520:]
golden = rng.sample(reviews, 25) + rng.sample([t for t in strange if len(t) < 200], 110)
golden += [row["text"] for row in lines("bert-base-uncased.special_literals.jsonl")]
golden += [row["text"] for row in lines("roberta-base.special_literals.jsonl")]
golden += ["\u1b44\u1d165 \U0001d16d\U0001d165 \u302e\u1b44a", "각 Ångström İ ß ﬁ 豈"]

special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()] + list("éß中文字的αя") + [
    "\u1100", "\u1161", "\u1b44"]
wholes = sorted({w for t in reviews[:200] for w in t.lower().split() if w.isalpha() and len(w) < 8})
parts = ["##" + s for s in ["s", "ing", "ed", "er", "ly", "e", "a", "t", "n", "o", "i", "ion", "\u1161",
                            "\u11a8", "\u302e", "\U0001d165", "\U0001d16d", "\u1b44"]]
(here / "bert").mkdir(exist_ok=True)
(here / "bert/vocab.txt").write_text("\n".join(special + letters + wholes[:250] + parts) + "\n")
bert = BertWordPieceTokenizer(str(here / "bert/vocab.txt"))._tokenizer

(here / "roberta").mkdir(exist_ok=True)
trained = ByteLevelBPETokenizer()
trained.train_from_iterator(reviews, vocab_size=700, min_frequency=2, show_progress=False,
                            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
trained.save_model(str(here / "roberta"))
roberta = Tokenizer(models.BPE.from_file(str(here / "roberta/vocab.json"),
                                         str(here / "roberta/merges.txt")))
roberta.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
roberta.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
roberta.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])

for name, tokenizer in (("bert", bert), ("roberta", roberta)):
    (here / f"{name}_json").mkdir(exist_ok=True)
    tokenizer.save(str(here / f"{name}_json/tokenizer.json"), pretty=False)
    rows = []
    for text in golden:
        tokenizer.encode_special_tokens = False
        encoded = tokenizer.encode(text)
        tokenizer.encode_special_tokens = True
        rows.append({"text": text, "ids": encoded.ids, "ids_plain": tokenizer.encode(text).ids,
                     "tokens": encoded.tokens})
    write(f"tokens.{name}.jsonl", rows)
