#!/bin/bash
# Makes the site build/site of docs/, in the order of docs/README.md: ./dev docs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build
{
  printf 'INHERIT: %s/mkdocs.yml\ndocs_dir: %s/docs\nsite_dir: %s/build/site\nnav:\n' "$PWD" "$PWD" "$PWD"
  printf -- '  - Documents: README.md\n'
  awk '/^## / { print "  - " substr($0, 4) ":"; deep = "    " }
    { while (match($0, /\[[^]]*\]\([^)#]*\.md\)/)) {
        link = substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH)
        split(link, part, /\]\(/); print deep "  - \"" part[1] "\": " part[2] } }' docs/README.md
} >build/mkdocs.yml
mkdocs build --quiet --clean --config-file build/mkdocs.yml
echo "the site is in build/site: python3 -m http.server --directory build/site" >&2
