#!/bin/bash
# Another host is another folder: ssh HOST COMMAND.
given=$(cat)
mkdir -p "$WORLD/$1" && cd "$WORLD/$1" && exec bash -c "$2" <<<"$given"
