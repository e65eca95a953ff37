"""Compares `cfaa_gpu tokenize` and `cfaa_gpu sentences` with the Python references on random text.

    python3 tests/text/fuzz_reference.py --program build/cpu/cfaa_gpu \\
        [--count 20000] [--seed 1] [--only wordpiece|bpe|config|sentences]

Needs PyPI tokenizers 0.23.3 and spacy 3.8. `--count` strings of each kind: random Unicode,
combining marks and Hangul, punctuation soup, glued fragments of reviews, what the URL and merge
rules look at, whole reviews (all as JSON lines), and random bytes (as raw lines, to be read as
decode(errors="replace") reads them). Prints totals and differences; exits 1 if there is any
difference.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--fixtures", type=pathlib.Path, default=os.environ.get("CFAA_FIXTURES"),
                    required="CFAA_FIXTURES" not in os.environ)
parser.add_argument("--count", type=int, default=20000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", choices=["wordpiece", "bpe", "config", "sentences"])
options = parser.parse_args()
rng = random.Random(options.seed)
rules = json.loads((options.fixtures / "fixtures/text/spacy_en_rules.json").read_text())
marks = json.loads((pathlib.Path(__file__).parents[2] /
                    "host/text/tables/bert_marks.json").read_text())


def reviews():
    texts = []
    for path in sorted((options.fixtures / "data/amazon").glob("*.json.gz")):
        with gzip.open(path, "rt") as lines:
            texts += [json.loads(line).get("reviewText", "") for line in lines]
    return texts


all_reviews = reviews()
words = [w for text in rng.sample(all_reviews, 3000) for w in text.split()]
specials = list(rules["special_cases"])
literals = ["[SEP]", "[CLS]", "[UNK]", "[MASK]", "[PAD]", "<s>", "</s>", "<mask>", "<pad>", "<unk>"]
glue = [" ", " ", " ", "", "", "  ", "\n", ".", ". ", "! ", "? ", "...", "…", "……", ", ", "-", "--",
        "/", ":", "'", '"', "(", ")", "’s", "'s", "$", "US$", "%", "km", "m.", "°C.", "\t", "\u00a0",
        "\u3000", "@", "://", "www.", ".com", "1.2.3.4", "10.0.0.1", ":80", "+", "~", "*", "^", "=",
        "😀", "。", "！", "_", "#", "a.", "I", "|", "²", "»", "«", "“", "”", "=", "<", ">", "\u2028"]
ranges = [(0x20, 0x7E), (0x80, 0x24F), (0x250, 0x6FF), (0x900, 0xE7F), (0x1E00, 0x2BFF),
          (0x2E80, 0x33FF), (0x3400, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3), (0xE000, 0xFFFF),
          (0x10000, 0x1FFFF), (0x20000, 0x323AF), (0xE0000, 0x10FFFF), (0, 0x1F)]
special_marks = [chr(int(cp, 16)) for cp in marks["classes"]]
dropped_marks = [chr(a) for a, _ in marks["breaks"]] + [chr(c) for c in range(0x300, 0x370)]


def code_point(low, high):
    while True:
        cp = rng.randint(low, high)
        if not 0xD800 <= cp < 0xE000:
            return chr(cp)


def unicode_text():
    pool = rng.sample(ranges, rng.randint(1, 4)) + [(0x20, 0x7E)]
    return "".join(code_point(*rng.choice(pool)) for _ in range(rng.randint(0, 60)))


def marks_text():
    kinds = [lambda: rng.choice(special_marks), lambda: rng.choice(dropped_marks),
             lambda: code_point(0xAC00, 0xD7A3), lambda: rng.choice("aAeéÅñ가İß \u0344\u1D15F"),
             lambda: chr(rng.choice([0x1D15F, 0x1D160, 0x1D1BB, 0xF900, 0x2F800, 0x212B, 0x200B]))]
    return "".join(rng.choice(kinds)() for _ in range(rng.randint(1, 25)))


soup = ".,!?'\"()[]{}<>:;-_/\\@#$%^&*+=|~` \t0123456789aAbBkKmMsSdDoOxX.....   ’“”…—–°²€£。！？"


def soup_text():
    return "".join(rng.choice(soup) for _ in range(rng.randint(0, 40)))


def glued_text():
    parts = []
    for _ in range(rng.randint(1, 25)):
        kind = rng.random()
        parts.append(rng.choice(words) if kind < 0.55 else rng.choice(glue) if kind < 0.85 else
                     rng.choice(specials) if kind < 0.95 else rng.choice(literals))
        parts.append(rng.choice([" ", " ", ""]))
    return "".join(parts)


def byte_line():
    size = rng.randint(0, 60)
    if rng.random() < 0.5:
        raw = bytes(rng.randrange(256) for _ in range(size))
    else:  # good UTF-8 with a few bytes damaged
        raw = bytearray(unicode_text().encode())
        for _ in range(rng.randint(0, 4)):
            if raw:
                raw[rng.randrange(len(raw))] = rng.randrange(256)
        raw = bytes(raw)
    return raw.replace(b"\n", b" ").rstrip(b"\r")


url_parts = ["a", "ab", "Abc", "com", "x1", "中", "文字", "é", "ß", "É", "٣", "1", "10", "127", "172", "16",
             "192", "168", "223", "224", "254", "255", "08", "http", "f+t-p.", "_", "-", ":", ":80",
             ":8", "://", "/", "?", "#", "@", ".", ".", ".", ".", "..", "b.C", "/x.Y", "'", '"', "!",
             "\u00a1", "\uffff", "\U00020000", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
merge_parts = [token for m in rules["merge_sequences"] for token in m["tokens"]] + [
    ".", ".", "!", "x", "X", "word", "-", "/", "5"]


def url_text():
    return " ".join("".join(rng.choice(url_parts) for _ in range(rng.randint(1, 12)))
                    for _ in range(rng.randint(1, 4)))


def merge_text():
    return "".join(rng.choice(merge_parts) + rng.choice(["", "", "", " "])
                   for _ in range(rng.randint(1, 16)))


kinds = {"unicode": unicode_text, "marks": marks_text, "soup": soup_text, "glued": glued_text,
         "urls": url_text, "merges": merge_text}
texts = {name: [make() for _ in range(options.count)] for name, make in kinds.items()}
texts["reviews"] = rng.sample(all_reviews, min(options.count, len(all_reviews)))
byte_lines = [byte_line() for _ in range(options.count)]
differences = total = 0


def run(arguments, data, format_flag):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run([options.program, *arguments, "--json", "--format", format_flag,
                               file.name], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def compare(title, arguments, key, expect):
    """`expect` maps a list of texts to their expected values."""
    global differences, total
    for name, group in list(texts.items()) + [("bytes", None)]:
        if group is None:
            got = run(arguments, b"".join(line + b"\n" for line in byte_lines), "plain")
            group = [line.decode(errors="replace") for line in byte_lines]
        else:
            got = run(arguments, "".join(json.dumps({"text": t}) + "\n" for t in group).encode(),
                      "json")
        wanted = expect(group)
        assert len(got) == len(wanted), (title, name, len(got), len(wanted))
        wrong = [i for i in range(len(group)) if got[i][key] != wanted[i]]
        total += len(group)
        differences += len(wrong)
        print(f"{title:44} {name:8} {len(group):8} strings {len(wrong):6} differ", flush=True)
        for i in wrong[:3]:
            print("   ", ascii(group[i]), "\n      wanted", wanted[i], "\n      got   ", got[i][key])


def ids_of(tokenizer):
    return lambda group: [e.ids for e in tokenizer.encode_batch(group)]


vocabularies = options.fixtures / "tokenizers"


def bert(model, **settings):
    from tokenizers import BertWordPieceTokenizer
    return BertWordPieceTokenizer(str(vocabularies / model / "vocab.txt"), **settings)._tokenizer


def roberta(add_prefix_space=False):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    folder = vocabularies / "roberta-base"
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"),
                                               str(folder / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                            add_prefix_space=add_prefix_space)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>",
                                  AddedToken("<mask>", lstrip=True)])
    return tokenizer


def tokenizer_case(title, tokenizer, arguments):
    for special in ("parity", "plain"):
        tokenizer.encode_special_tokens = special == "plain"
        compare(f"{title} {special}", ["tokenize", *arguments, "--special", special], "ids",
                ids_of(tokenizer))


wanted = lambda part: options.only in (None, part)
if wanted("wordpiece"):
    for model, lower in (("bert-base-uncased", True), ("bert-base-chinese", False),
                         ("bert-base-chinese", True)):
        tokenizer_case(f"{model} lower {lower}", bert(model, lowercase=lower),
                       ["--model", str(vocabularies / model), "--lower-case",
                        "on" if lower else "off"])
if wanted("bpe"):
    tokenizer_case("roberta-base", roberta(), ["--model", str(vocabularies / "roberta-base")])
if wanted("config"):  # from a tokenizer.json alone, with every setting of the normaliser
    for bits in range(16):
        settings = dict(lowercase=bool(bits & 1), strip_accents=bool(bits & 2),
                        clean_text=bool(bits & 4), handle_chinese_chars=bool(bits & 8))
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = bert("bert-base-chinese" if bits & 1 else "bert-base-uncased", **settings)
            tokenizer.save(folder + "/tokenizer.json")
            tokenizer_case(f"tokenizer.json {bits:04b}", tokenizer, ["--model", folder])
    for prefix in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = roberta(prefix)
            tokenizer.save(folder + "/tokenizer.json")
            tokenizer_case(f"tokenizer.json roberta, prefix {prefix}", tokenizer,
                           ["--model", folder])
    # Bytes without a token: dropped, unknown, or unknown and fused.
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    for unknown, fuse in ((None, False), ("<unk>", False), ("<unk>", True)):
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=fuse))
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.train_from_iterator(
                [w.lower() for w in words if w.isalpha()][:3000],
                trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"],
                                    show_progress=False))
            tokenizer.save(folder + "/tokenizer.json")
            tokenizer_case(f"tokenizer.json BPE, unknown {unknown} fused {fuse}", tokenizer,
                           ["--model", folder])
if wanted("sentences"):
    import spacy
    for language in ("en", "zh"):
        nlp = spacy.blank(language)
        nlp.add_pipe("sentencizer")
        nlp.max_length = 10 ** 9

        def split(group):
            return [[[s.start_char, s.end_char] for s in doc.sents] for doc in nlp.pipe(group)]

        compare(f"sentences {language}", ["sentences", "--lang", language], "sentences", split)
print(f"{total} strings compared, {differences} differ")
sys.exit(differences > 0)
