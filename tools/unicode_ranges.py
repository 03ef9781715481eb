#!/usr/bin/env python3
"""Writes src/tessera/base/unicode_ranges.cpp: which code points are letters and numbers, by Python's own tables.

    python3 tools/unicode_ranges.py > src/tessera/base/unicode_ranges.cpp
"""
import unicodedata


def ranges(initial):
    out = []
    for c in range(0x110000):
        if unicodedata.category(chr(c))[0] != initial:
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, what, initial):
    all_ranges = ranges(initial)
    print(f"/// {what}")
    print(f"constexpr CodePointRange {name}[] = {{")
    line = "   "
    for first, last in all_ranges:
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};\n")


print("// Written by tools/unicode_ranges.py from Unicode", unicodedata.unidata_version + ".")
print('\n#include "tessera/base/unicode.h"\n\nnamespace tessera {\n\nnamespace {\n\n// clang-format off\n')
table("kLetters", "Categories Lu, Ll, Lt, Lm, Lo.", "L")
table("kNumbers", "Categories Nd, Nl, No.", "N")
print("""// clang-format on

}  // namespace

std::span<const CodePointRange> letter_ranges() { return kLetters; }
std::span<const CodePointRange> number_ranges() { return kNumbers; }

}  // namespace tessera""")
