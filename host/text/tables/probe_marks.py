"""Asks PyPI `tokenizers` for what bert_chars.json does not say, and writes bert_marks.json.

  strip_accents   what strip_accents alone (without lower-casing) makes of a code point
  classes         canonical combining class of every mark that survives strip_accents: two of them
                  in a row are put into canonical order by the decomposition before it
  breaks          dropped marks of class 0: they separate runs that would be reordered

Run only when the reference changes: python3 probe_marks.py (needs tokenizers 0.23.3).
"""
import json
import pathlib
import unicodedata

import tokenizers
from tokenizers.normalizers import NFD, BertNormalizer

strip = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True,
                       lowercase=False)
nfd = NFD()
# One well-known mark for each combining class, to compare an unknown one with.
yardstick = {}
for cp in range(0x110000):
    ccc = unicodedata.combining(chr(cp))
    if ccc and ccc not in yardstick and cp < 0x3100 and unicodedata.decomposition(chr(cp)) == "":
        yardstick[ccc] = chr(cp)
ladder = sorted(yardstick)


def moves_before(mark, other):
    """True if canonical ordering puts `mark` in front of `other` in "other mark"."""
    return nfd.normalize_str("a" + other + mark) == "a" + mark + other


def combining_class(ch):
    """The class as the library sees it: found with marks of known class, 0 for a starter."""
    behind = [c for c in ladder if moves_before(yardstick[c], ch)]  # those below ours move before us
    before = [c for c in ladder if moves_before(ch, yardstick[c])]  # we move before those above ours
    if not behind and not before:
        return 0
    low, high = max(behind, default=0), min(before, default=255)
    between = [c for c in ladder if low < c < high]
    return between[0] if between else (low + high) // 2


mapped, classes, breaks = {}, {}, []
for cp in range(0x110000):
    if 0xD800 <= cp < 0xE000 or 0xAC00 <= cp <= 0xD7A3:
        continue
    ch = chr(cp)
    out = strip.normalize_str(ch)
    if out != ch:
        mapped[f"{cp:X}"] = out
    whole = nfd.normalize_str(ch)
    if out == ch == whole:
        ccc = combining_class(ch)
        if ccc:
            classes[f"{cp:X}"] = ccc
    elif out == "" and whole == ch and combining_class(ch) == 0:
        breaks.append(cp)
ranges = []
for cp in breaks:
    if ranges and ranges[-1][1] == cp - 1:
        ranges[-1][1] = cp
    else:
        ranges.append([cp, cp])
pathlib.Path(__file__).with_name("bert_marks.json").write_text(json.dumps(
    {"tokenizers": tokenizers.__version__, "strip_accents": mapped, "classes": classes,
     "breaks": ranges}, indent=0) + "\n")
print(len(mapped), "mapped,", len(classes), "classes,", len(breaks), "breaks")
