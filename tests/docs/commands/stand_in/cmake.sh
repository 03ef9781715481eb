#!/bin/bash
# Presets are looked up, and installing takes the real build; a reader's own project is configured and built as such.
PATH=${PATH#*:}
case $1 in
  --preset)
    grep -q "\"name\": *\"$2\"" CMakePresets.json || { echo "no preset $2"; exit 1; }
    for word in "${@:3}"; do
      name=${word#-D} name=${name%%=*}
      grep -rqw "$name" CMakeLists.txt cmake || { echo "no option $name"; exit 1; }
    done
    mkdir -p build && exit 0 ;;
  --install) exec cmake --install "$BUILD" "${@:3}" ;;
  *) exec cmake "$@" ;;
esac
