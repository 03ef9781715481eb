# flags.sh BUILD SOURCE: every flag that a program of ours has, a line each. Those of rapidformer that are
# refused are not in its help, but in its table.
BUILD=$1 SOURCE=$2
{
  for command in train sample chat serve plan verify bench prepare preprocess_data export score inspect chart report doctor launch \
    predict evaluate; do
    "$BUILD/tessera" $command --help
  done
  "$BUILD/rapidformer" --help
  sed -nE 's/^ *\{"([A-Za-z0-9_-]+)".*/--\1/p' "$SOURCE/src/tessera/rapidformer/flag_table.cpp"
  "$BUILD/example_wmt_transformer" --help
  sed -E 's/"([a-z-]+)", (true|false|0|1|[a-z])/--\1/' "$SOURCE"/examples/quickstart/quickstart.cpp | grep -oE -- '--[a-z-]+'
  "$SOURCE/dev" help
  grep -ohE -- '--[a-z][a-z-]+' "$SOURCE"/bench/*.py "$SOURCE"/bench/*.sh "$SOURCE"/bench/*.cpp "$SOURCE"/tools/*.py \
    "$SOURCE"/dev
} 2>/dev/null | grep -oE -- '--[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9]' | LC_ALL=C sort -u
