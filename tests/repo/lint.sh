#!/bin/bash
# lint.sh [ROOT]: the rules of the house that no compiler checks. One finding per line: FILE:LINE: what; what to do.
# lint_can_fail.sh proves that each rule can fail.
set -euo pipefail
cd "${1:-.}"

folders=()
for folder in .ci src tests examples bench tools cmake docs; do [ ! -d $folder ] || folders+=($folder); done
# files NAME-PATTERN FOLDER...: the files whose path matches, hidden folders and virtual environments left out.
files() {
  local pattern=$1
  shift
  find "$@" \( -name '.?*' ! -name .ci -o -name __pycache__ -o -name venv \) -prune -o \
    -type f -regextype posix-extended -regex ".*/($pattern)" -print | LC_ALL=C sort
}

# ---- C++: one pass of awk over every source; comments are blanked first.
check_sources() {
  awk '
    function tell(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
    FNR == 1 {
      close_file()
      name = FILENAME
      room = ""
      if (match(name, /^src\/tessera\/[^\/]+\//)) room = substr(name, 13, RLENGTH - 13)
      product = name ~ /^(src|examples)\//
      seam = room == "device" || room == "comm" || room == "gemm"
      pragma = 0
      comment = 0
    }
    { lines = FNR; code = $0 }
    comment { if (!sub(/^.*\*\//, "", code)) next; comment = 0 }
    { gsub(/\/\*([^*]|\*[^\/])*\*\//, "", code); sub(/\/\/.*/, "", code) }
    sub(/\/\*.*/, "", code) { comment = 1 }

    code ~ /^[ \t]*#[ \t]*pragma[ \t]+once/ { pragma = 1 }
    seam && code ~ /HWY_TARGET_TOGGLE/ { pragma = 1 }  # included once per instruction set
    code ~ /^[ \t]*#[ \t]*include[ \t]*["<][^">]*\.\.\// {
      tell("include with ../; write \"tessera/<room>/<file>.h\", which compiles only where the room may be used")
      next
    }
    code ~ /^[ \t]*#[ \t]*include[ \t]*["<]\// { 
      tell("include of an absolute path; name it from an include root")
      next
    }
    room != "" && code ~ /^[ \t]*#[ \t]*include[ \t]*"/ && code !~ /"(tessera|hwy)\// {
      tell("quoted include outside tessera/; ours are \"tessera/<room>/<file>.h\", others are <in angles>")
    }
    product && !seam && code ~ /^[ \t]*#[ \t]*(define|undef)/ {
      tell("macro; write a constexpr, a function or a template (macros live in device/, gemm/ and comm/ only)")
    }
    product && !seam && code ~ /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else)([^a-z_]|$)/ {
      tell("conditional compilation; choose at a seam: one factory per backend in device/, gemm/ or comm/, with a stub")
    }
    room != "" && room != "apps" && room != "launch" && code ~ /(^|[^A-Za-z0-9_])(getenv|secure_getenv|setenv|putenv)[ \t]*\(/ {
      tell("environment below launch/; take the value as an argument, launch/ and apps/ read the environment")
    }
    room != "" && room != "apps" && room != "launch" && room != "pjrt" && code ~ /(^|[^A-Za-z0-9_.>])(exit|_exit|quick_exit|_Exit|abort|terminate)[ \t]*\(/ {
      tell("ends the process below launch/; throw through fail(), require() or check() of tessera/base/error.h")
    }
    function close_file() {
      if (name == "") return
      if (name ~ /\.h$/ && !pragma) printf "%s:1: header without #pragma once; make it the first line\n", name
    }
    END { close_file() }
  ' "$@"
}

# ---- Lengths: tests are free (tables), data is no source; long_files.txt names the exceptions.
check_lengths() {
  local exceptions=tests/repo/long_files.txt
  awk -v exceptions=$exceptions '
    FILENAME == exceptions { if ($0 !~ /^#/ && NF) allowed[$1] = FNR; next }
    FNR == 401 {
      if (FILENAME in allowed) { used[FILENAME] = 1; nextfile }
      printf "%s:401: longer than 400 lines; split it by ideas, one per file", FILENAME
      printf " (or name it in %s with the reason)\n", exceptions
      nextfile
    }
    END {
      for (name in allowed)
        if (!(name in used)) printf "%s:%d: %s is no longer too long; remove the line\n", exceptions, allowed[name], name
    }
  ' "$@"
}

# ---- Names in unnamed namespaces. Unity builds join up to 16 files of a target, and which ones changes when a file is added: a
# name that two files have is a clash then, and so is a type of a header of the room. Files with instructions of their own are
# compiled alone (cmake/isa.cmake), and every fuzz target is a program. Headers come first: two of them, of whichever rooms,
# must not have types of one name in a namespace.
check_unnamed() {
  awk '
    FNR == 1 {
      unit = FILENAME  # a room, or a folder of tests
      if (unit ~ /^src\/tessera\//) match(unit, /^src\/tessera\/[^\/]*/)
      else match(unit, /^.*\//)
      unit = substr(unit, 1, RLENGTH)
      inside = alone = 0
      space = ""
    }
    /vector_targets\.h/ || /TESSERA_TILES/ { alone = 1 }
    FILENAME ~ /\.h$/ {
      if (/^(struct|class|enum class|using) [A-Z]/ && !/^[^{=]*;/ && !/^[^{=]*[a-z]::/) {
        name = $0
        sub(/^(struct|class|enum class|using) /, "", name)
        sub(/[^A-Za-z0-9_].*/, "", name)
        header[unit, name] = FILENAME
        if ((space, name) in type && type[space, name] != FILENAME)
          printf "%s:%d: %s is also a type of %s, and a program that has both takes one for the other; rename one\n", FILENAME,
            FNR, name, type[space, name]
        type[space, name] = FILENAME
      }
      if (/^namespace [a-z]/) space = $2
      next
    }
    /^namespace [a-z]/ { space = $2 }
    /^namespace \{/ { inside = 1 }
    /^}  \/\/ namespace$/ { inside = 0 }
    !inside || !/^[A-Za-z]/ || alone || unit ~ /^tests\/fuzz\/targets\/$/ { next }
    /^(using [a-z]|namespace|extern|static_assert|[A-Z_]+\()/ { next }
    {
      name = $0
      if (sub(/^(template <.*> )?(struct|class|union|enum|enum class|using) /, "", name)) {
        sub(/[^A-Za-z0-9_].*/, "", name)
        if ((unit, name) in header)
          printf "%s:%d: %s is also a type of %s; rename one\n", FILENAME, FNR, name, header[unit, name]
        if (/^using/) next  # an alias may be there twice
      } else {
        if (!sub(/(\(| = | = \{|\[[^\]]*\] = |;).*/, "", name) || name ~ /operator|::[A-Za-z0-9_~]+$/) next
        sub(/.*[^A-Za-z0-9_]/, "", name)
      }
      if (name == "") next
      if (!((unit, space, name) in at)) at[unit, space, name] = FILENAME
      if (at[unit, space, name] != FILENAME)
        printf "%s:%d: %s is also in the unnamed namespace of %s; rename one, or share what both need\n", FILENAME, FNR, name,
          at[unit, space, name]
    }
  ' "$@"
}

# ---- Names of rooms, folders and files.
check_names() {
  local path
  find src tests -regextype posix-extended -regex '.*/(utils?|common|core|misc|helpers?|stuff)(\.(h|cpp)|)' |
    while read -r path; do
      echo "$path:1: a name that says nothing; name it after its one idea"
    done
  awk '
    FILENAME ~ /^src\// && /^[^\/"]*(^|[^A-Za-z0-9_\/"])(un)?told([^A-Za-z0-9_]|$)/ {
      printf "%s:%d: a variable called told; name it after what it holds\n", FILENAME, FNR
    }
  ' "$@" /dev/null
}

# ---- Families: a new one is its own files, so no other file of the sources names one. Out of it are those that are about
# certain models: presets, the words of Megatron-LM's flags, what a peer computes, the tokenizers of transformers' models;
# and the layers of nn, one of which has the name of a family.
check_families() {
  local about='/families/|/config/presets|/rapidformer/|/bench/peer\.cpp$|/tokenizers/class_names\.cpp$|/c_api/layer_calls\.cpp$'
  local words
  words=$(for file in src/tessera/models/families/*.cpp; do basename "$file" .cpp; done | paste -sd'|')
  printf '%s\n' "$@" | grep '^src/tessera/' | grep -Ev "$about" | xargs -r grep -nE "\"(${words//_/[-_]})\"|\bk(Hub)?(${words//_/})\b" -i |
    grep -Ev ':[0-9]+: *//' | sed -E 's/^([^:]*:[0-9]+):.*/\1: names a family; give the family a column that says what is special/' || true
}

# ---- Every text file: nothing that holds on one machine only. The brackets keep this file from finding itself.
check_places() {
  grep -InE '(^|[^A-Za-z0-9_.~$})/-])/([h]ome|[r]oot|[w]ork|[U]sers)/[A-Za-z0-9_.]' "$@" | cut -c1-200 |
    sed -E 's/^([^:]*:[0-9]+):.*/\1: path of one machine; write it relative to the project, or take it as an argument/' || true
  local hosts='[d]eb\.debian\.org|[s]ecurity\.debian\.org|[p]ypi\.org|[p]ythonhosted\.org|[n]pmjs\.(org|com)|[c]rates\.io|[p]roxy\.golang\.org'
  hosts+='|[c]onda\.anaconda\.org|[r]epo1?\.maven\.|[r]ubygems\.org|[d]ocker\.io|[g]hcr\.io'
  grep -InE "$hosts" "$@" | cut -c1-200 |
    sed -E 's/^([^:]*:[0-9]+):.*/\1: host of a package registry; name the package, its client knows the host/' || true
}

# ---- Docs name only files that exist: `src/...` and the like in backticks, and relative [links](of/markdown.md).
check_docs() {
  local file line path
  awk '
    FNR == 1 { fenced = 0 }
    { text = $0 }
    /^[ \t]*```/ { fenced = !fenced }
    !fenced {
      while (match(text, /`[^`]+`/)) {
        count = split(substr(text, RSTART + 1, RLENGTH - 2), words, /[ \t,;()]+/)
        for (i = 1; i <= count; i++)
          if (words[i] ~ /^(\.\/)?(src|tests|tools|docs|cmake|bench|examples)\//) print FILENAME, FNR, "root", words[i]
        text = substr(text, RSTART + RLENGTH)
      }
      text = $0
      while (match(text, /\]\([^) ]+\)/)) {
        link = substr(text, RSTART + 2, RLENGTH - 3)
        sub(/#.*/, "", link)
        if (link != "" && link !~ /^[a-z]+:/) print FILENAME, FNR, "link", link
        text = substr(text, RSTART + RLENGTH)
      }
    }
  ' "$@" | while read -r file line how path; do
    case $path in *'<'* | *'...'* | *'{'* | *'$'*) continue ;; esac
    path=$(sed -E 's/:[0-9]+(-[0-9]+)?$//; s/[.:]$//' <<<"$path")
    [ "$how" = root ] || case $path in /*) ;; *) path=$(dirname "$file")/$path ;; esac
    compgen -G "$path" >/dev/null ||
      echo "$file:$line: names ${path#./}, which does not exist; move the text with the code"
  done
}

# ---- Lines of documents, tables and shown code excepted; every document is in the index.
check_pages() {
  awk '
    FNR == 1 { fenced = 0 }
    /^[ \t]*```/ { fenced = !fenced }
    !fenced && !/^(\||<!--|!\[)/ && length > 125 { printf "%s:%d: %d columns; wrap at 120\n", FILENAME, FNR, length }
  ' "$@"
  [ -e docs/README.md ] || return 0
  find docs -name '*.md' ! -path docs/README.md -printf '%P\n' | LC_ALL=C sort | while read -r path; do
    grep -qF "]($path)" docs/README.md || echo "docs/README.md:1: has no line for docs/$path; add one that says what is there"
  done
}

mapfile -t sources < <(files '[^/]*\.(h|cpp|cu|cuh)' "${folders[@]}")
mapfile -t units < <(files '[^/]*\.cpp' "${folders[@]}" | grep '^src/tessera/\|^tests/')
mapfile -t headers < <(files '[^/]*\.h' "${folders[@]}" | grep '^src/tessera/')
mapfile -t lengthy < <(files '[^/]*\.(h|cpp|cu|cuh|cmake|sh|py|txt)|run|peers' "${folders[@]}" | grep -v '^tests/\|^bench/results/\|/data/')
mapfile -t pages < <(ls README.md docs/*.md docs/*/*.md bench/results/README.md bench/results/*-notes.md 2>/dev/null)
mapfile -t docs < <(ls README.md CHANGELOG.md docs/*.md docs/*/*.md 2>/dev/null)
mapfile -t texts < <(files '[^/]*' "${folders[@]}" | grep -v '\.\(safetensors\|bin\|json\|jsonl\|npy\|npz\)$'; ls README.md CHANGELOG.md CMakeLists.txt CMakePresets.json dev 2>/dev/null)

findings=$(
  [ ${#sources[@]} = 0 ] || check_sources "${sources[@]}"
  check_lengths $(ls tests/repo/long_files.txt dev 2>/dev/null) "${lengthy[@]}"
  [ ${#units[@]} = 0 ] || check_unnamed "${headers[@]}" "${units[@]}"
  check_names "${sources[@]}"
  [ ! -d src/tessera/models/families ] || check_families "${sources[@]}"
  check_places "${texts[@]}"
  [ ${#docs[@]} = 0 ] || check_docs "${docs[@]}"
  [ ${#pages[@]} = 0 ] || check_pages "${pages[@]}"
)
if [ -n "$findings" ]; then
  printf '%s\n' "$findings"
  echo "lint: $(wc -l <<<"$findings") finding(s)" >&2
  exit 1
fi
echo "lint: ${#texts[@]} files, no finding" >&2
