#!/bin/bash
# face_test.sh FACES ROOT: what programs outside of this tree may include is told alike in four places. FACES lists it, as
# CMakeLists.txt does, "nn/layers.h" a line; tessera.h includes all of it but Rapidformer's; docs/guides/cpp-model.md says of each
# what it is for; examples and documents include one header.
set -euo pipefail
faces=$1 root=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
wrong() { echo "WRONG: $*"; failures=$((failures + 1)); }
scripts=rapidformer/rapidformer.h
# same NAME: what is in file NAME of $scratch is the face.
same() {
  diff "$scratch/face" "$scratch/$1" >"$scratch/said" || wrong "$2:" $(grep '^[<>]' "$scratch/said")
}

LC_ALL=C sort "$faces" >"$scratch/face"
[ -s "$scratch/face" ] || wrong "no room has a face"
while read -r header; do [ -f "$root/src/tessera/$header" ] || wrong "there is no src/tessera/$header"; done <"$faces"
{ sed -n 's|^#include "tessera/\(.*\)"|\1|p' "$root/src/tessera/tessera.h"; echo $scripts; } | LC_ALL=C sort >"$scratch/all"
same all "lines of CMakeLists.txt (<) are not those of tessera.h (>)"
grep -oE '`[a-z_0-9]+/[a-z_0-9]+\.h`' "$root/docs/guides/cpp-model.md" | tr -d '`' | grep -vx tessera/tessera.h | LC_ALL=C sort >"$scratch/told"
same told "lines of CMakeLists.txt (<) are not those that docs/guides/cpp-model.md tells of (>)"
grep -rn '^#include "tessera/' "$root/examples" "$root/docs" "$root/README.md" >"$scratch/included"
awk -v scripts="\"tessera/$scripts\"" 'index($0, "\"tessera/tessera.h\"") == 0 && index($0, scripts) == 0' \
  "$scratch/included" >"$scratch/more"
[ ! -s "$scratch/more" ] || wrong "examples and documents include tessera/tessera.h alone:" "$(cat "$scratch/more")"

echo "$(wc -l <"$scratch/face") headers, $failures wrong"
[ $failures = 0 ]
