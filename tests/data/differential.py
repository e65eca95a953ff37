"""Differential fuzzing of the readers against Python's own parsers.

    python differential.py PROGRAM [LINES [SEED]]

Generated and then damaged lines go through `PROGRAM prepare`: Python literals against
ast.literal_eval, JSON lines against json.loads. What the program accepts, Python must accept with
the same user, item, rating, time and text; what Python accepts, the program must, but for what its
documentation says it refuses. Exit 1 and the line where they differ.
"""
import ast
import collections
import io
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import tokenize
import warnings

warnings.simplefilter("ignore")
WORDS = ["good", "it's", 'say "hi"', "\\", "\n", "\t", "\x07", "\x00", "é", "日本", "😀", "\u2028",
         "", " ", "#", "{", "}", ",", ":", "'", '"', "\\u0041", "\\x41", "None", "\x7f", "\ufeff"]


def text(rng):
    return "".join(rng.choice(WORDS) for _ in range(rng.randrange(8)))


def value(rng, depth=0):
    kind = rng.randrange(10 if depth < 3 else 7)
    if kind < 3:
        return text(rng)
    if kind == 3:
        return rng.choice([0, -1, 17, 10 ** 18, -10 ** 18])
    if kind == 4:
        return rng.choice([0.5, -2.5e-7, 1e22, 3.0, 1e-320])
    if kind == 5:
        return rng.choice([True, False])
    if kind == 6:
        return None
    return [value(rng, depth + 1) for _ in range(rng.randrange(4))] if kind < 9 else {
        text(rng): value(rng, depth + 1) for _ in range(rng.randrange(3))}


def review(rng, n):
    fields = [("reviewerID", f"u{n}"), ("asin", rng.choice([f"i{n}", n])),
              ("overall", rng.choice([1.0, 2, 5.0, "4", 3.5])), ("reviewText", text(rng)),
              ("unixReviewTime", rng.choice([1300000000, 1300000000.5, None, "1300000001"]))]
    fields += [("x" + str(i), value(rng)) for i in range(rng.randrange(3))]
    rng.shuffle(fields)
    return dict(fields)


def python_text(rng, s):
    """A Python literal of s in one of the many spellings."""
    quote = rng.choice("'\"")
    out = rng.choice(["", "", "", "u"]) + quote
    for c in s:
        code = ord(c)
        style = rng.randrange(6)
        if c in ("\\", quote):
            out += "\\" + c
        elif code < 32:
            out += rng.choice([f"\\x{code:02x}", f"\\{code:03o}", f"\\u{code:04x}"])
        elif style == 0 and code < 256:
            out += f"\\x{code:02X}"
        elif style == 1 and code < 0x10000:
            out += f"\\u{code:04x}"
        elif style == 2:
            out += f"\\U{code:08x}"
        else:
            out += c
    return out + quote


def python_literal(rng, v):
    space = lambda: rng.choice(["", "", " ", "\t"])
    if isinstance(v, str):
        return python_text(rng, v)
    if isinstance(v, dict):
        inner = ("," + space()).join(
            python_literal(rng, k) + space() + ":" + space() + python_literal(rng, x)
            for k, x in v.items())
        return "{" + space() + inner + (rng.choice(["", ","]) if v else "") + space() + "}"
    if isinstance(v, list):
        inner = ("," + space()).join(python_literal(rng, x) for x in v)
        if rng.randrange(3) == 0:
            return "(" + inner + ("," if len(v) == 1 or (v and rng.randrange(2)) else "") + ")"
        return "[" + inner + (rng.choice(["", ","]) if v else "") + space() + "]"
    return repr(v)


def damaged(rng, line):
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(line) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            line = line[:at] + rng.choice("'\"\\{}[](),:0.eu-bxN \t") + line[at:]
        elif kind == 1:
            line = line[:at] + line[at + rng.randrange(1, 5):]
        elif kind == 2 and at < len(line):
            line = line[:at] + chr(rng.choice([0, 9, 34, 39, 92, 117, 255, 0x20ac])) + line[at + 1:]
        else:
            other = rng.randrange(len(line) + 1)
            line = line[:at] + line[other:other + 6] + line[at:]
    return line.replace("\n", " ").replace("\r", " ")


def number(v):
    if v is None:
        return math.nan
    if isinstance(v, bool) or not isinstance(v, (int, float, str)):
        raise ValueError
    if isinstance(v, str):
        if not re.fullmatch(r" *-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", v):
            raise ValueError
    v = float(v)
    if math.isinf(v) or math.isnan(v):
        raise ValueError
    return v


def identifier(v):
    if v is None:
        return ""
    if isinstance(v, bool) or not isinstance(v, (int, str)):
        raise ValueError
    return str(v)


def expected(record):
    """The review that a parsed record is, or None where prepare has to refuse it."""
    try:
        if not isinstance(record, dict):
            return None
        user, item = identifier(record.get("reviewerID")), identifier(record.get("asin"))
        rating, when = number(record.get("overall")), number(record.get("unixReviewTime"))
        body = record.get("reviewText")
        if body is not None and not isinstance(body, str):
            return None
        for s in (user, item):
            if not s or len(s.encode()) > 1024 or re.search(r'[\x00-\x1f"\x7f]', s):
                return None
        (body or "").encode()
        if not 1 <= rating <= 5:
            return None
        if not math.isnan(when):
            if when < 0:
                return None
            when = when if when >= 1e11 else when * 1000
            if when > 1.9e12:
                return None
            when = math.floor(when + 0.5)
        else:
            when = 0
        return user, item, struct.unpack("<f", struct.pack("<f", rating))[0], when, body or ""
    except (ValueError, UnicodeEncodeError, OverflowError):
        return None


def by_literal_eval(line):
    try:
        # A byte order mark or a leading blank is Python's syntax, not the literal's.
        record = ast.literal_eval(line.strip(" \t\f"))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return "refused", None
    return "read", record


def out_of_scope(line):
    """What python_literal.h says it refuses although Python takes it."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(line.strip(" \t\f")).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return True
    before = None
    for t in tokens:
        if t.type == tokenize.COMMENT:
            return True
        if t.type == tokenize.NUMBER and not re.fullmatch(
                r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", t.string):
            return True
        if t.type == tokenize.STRING:
            if before == tokenize.STRING or not re.match(r"[uU]?('|\")", t.string):
                return True
            if "\\N" in t.string or re.match(r"[uU]?('''|\"\"\")", t.string):
                return True
            if re.search(r"\\[uU](0000)?[dD][89a-fA-F]", t.string):
                return True  # surrogates: a pair is one character here, two in Python
        before = t.type
    # Sets, sums (1+2j) and containers as keys.
    for node in ast.walk(ast.parse(line.strip(" \t\f"), mode="eval")):
        if isinstance(node, (ast.Set, ast.BinOp, ast.Call)):
            return True
        if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            return True
        if isinstance(node, ast.Dict) and not all(
                isinstance(k, (ast.Constant, ast.UnaryOp)) for k in node.keys):
            return True
        if isinstance(node, ast.Tuple) and not line.strip(" \t\f").startswith(("(", "{", "[")):
            return True
    return False


def by_json(line):
    def refuse(_):
        raise ValueError
    try:
        return "read", json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError):
        return "refused", None


def json_out_of_scope(line):
    # simdjson refuses whole numbers past 64 bits, numbers past a double, and half surrogate pairs
    # anywhere in the line.
    return bool(re.search(r"\d{19}|[eE]\+?\d{3}|\\u[dD][89a-fA-F]", line))


def run(program, lines):
    with tempfile.TemporaryDirectory() as folder:
        raw, other, out = (os.path.join(folder, n) for n in ("raw", "other", "out"))
        with open(raw, "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(lines) + "\n")
        with open(other, "w") as file:
            file.write('{"reviewerID": "o", "asin": "o", "overall": 5}\n')
        done = subprocess.run(
            [program, "prepare", "--source", raw, "--target", other, "--out", out, "--json",
             "--skip-bad", str(len(lines)), "--source-core", "1", "--target-core", "1",
             "--split-ratio", "1:0:0", "--overlap", "separate"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr[-2000:])
        bad = {b["line"]: b["reason"] for b in json.loads(done.stdout)["inputs"]["source"]["bad_lines"]}
        inter = open(out + "/source/source.train.inter", encoding="utf-8").read().split("\n")[1:-1]
        blob = open(out + "/source/source.train.text", "rb").read()
        count = struct.unpack_from("<Q", blob, 8)[0]
        offsets = struct.unpack_from(f"<{count + 1}Q", blob, 32)
        base = 32 + 8 * (count + 1)
        found = {}
        for i, row in enumerate(inter):
            user, item, rating, _, when = row.split("\t")
            body = blob[base + offsets[i]:base + offsets[i + 1]].decode()
            found[user, item] = (user, item, struct.unpack("<f", struct.pack("<f", float(rating)))[0],
                                 round(float(when) * 1000), body)
        return bad, found


def check(program, kind, lines, parse, beyond):
    bad, found = run(program, lines)
    results = [parse(line) for line in lines]
    pairs = collections.Counter()
    reviews = []
    for status, record in results:
        r = expected(record) if status == "read" else None
        reviews.append(r)
        if r:
            pairs[r[0], r[1]] += 1
    accepted = refused = 0
    for n, (line, r) in enumerate(zip(lines, reviews), 1):
        if not line.strip(" \t\r"):
            continue
        if n in bad:
            refused += 1
            if r is not None and not beyond(line):
                sys.exit(f"{kind}: refused ({bad[n]}), but Python reads it:\n{line!r}")
            continue
        accepted += 1
        if r is None:
            if results[n - 1][0] == "read" and beyond(line):
                continue
            sys.exit(f"{kind}: accepted, but Python does not read it as a review:\n{line!r}")
        if pairs[r[0], r[1]] == 1 and found.get((r[0], r[1])) != r and not beyond(line):
            sys.exit(f"{kind}: read as {found.get((r[0], r[1]))!r}, Python says {r!r}:\n{line!r}")
    print(f"{kind}: {len(lines)} lines, {accepted} accepted by both, {refused} refused; no difference")


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    literal, strict = [], []
    for n in range(count):
        line = python_literal(rng, review(rng, n)).replace("\n", " ")
        literal.append(damaged(rng, line) if n and rng.randrange(2) else line)
        line = json.dumps(review(rng, n), ensure_ascii=rng.randrange(2) == 0)
        strict.append(damaged(rng, line) if n and rng.randrange(2) else line)
    first = {"reviewerID": "u0", "asin": "i0", "overall": 5.0}
    literal[0], strict[0] = repr(first), json.dumps(first)
    check(program, "literals", literal, by_literal_eval, out_of_scope)
    check(program, "JSON", strict, by_json, json_out_of_scope)


main()
