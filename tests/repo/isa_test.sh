#!/bin/bash
# isa_test.sh SOURCES CMAKE: TESSERA_ISA=native leaves out what this processor does not use, in the files that are compiled
# once per instruction set and in no other; all leaves out nothing, and is what everybody gets who does not ask.
set -euo pipefail
sources=$1 cmake=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { echo "WRONG: $*"; exit 1; }
configure() { # NAME FLAG...
  "$cmake" -G Ninja -S "$sources" -B "$folder/$1" -DTESSERA_TESTS=OFF -DTESSERA_INSTALL=OFF "${@:2}" >"$folder/$1.log" 2>&1
}
# The compilations of the device in NAME: the source, and what is left out of it.
compilations() { ninja -C "$folder/$1" -t commands tessera_device | sed -n 's/.* -c .*\/src\/tessera\/\(\(device\|gemm\)\/.*\)$/\1 &/p'; }

has() { for flag; do grep -qw "$flag" /proc/cpuinfo || return 1; done; }
if has avx512f avx512bw avx512dq avx512vl avx512cd; then left=HWY_AVX2
elif has avx2 fma; then left=HWY_AVX3
else left='HWY_AVX2|HWY_AVX3'; fi

configure native -DTESSERA_ISA=native || wrong "no build of this machine's instruction set: $(tail -n 5 "$folder/native.log")"
compilations native >"$folder/native.txt"
[ "$(wc -l <"$folder/native.txt")" -gt 20 ] || wrong "the device has few files: $(cut -d' ' -f1 "$folder/native.txt")"
while read -r file command; do
  once_per_level=no left_out=no
  ! grep -q 'foreach_target\.h' "$sources/src/tessera/$file" || once_per_level=yes
  [ "$file" != device/cpu/compiled.cpp ] || once_per_level=yes  # which tells what is there
  [[ "$command" != *TESSERA_LEFT_OUT* ]] || left_out=yes
  [ $once_per_level = $left_out ] || wrong "$file: once per level $once_per_level, but what is left out is told: $left_out"
  [ $left_out = no ] || [[ "${command//\"/}" == *"-DTESSERA_LEFT_OUT=$left "* ]] || wrong "$file does not leave out $left: $command"
done <"$folder/native.txt"

configure all || wrong "no build of all: $(tail -n 5 "$folder/all.log")"
! compilations all | grep TESSERA_LEFT_OUT || wrong "a build that was asked nothing leaves something out"
if configure other -DTESSERA_ISA=avx2; then wrong "TESSERA_ISA=avx2 is taken"; fi
grep -q "TESSERA_ISA is 'avx2'; it can be all or native" "$folder/other.log" || wrong "$(cat "$folder/other.log")"
