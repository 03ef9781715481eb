#!/bin/bash
# Proves that every rule of lint.sh can fail: one bad file per rule, and the line it must be found on.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# fresh: a small tree in which nothing is wrong.
fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{src/tessera/{tensor,device,apps,models/families},tests/repo,docs}
  echo 'const char* kName = "gpt2";' >"$tree/src/tessera/models/families/gpt2.cpp"
  echo 'extern const ModelFamily kGptNeox;' >"$tree/src/tessera/models/families/gpt_neox.cpp"
  echo "# none" >"$tree/tests/repo/long_files.txt"
  printf '#pragma once\n#include <vector>\n#include "tessera/base/error.h"\nstruct Shape {};\n' >"$tree/src/tessera/tensor/shape.h"
  printf '#define A 1\n#ifdef A\n#endif\nint x;\n' >"$tree/src/tessera/device/cuda.cpp"
  printf '#include <cstdlib>\nint main() { return std::getenv("X") != nullptr; }\n' >"$tree/src/tessera/apps/main.cpp"
  printf '// #define, getenv("X") and abort() in a comment are words.\n/* #include "../x.h"\n   std::exit(1) */\nint at_exit();\n' \
    >"$tree/src/tessera/tensor/words.cpp"
  printf 'namespace {\nbool is_at(int);\nconstexpr int kMost = 3;\nstruct Case {};\nbool is_at(int x) { return x == kMost; }\n}  // namespace\nint most;\n' \
    >"$tree/src/tessera/tensor/first.cpp"
  printf 'namespace {\n  struct Case;\n}  // namespace\nstruct Case {};\nbool is_at(int);\nstatic int most() {}\n' >"$tree/src/tessera/tensor/other.cpp"
  printf 'See `src/tessera/tensor/shape.h:2`, `src/tessera/*/shape.h`, `tests/<room>/x.cpp`, [this](a.md).\n' >"$tree/docs/a.md"
}

# finds RULE FILE LINE [PLACE]: with FILE made of standard input, lint.sh fails and names FILE:LINE (or PLACE) alone.
finds() {
  local said status=0 place=${4-$2:$3}
  fresh
  mkdir -p "$(dirname "$tree/$2")"
  cat >"$tree/$2"
  said=$(bash "$here/lint.sh" "$tree" 2>/dev/null) || status=$?
  if [ $status = 1 ] && [ "$(grep -c . <<<"$said")" = 1 ] && [[ $said == "$place: "*"; "* ]]; then
    echo "ok    $1"
  else
    echo "WRONG $1: wanted $place alone, got status $status and:"
    echo "$said"
    failures=$((failures + 1))
  fi
}

fresh
bash "$here/lint.sh" "$tree" || { echo "WRONG: finds something in a clean tree"; failures=1; }

T=src/tessera/tensor
finds "an include that climbs" $T/a.cpp 2 <<<$'int x;\n#include "../device/device.h"'
finds "one that climbs in angles" tests/tensor/a.cpp 1 <<<'#include <tessera/tensor/../device/device.h>'
finds "an absolute include" $T/a.cpp 1 <<<'#include "/usr/include/stdio.h"'
finds "a quoted include of a neighbour" $T/a.cpp 1 <<<'#include "shape.h"'
finds "a header without its guard" $T/a.h 1 <<<'int x();'
finds "a guard only in a comment" $T/a.h 1 <<<'// #pragma once'
finds "a macro" $T/a.cpp 1 <<<'#  define TWICE(x) (x + x)'
finds "conditional compilation" $T/a.cpp 1 <<<'#ifdef __AVX2__'
finds "the same after a comment" $T/a.cpp 3 <<<$'/* two\n   lines */\n#if 1'
finds "the environment" $T/a.cpp 1 <<<'const char* x = std::getenv("HOME");'
finds "std::exit" $T/a.cpp 1 <<<'void f() { std::exit(1); }'
finds "abort" $T/a.cpp 1 <<<'void f() { abort(); }'
finds "a family outside its own files" $T/a.cpp 1 <<<'bool is(const char* name) { return name == "Gpt2"; }'
finds "its variable" $T/a.cpp 1 <<<'extern const ModelFamily kGptNeox;'
finds "a file that is too long" $T/a.cpp 401 < <(yes '// line' | head -401)
finds "a name that two files have" $T/unnamed.cpp 2 <<<$'namespace {\nbool is_at(int file) {\n}\n}  // namespace'
finds "a type that two files have" $T/unnamed.cpp 3 <<<$'namespace {\n\nstruct Case {\n};\n}  // namespace'
finds "a constant that two files have" $T/unnamed.cpp 2 <<<$'namespace {\nconstexpr int kMost = 4;\n}  // namespace'
finds "a type that headers of two rooms have" src/tessera/train/shape.h 2 <<<$'#pragma once\nstruct Shape { int sides; };'
finds "an alias and a type of headers" src/tessera/train/shape.h 2 <<<$'#pragma once\nusing Shape = std::vector<int>;'
finds "a type of the room's headers" $T/unnamed.cpp 2 <<<$'namespace {\nusing Shape = int;\n}  // namespace'
finds "a folder name that says nothing" src/tessera/utils/a.cpp 1 src/tessera/utils:1 <<<'int x;'
finds "a file name that says nothing" $T/utils.h 1 <<<'#pragma once'
finds "a variable called told" $T/a.cpp 1 <<<'int f() { const int told = 1; return told; }'
finds "the path of one machine" docs/b.md 1 <<<"Data is in /$(echo home)/ann/data."
finds "the host of a registry" cmake/a.cmake 1 <<<"# from https://$(echo py)pi.org/simple"
finds "a text about a file that is not there" docs/b.md 2 <<<$'Read\n`src/tessera/tensor/gone.h` first.'
finds "a link to a file that is not there" docs/b.md 1 <<<'See [that](gone.md).'
finds "a document of long lines" docs/b.md 1 < <(printf 'word %.0s' $(seq 26); echo)
finds "a document that the index lacks" docs/README.md 1 <<<'Nothing here.'
finds "a useless exception" tests/repo/long_files.txt 1 <<<"$T/shape.h it was long"

echo "$failures wrong"
[ $failures = 0 ]
