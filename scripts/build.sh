#!/usr/bin/env bash
# scripts/build.sh PRESET [TARGET...]: configures if that was never done or the presets have changed, and builds. On a
# terminal it shows ninja's counter; otherwise it prints nothing if everything is up to date.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:?"expected a preset: release, dev, sanitize or threads"}
shift
cd "$root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "build/$preset/build.ninja" ] || [ CMakePresets.json -nt "build/$preset/build.ninja" ]; then
  echo "configuring build/$preset"
  if ! cmake --preset "$preset" > "$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi
quiet=(--quiet)
[ ! -t 1 ] || quiet=()
cmake --build --preset "$preset" ${1:+--target "$@"} -- "${quiet[@]}"
