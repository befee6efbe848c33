#!/usr/bin/env bash
# scripts/build.sh PRESET [TARGET...]: configures if that was never done or the presets have changed, and builds. On a
# terminal it shows ninja's counter; otherwise it prints nothing if everything is up to date.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:-}
if [ "$preset" = -h ] || [ "$preset" = --help ]; then
  sed -n '2,/^set /s/^# //p' "${BASH_SOURCE[0]}"
  exit
fi
cd "$root"
presets=$(sed -n 's/.*"name": "\([^"]*\)", "displayName".*/\1/p' CMakePresets.json)
if ! grep -qxF -- "$preset" <<< "$presets"; then
  echo "scripts/build.sh: '$preset' is no preset; expected one of" $presets >&2
  exit 2
fi
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Files that differ from the last commit are compiled alone from now on, because an edit would compile a whole group of files
# (scripts/compile_together.py). A new commit may part a group as well.
edited=build/$preset/edited.txt
mkdir -p "build/$preset"
if ! list=$({ git rev-parse HEAD && git diff --name-only HEAD -- '*.cpp' && git ls-files --others --exclude-standard -- '*.cpp' &&
              if [ -f "$edited" ]; then grep '\.cpp$' "$edited" || true; fi; } 2> /dev/null | sort -u); then
  list=""  # no repository, such as an unpacked tarball
fi
if [ "$list" != "$(cat "$edited" 2> /dev/null)" ] || [ ! -f "build/$preset/build.ninja" ] ||
   [ CMakePresets.json -nt "build/$preset/build.ninja" ]; then
  printf '%s\n' "$list" > "$edited"
  echo "configuring build/$preset"
  if ! cmake --preset "$preset" > "$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi
quiet=(--quiet)
[ ! -t 1 ] || quiet=()
cmake --build --preset "$preset" ${1:+--target "$@"} -- "${quiet[@]}"
