#!/bin/bash
# In place of the program $name: calls it with the changes that [flags] of commands.txt makes to its words, so that it ends soon.
# A change --FLAG=VALUE gives the flag this value, whether the command has the flag or not; --FLAG? only if it has it;
# any other word is added.
words=("$@")
has() { [[ " $name ${words[*]} " == *" $1 "* ]]; }
change() {  # --FLAG=VALUE [only]
  local flag=${1%%=*} value=${1#*=} i
  for ((i = 0; i < ${#words[@]}; i++)); do
    if [ "${words[i]}" = "$flag" ]; then words[i + 1]=$value; return; fi
    if [[ ${words[i]} == "$flag="* ]]; then words[i]=$1; return; fi
  done
  [ "${2-}" = only ] || words+=("$flag" "$value")
}
while IFS='|' read -r when changes; do
  fits=yes
  while read -r condition; do
    [ -n "$condition" ] || continue
    if [[ $condition == !* ]]; then
      ! has "${condition#!}" || fits=no
    else
      has "$condition" || fits=no
    fi
  done <<<"${when//,/$'\n'}"
  [ $fits = yes ] || continue
  for one in $changes; do
    case $one in
      *'?='*) change "${one/'?='/=}" only ;;
      -*=*) change "$one" ;;
      *) has "$one" || words+=("$one") ;;
    esac
  done
done < <(sed -n '/^\[flags\]/,/^\[/{/^#/d;/^\[/d;/./p}' "$TABLE")
[ -z "${TESSERA_KEEP-}" ] || echo "runs: $name ${words[*]}" >&2
exec timeout 300 "$BUILD/$name" "${words[@]}"
