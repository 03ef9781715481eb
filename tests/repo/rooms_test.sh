#!/bin/bash
# rooms_test.sh ROOMS COMPILER: an include that points up or sideways does not compile, one that points down does.
#
# ROOMS is what the build itself uses, one line per room: name|rooms it USES|its include folders, joined by ";".
# The order of the rooms is stated here once more, so that a line added in CMakeLists.txt cannot change it unseen.
set -euo pipefail
rooms_file=$1 compiler=$2
declare -A level=([base]=0 [tensor]=1 [schedule]=1 [gemm]=1 [ir]=2 [files]=2 [comm]=2 [machines]=2 [pjrt]=2 [ops]=3 [tokenizers]=3 [chat]=3
  [checkpoint]=3 [token_files]=4 [corpora]=4 [passes]=4 [nn]=4 [device]=4 [data]=5 [plan]=5 [search]=5 [hlo]=5 [models]=6 [runtime]=6
  [shard]=6 [config]=7 [pretrained]=7 [accelerator]=7 [sources]=8 [train]=9 [report]=10
  [launch]=10 [serve]=10 [bench]=11 [planner]=11 [apps]=12 [user_code]=13 [rapidformer]=14 [c_api]=15)
declare -A uses=() includes=() header=()
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
wrong() { echo "WRONG: $*"; failures=$((failures + 1)); }

# The include folders of a room are in a file of options, as their names may have blanks. Folders of the system are left
# out: the compiler has them anyhow.
while IFS='|' read -r room used folders; do
  uses[$room]=${used//;/ }
  includes[$room]=@$scratch/$room.options
  IFS=';' read -r -a list <<<"$folders"
  for folder in "${list[@]}"; do
    [[ -z $folder || $folder == /usr/* ]] || printf -- '-I"%s"\n' "$folder"
  done >"$scratch/$room.options"
done <"$rooms_file"

# sees ROOM OTHER: a line of CMakeLists.txt leads from ROOM down to OTHER.
sees() {
  local next
  for next in ${uses[$1]-}; do [ "$next" = "$2" ] || sees "$next" "$2" && return 0; done
  return 1
}

# The rooms of the build are those of the list above, each in a folder, each a step up from all that it uses.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/src/tessera
for room in "${!level[@]}"; do [ -n "${includes[$room]-}" ] || wrong "CMakeLists.txt has no room $room"; done
for room in "${!includes[@]}"; do
  [ -n "${level[$room]-}" ] || { wrong "room $room has no level here; say which rooms lie below it"; level[$room]=99; }
  for used in ${uses[$room]}; do
    [ "${level[$used]-99}" -lt "${level[$room]}" ] || wrong "CMakeLists.txt lets $room use $used, which is not below it"
  done
  header[$room]=""
  [ ! -d "$root/$room" ] ||
    header[$room]=$(find "$root/$room" -name '*.h' -printf '%P\n' | LC_ALL=C sort | sed -n "1s|^|$room/|p")
done
for folder in "$root"/*/; do
  [ -n "${level[$(basename "$folder")]-}" ] || wrong "src/tessera/$(basename "$folder") is not a room of CMakeLists.txt"
done
[ $failures = 0 ] || exit 1  # what follows walks down the rooms, so they must lead down

# may_not ROOM OTHER...: none of these includes is found. The compiler is asked once for all of them.
may_not() {
  local room=$1 other seen
  shift
  for other; do
    printf '#if __has_include("tessera/%s")\nfound %s\n#endif\n' "${header[$other]}" "$other"
  done >"$scratch/$room.cpp"
  seen=$("$compiler" -std=c++20 "${includes[$room]}" -E -P "$scratch/$room.cpp") || wrong "the compiler fails for $room"
  while read -r _ other; do
    [ -z "$other" ] || wrong "$room can include tessera/${header[$other]}, but $other is not below it"
  done <<<"$seen"
}

# may ROOM OTHER...: all of these includes together are found.
may() {
  local room=$1 other
  shift
  for other; do echo "#include \"tessera/${header[$other]}\""; done >"$scratch/$room.cpp"
  "$compiler" -std=c++20 "${includes[$room]}" -E "$scratch/$room.cpp" -o /dev/null 2>"$scratch/said" ||
    wrong "$room cannot include what it may:" "$(head -3 "$scratch/said")"
}

refused=0 allowed=0
for room in "${!includes[@]}"; do
  below=() others=()
  for other in "${!includes[@]}"; do
    [ -n "${header[$other]}" ] || continue  # an empty room
    if [ "$other" = "$room" ] || sees "$room" "$other"; then
      below+=("$other")
    else
      others+=("$other")
    fi
  done
  may_not "$room" "${others[@]}"
  refused=$((refused + ${#others[@]}))
  may "$room" "${below[@]}"
  allowed=$((allowed + ${#below[@]}))
done

echo "$refused includes refused, $allowed allowed, $failures wrong"
[ $failures = 0 ] && [ $refused -gt 0 ] && [ $allowed -gt 0 ]
