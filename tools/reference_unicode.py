#!/usr/bin/env python3
"""Writes src/tessera/tokenizers/reference_unicode.cpp: where the tables of the `tokenizers` library differ from those
of utf8proc, found by asking both about every code point.

    python tools/reference_unicode.py > src/tessera/tokenizers/reference_unicode.cpp
"""
import ctypes
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers as N, pre_tokenizers as P

CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
library = ctypes.CDLL("libutf8proc.so.2")
library.utf8proc_unicode_version.restype = ctypes.c_char_p
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
ALL = "".join(map(chr, POINTS))
CATEGORY = {c: CATEGORIES[library.utf8proc_category(c)] for c in POINTS}
ASCII_MARKS = {ord(c) for c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"}


def of_categories(names):
    return {c for c in POINTS if any(CATEGORY[c].startswith(name) for name in names.split())}


def found(pattern):
    return set(POINTS) - set(map(ord, N.Replace(Regex(pattern), "").normalize_str(ALL)))


def between(pre_tokenizer, pieces):
    return {c for c in POINTS if len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) == pieces}


def bert(**options):
    chosen = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return N.BertNormalizer(**{**chosen, **options})


def traits():
    clean = bert(clean_text=True)
    accents = bert(strip_accents=True)
    circled = {c for a, b in ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
               for c in range(a, b + 1)}
    yield "kLetter", found(r"\p{L}"), of_categories("L")
    yield "kNumber", found(r"\p{N}"), of_categories("N")
    yield ("kControl", {c for c in POINTS if chr(c) not in "\t\n\r\0\ufffd" and clean.normalize_str(f"a{chr(c)}a") == "aa"} | {0},
           of_categories("Cc Cf Co") - {9, 10, 13})
    yield "kPunctuation", between(P.Punctuation(), 3), of_categories("P") | ASCII_MARKS
    yield "kAccent", {c for c in POINTS if accents.normalize_str(chr(c)) == ""}, of_categories("Mn")
    yield "kMark", set(POINTS) - set(map(ord, N.StripAccents().normalize_str(ALL))), of_categories("M")
    yield "kWord", between(P.Whitespace(), 1), of_categories("L M Nd Nl Pc") | circled | {0x200C, 0x200D}
    yield "kNumeric", between(P.Digits(individual_digits=True), 3), of_categories("N")


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def lower_differences():
    lower = N.Lowercase()
    out = []
    for c in POINTS:
        theirs, ours = lower.normalize_str(chr(c)), "i\u0307" if c == 0x130 else chr(library.utf8proc_tolower(c))
        if theirs == ours:
            continue
        assert len(theirs) == 1, hex(c)
        to = ord(theirs)
        if out and out[-1][1] == c - 1 and to - c == out[-1][2] - out[-1][0]:
            out[-1][1] = c
        else:
            out.append([c, c, to])
    return out


class Property(ctypes.Structure):
    _fields_ = [("category", ctypes.c_int16), ("combining_class", ctypes.c_int16)]


def unknown_to_forms():
    """What decomposes, or is reordered, by utf8proc alone; and what composes to such a character."""
    library.utf8proc_get_property.restype = ctypes.POINTER(Property)
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    out = set()
    for name in ("NFD", "NFKD"):
        function, reference = getattr(library, "utf8proc_" + name), getattr(N, name)()
        function.restype = ctypes.c_void_p
        for c in POINTS[1:]:
            pointer = function(chr(c).encode())
            ours = ctypes.string_at(pointer).decode()
            libc.free(pointer)
            if ours != reference.normalize_str(chr(c)):
                out.add(c)
                if name == "NFD":
                    out.update(map(ord, ours))
    for c in POINTS:
        order = library.utf8proc_get_property(c).contents.combining_class
        if order == 0:
            continue
        other = 0x334 if order > 1 else 0x301  # of classes 1 and 230
        text = "a" + (chr(c) + chr(other) if order > 1 else chr(other) + chr(c))
        if N.NFD().normalize_str(text)[1:] == text[1:]:
            out.add(c)
    return out


def newer_categories():
    """Categories that the engine for patterns has and Unicode 14, of PCRE2 10.42 and this Python, lacks."""
    assert unicodedata.unidata_version == "14.0.0", "use Python 3.11"
    out, moved = [], 0
    for name in CATEGORIES[1:]:
        if name in ("Cs", "Co", "Cn"):
            continue
        theirs, ours = found(r"\p{%s}" % name), {c for c in POINTS if unicodedata.category(chr(c)) == name}
        moved += len(ours - theirs)
        out += [(a, b, name) for a, b in ranges(theirs - ours)]
    print(f"{moved} code points have another category than in Unicode 14", file=sys.stderr)
    return sorted(out)


def table(head, items):
    print(f"constexpr {head}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            print(line)
            line = "   "
        line += f" {item},"
    print(line + "\n};\n")


print(f"// Written by tools/reference_unicode.py from tokenizers {tokenizers.__version__} and utf8proc, Unicode "
      f"{library.utf8proc_unicode_version().decode()}.")
print('\n#include "tessera/tokenizers/reference_unicode.h"\n\nnamespace tessera::tokenizer {\n\nnamespace {\n')
print("// clang-format off\n")
flips = []
for trait, theirs, ours in traits():
    print(f"{trait}: {len(theirs - ours)} more, {len(ours - theirs)} less", file=sys.stderr)
    flips += [(a, b, trait) for a, b in ranges(theirs ^ ours)]
table("TraitFlip kFlips", [f"{{0x{a:X}, 0x{b:X}, {t}}}" for a, b, t in flips])
table("LowerRange kLower", [f"{{0x{a:X}, 0x{b:X}, 0x{to:X}}}" for a, b, to in lower_differences()])
table("CodePointRange kUnknown", [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(unknown_to_forms())])
table("NewerCategory kNewer", [f"{{0x{a:X}, 0x{b:X}, Category::{n}}}" for a, b, n in newer_categories()])
print("""// clang-format on

}  // namespace

std::span<const TraitFlip> trait_flips() { return kFlips; }
std::span<const LowerRange> lower_ranges() { return kLower; }
std::span<const CodePointRange> unknown_ranges() { return kUnknown; }
std::span<const NewerCategory> newer_categories() { return kNewer; }

}  // namespace tessera::tokenizer""")
