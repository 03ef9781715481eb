#!/bin/bash
# install_test.sh BUILD COMPILER [names]: what is installed serves a program outside of this tree, wherever it lies. The
# projects are those that docs/guides/cpp-model.md shows. "names": files that name folders of this tree are found as well; builds
# with debug information have them.
set -euo pipefail
build=$1 compiler=$2 names=${3-}
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
# The first lines hold a compiler's first error, the last ones what a program said before it ended.
wrong() { echo "WRONG: $*"; [ ! -s "$t/said" ] || { head -20 "$t/said"; echo ...; tail -20 "$t/said"; }; exit 1; }
run() { "$@" >"$t/said" 2>&1 || wrong "$* fails"; }
ok() { echo "ok    $*  ($SECONDS s)"; }

# A folder with a space in its name; a second install lies over the first; then it is moved.
run cmake --install "$build" --prefix "$t/first place"
run cmake --install "$build" --prefix "$t/first place"
run env DESTDIR="$t/stage" cmake --install "$build" --prefix /opt/tessera
diff -r "$t/first place" "$t/stage/opt/tessera" >"$t/said" || wrong "DESTDIR changes what is installed"
mkdir "$t/other place"
prefix="$t/other place/tessera"
mv "$t/first place" "$prefix"
rm -rf "$t/stage"
if [ "$names" = names ] && grep -rlF -e "$source/" -e "$build/" -e "$t" "$prefix" >"$t/said"; then
  wrong "these installed files name the source or build folder, or where they were installed first"
fi
for file in bin/tessera bin/rapidformer include/tessera/tessera.h include/tessera/nn/layers.h share/tessera/examples/CMakeLists.txt share/doc/tessera/LICENSE; do
  [ -e "$prefix/$file" ] || wrong "$file is not installed"
done
ok "installed twice, with DESTDIR, moved"

# Every header compiles with nothing but the installed folder and the system's headers. Most are the first that their own
# .cpp includes, which ./dev clang compiles alone; the others are compiled by themselves here. Then all of them together.
cd "$prefix/include"
find tessera -name '*.h' | LC_ALL=C sort >"$t/headers"
! find tessera -mindepth 3 -name '*.h' | grep . || wrong "internal headers are installed"
most=165  # headers that a reader must expect to meet
[ "$(wc -l <"$t/headers")" -le $most ] || wrong "$(wc -l <"$t/headers") headers are installed, more than $most"
posix='<(poll|sched|signal|sys/types)\.h>'
! grep -rhE '#include <[^>]*[/.]' tessera | grep -vE "$posix" || wrong "headers include other libraries"
while read -r header; do
  own=$source/src/${header%.h}.cpp
  [ -e "$own" ] && [ "$(grep -m1 '^#include' "$own")" = "#include \"$header\"" ] || echo "$header"
done <"$t/headers" >"$t/alone"
xargs -P "$(nproc)" -n 1 "$compiler" -std=c++20 -fsyntax-only -w -I . -x c++ <"$t/alone" >"$t/said" 2>&1 ||
  wrong "a header does not compile by itself"
sed 's/.*/#include "&"/' "$t/headers" >"$t/all.cpp"
compilers=("$compiler")
! command -v clang++-14 >/dev/null || compilers+=(clang++-14)
for one in "${compilers[@]}"; do run "$one" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I . "$t/all.cpp"; done
cd "$t"
ok "$(wc -l <headers) headers, $(wc -l <alone) of them by themselves"

# project NAME: the CMakeLists.txt that docs/guides/cpp-model.md shows under that name, beside two_layers.cpp, in folder NAME.
project() {
  mkdir "$t/$1"
  awk -v mark="<!-- tests/repo/install_test.sh: $1 -->" '
    $0 == mark { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    inside' "$source/docs/guides/cpp-model.md" >"$t/$1/CMakeLists.txt"
  [ -s "$t/$1/CMakeLists.txt" ] || wrong "docs/guides/cpp-model.md shows no project '$1'"
  cp "$source/examples/two_layers.cpp" "$t/$1"
}
# configure NAME [FLAG...]: of the user's project in folder NAME, with the user's own taste in warnings.
configure() {
  run cmake -G Ninja -S "$t/$1" -B "$t/$1/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror" "${@:2}"
}
said=
for kind in shared static; do
  project $kind
  configure $kind -DCMAKE_BUILD_TYPE=Debug
  run cmake --build $kind/build
  run $kind/build/mine
  [ -z "$said" ] || [ "$said" = "$(cat said)" ] || wrong "shared and static libraries compute other losses"
  said=$(cat said)
  loaded=$(ldd $kind/build/mine)
  case "$kind $loaded" in
    shared*libtessera.so*) ;;
    shared*) wrong "the program linked with the shared library does not load it" ;;
    static*libtessera.so*) wrong "the program linked with the static library loads the shared one" ;;
  esac
done
ok "a program with the shared and the static library: $(tail -1 said)"

# Components and versions that are not there are refused.
mkdir refused
# refused CALL WORDS [BEFORE]: after the command BEFORE, find_package(CALL) fails and says WORDS.
refused() {
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(mine CXX)\n%s\nfind_package(%s)\n' "${3-}" "$1" >refused/CMakeLists.txt
  rm -rf refused/build
  ! cmake -G Ninja -S refused -B refused/build -DCMAKE_PREFIX_PATH="$prefix" >said 2>&1 || wrong "find_package($1) succeeds"
  tr -s '\n ' ' ' <said | grep -qF "$2" || wrong "find_package($1) does not say: $2"
}
refused "tessera 99 REQUIRED" "requested version \"99\""
refused "tessera 0.0 REQUIRED" "requested version \"0.0\""
refused "tessera REQUIRED COMPONENTS python" "there is no component python, only shared and static"
refused "tessera REQUIRED COMPONENTS static" "the static library is linked with tessera::dnnl, which is not found" \
  'set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)'
ok "what is not there is refused"

# All examples, as they are installed.
run cmake -G Ninja -S "$prefix/share/tessera/examples" -B examples -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix"
run cmake --build examples
count=0
while read -r file; do
  # One with a test of its own needs arguments.
  [ -f "$(dirname "$file")/test.sh" ] && ask=(--help) || ask=()
  run "examples/example_$(basename "$file" .cpp)" "${ask[@]}"
  count=$((count + 1))
done < <(find "$source/examples" -name '*.cpp' -not -path '*/rapidformer/*')
[ "$count" -ge 5 ] || wrong "$count examples"
ok "$count examples"

# User scripts: compiled against what is installed, on one device and on four.
script() {  # NAME FLAG...: of an example
  run env XDG_CACHE_HOME="$t/a cache" CXX="$compiler" "$prefix/bin/rapidformer" \
    --user-script "$prefix/share/tessera/examples/rapidformer/$1.cpp" --threads 1 "${@:2}"
}
script own_loop --epochs 2 --global-batch-size 32
short() { grep 'loss' said | sed 's/\(\.[0-9]\{3\}\)[0-9]*/\1/g'; }
short >one
script own_loop --epochs 2 --global-batch-size 32 --devices 4
! grep -q '^compiling' said || wrong "a user script is compiled twice"
short | cmp -s - one || wrong "a loop of one's own has other losses on four devices"
for i in $(seq 300); do echo "{\"text\": \"line $((i * 7919 % 1000)) of a text\"}"; done >text.jsonl
run "$prefix/bin/tessera" preprocess_data --input text.jsonl --output-prefix tokens --append-eod
for devices in 1 4; do
  script pretrainer --data-path tokens_text_document --vocab-size 257 --eod-token 256 --num-layers 1 --hidden-size 32 \
    --num-attention-heads 4 --seq-length 32 --micro-batch-size 2 --global-batch-size 8 --train-iters 3 --lr 1e-3 \
    --save pretrained$devices --devices $devices
done
loss() { grep -o '"val_loss": *[0-9.]*' "$1/summary.json" | grep -o '[0-9.]*$' | cut -c1-6; }
[ -n "$(loss pretrained1)" ] && [ "$(loss pretrained1)" = "$(loss pretrained4)" ] ||
  wrong "a user script ends with validation losses $(loss pretrained1) and, on four devices, $(loss pretrained4)"
ok "user scripts"

# A project that builds Tessera itself: its targets, none of our tests, its own flags. Compiling all of Tessera is left out.
project fetched
cat >>fetched/CMakeLists.txt <<'C'
get_directory_property(OPTIONS COMPILE_OPTIONS)
if(OPTIONS OR DEFINED CMAKE_CXX_STANDARD OR CMAKE_BUILD_TYPE OR CMAKE_RUNTIME_OUTPUT_DIRECTORY OR TARGET ops_test)
  message(FATAL_ERROR "Tessera changed its parent: ${OPTIONS} ${CMAKE_CXX_STANDARD} ${CMAKE_BUILD_TYPE}")
endif()
C
configure fetched -DTESSERA_SOURCE="$source"
run ninja -C fetched/build CMakeFiles/mine.dir/two_layers.cpp.o
run ninja -C fetched/build -t commands mine
grep -q 'libtessera\.so' said || wrong "the parent's program does not need the shared library"
! grep -q 'libtessera\.a\|apps/main' said || wrong "the parent's program builds more of Tessera than it links"
ok "a project that contains Tessera"

# The command.
run "$prefix/bin/tessera" version
for _ in $(seq 100); do echo "the quick brown fox jumps over the lazy dog"; done >text.txt
run "$prefix/bin/tessera" train --preset gpt2-tiny --data text.txt --output out --steps 5
[ -s out/summary.json ] || wrong "the installed command left no summary"
ok "the command"
