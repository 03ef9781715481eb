# world.sh BUILD SOURCE WORLD: read by the shell that runs a page's commands. Makes in WORLD a copy of the tree as a reader
# has it after ./dev build, with small inputs under the names that documents use, and stands in it.
export BUILD=$1 SOURCE=$2 WORLD=$3
HERE=$SOURCE/tests/docs/commands
export HOME=$WORLD/home TABLE=$HERE/commands.txt LC_ALL=C.UTF-8
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset HF_HUB_CACHE HF_HOME TESSERA_DATA TESSERA_MODELS XDG_CACHE_HOME DESTDIR TESSERA_BUILD RANK WORLD_SIZE MASTER_ADDR
mkdir -p "$HOME" "$WORLD/clone/build/fuzz" "$WORLD/clone/build/asan" && cd "$WORLD/clone" || return 1

# What git has of the tree, without what stands in a build folder or was written by runs.
for part in "$SOURCE"/*; do
  case ${part##*/} in build* | runs | stage) ;; *) cp -r "$part" . ;; esac
done

stand_in_for() {  # NAME FILE
  printf '#!/bin/bash\nname=%s\n. "$SOURCE/tests/docs/commands/stand_in/program.sh"\n' $1 >"$2"
  chmod +x "$2"
}
# The programs: those whose work the table makes smaller are called by a stand-in for them.
for program in "$BUILD"/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=${program##*/} called=$program
  case $name in
    tessera | rapidformer | example_own_family | example_wmt_transformer) called= ;;
    fuzz_*) called= && stand_in_for $name "build/fuzz/$name" ;;
  esac
  if [ -n "$called" ]; then ln -s "$called" "build/$name"; else stand_in_for $name "build/$name"; fi
done
mkdir "$WORLD/bin"
for name in cmake ninja ctest hf curl apt-get dpkg-query clang-format-14 torchrun srun scontrol ssh less; do
  ln -s "$HERE/stand_in/$name.sh" "$WORLD/bin/$name"
done
ln -s "$PWD/build/tessera" "$PWD/build/rapidformer" "$WORLD/bin/"
export PATH=$WORLD/bin:$PATH

new_port() {
  PORT=$("$BUILD/start_ranks" --port)
  export PORT MASTER_PORT=$PORT
}
returns() { return "$1"; }

. "$HERE/inputs.sh"
