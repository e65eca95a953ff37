"""Turns the JSON facts beside this file into the C++ tables that host/text includes.

  bert_chars.json + bert_marks.json   -> bert_tables.inc       what BERT's normaliser does
  bytelevel_chars.json                -> bytelevel_tables.inc  \\p{L}, \\p{N}, \\s of the byte-level regex
  spacy_en_rules.json                 -> sentence_tables.inc   spaCy's tokenizer and sentencizer

Run `python3 generate.py` after changing a JSON file and commit what it writes; `--check` only
compares. \\w and \\d of the URL rule come from this Python, which must have Unicode 14 (3.11), the
version that the rules were measured with.
"""
import json
import pathlib
import sys
import unicodedata

here = pathlib.Path(__file__).parent


def load(name):
    return json.loads((here / name).read_text())


def lines(items, width=98):
    row, rows = "", []
    for item in items:
        if row and len(row) + len(item) + 1 > width:
            rows.append(row)
            row = ""
        row += (" " if row else "") + item
    return "\n".join(rows + [row]) + "\n"


def array(kind, name, items):
    return f"constexpr {kind} {name}[] = {{\n{lines([i + ',' for i in items])}}};\n\n"


def ranges(name, pairs):
    return array("CodePointRange", name, [f"{{0x{a:X},0x{b:X}}}" for a, b in pairs])


def to_ranges(code_points):
    out = []
    for cp in sorted(set(code_points)):
        if out and out[-1][1] == cp - 1:
            out[-1][1] = cp
        else:
            out.append([cp, cp])
    return out


def mapping(name, table):
    """A flat list: code point, number of outputs, outputs."""
    flat = []
    for key, out in sorted(table.items(), key=lambda kv: int(kv[0], 16)):
        flat += [f"0x{key}", str(len(out))] + [f"0x{ord(c):X}" for c in out]
    return array("char32_t", name, flat)


def literal(text):
    """A C++ string literal of the UTF-8 bytes (octal escapes end after three digits)."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}"
                         for b in text.encode()) + '"'


def bert():
    chars, marks = load("bert_chars.json"), load("bert_marks.json")
    lower, strip = chars["lowercase_only"], marks["strip_accents"]
    # One table less to carry: stripping and then lower-casing must give the measured pair.
    for cp in range(0x110000):
        if 0xD800 <= cp < 0xE000 or 0xAC00 <= cp <= 0xD7A3:
            continue
        both = "".join(lower.get(f"{ord(c):X}", c) for c in strip.get(f"{cp:X}", chr(cp)))
        assert both == chars["strip_accents_then_lowercase"].get(f"{cp:X}", chr(cp)), hex(cp)
    out = ""
    for key in ("removed_by_clean_text", "made_space_by_clean_text", "cjk_padded_with_spaces",
                "split_as_punctuation", "split_as_whitespace"):
        out += ranges("k_" + key, chars[key])
    out += ranges("k_marks_that_break_a_run", marks["breaks"])
    out += array("MarkClass", "k_surviving_marks",
                 [f"{{0x{cp},{ccc}}}" for cp, ccc in marks["classes"].items()])
    return out + mapping("k_strip_accents", strip) + mapping("k_lowercase", lower)


def bytelevel():
    chars = load("bytelevel_chars.json")
    return "".join(ranges("k_" + key, chars[key]) for key in ("letter", "number", "space"))


def sentences():
    assert unicodedata.unidata_version == "14.0.0", "needs Python 3.11: see the note at the top"
    rules = load("spacy_en_rules.json")
    singles = lambda key: to_ranges(ord(c) for c in rules[key] if len(c) == 1)
    everything = [chr(cp) for cp in range(0x110000) if not 0xD800 <= cp < 0xE000]
    out = ranges("k_sentence_end", singles("sentence_end_chars"))
    for key in ("punct", "quotes", "currency", "prefixes_single"):
        out += ranges("k_" + key, singles(key))
    for key in ("alpha_lower", "alpha_upper", "alpha", "icons", "whitespace", "is_punct"):
        out += ranges("k_" + key, rules[key])
    out += ranges("k_word", to_ranges(ord(c) for c in everything if c.isalnum() or c == "_"))
    out += ranges("k_decimal", to_ranges(ord(c) for c in everything if c.isdecimal()))
    out += array("char", "k_units[][16]", sorted(map(literal, rules["units"]))).replace("[][16][]",
                                                                                  "[][16]")
    # key, then its tokens, each closed by a newline; an empty line ends the entry. White space
    # keys stand for themselves, and no chunk holds white space, so they are left out.
    special = {k: v for k, v in rules["special_cases"].items() if not k.isspace()}
    assert all("".join(v) == k and "\n" not in k for k, v in special.items())
    out += "constexpr char k_special_cases[] =\n" + "".join(
        "    " +
        literal("\n".join([k] + v) + "\n\n") + "\n" for k, v in sorted(special.items())) + ";\n\n"
    # Sequences of one token change nothing. One that gives back its own tokens can still keep
    # others from applying, but only if it shares a token with them.
    many = [m["tokens"] for m in rules["merge_sequences"] if len(m["tokens"]) > 1]
    changing = [t for t in many if special["".join(t)] != t]
    shared = {token for t in changing for token in t}
    kept = [t for t in many if t in changing or shared & set(t)]
    out += "constexpr char k_merge_sequences[] =\n" + "".join(
        "    " + literal("\n".join(t) + "\n\n") + "\n" for t in kept) + ";\n"
    return out


stale = False
for name, make in (("bert_tables.inc", bert), ("bytelevel_tables.inc", bytelevel),
                   ("sentence_tables.inc", sentences)):
    text = "// Written by generate.py from the JSON files beside it; do not edit.\n\n" + make()
    if "--check" in sys.argv:
        if (here / name).read_text() != text:
            stale = True
            print(f"{name} is not what generate.py writes; run it and commit the result")
    else:
        (here / name).write_text(text)
sys.exit(stale)
