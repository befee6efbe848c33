#!/usr/bin/env bash
# Measures how long builds, tests and edits of a commit take. Prints processor seconds (and seconds by the clock).
#   scripts/workshop/build_weight.sh REV [FOLDER] [PART...]
# REV is built from nothing in a clone, FOLDER/REV (default: build/weight). Parts, in this order (default: all but gate):
#   program   scripts/build.sh release attnbench attnbench_python, from nothing
#   all       the rest of scripts/build.sh release
#   tests     ctest after it
#   quick     attnbench reproduce --quick, untimed recipes
#   edits     from an edit of a file to the linked program; the first line of a pair is the first edit, the second a later one
#   gate      .ci/run; it prints what each of its parts takes
# To compare two commits, measure both on one machine in turns, with nothing else on it: minutes depend on the machine, ratios
# hardly.
set -euo pipefail

case "${1:-}" in
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if ! commit=$(git -C "$root" rev-parse --quiet --verify "${1:-}^{commit}"); then
  echo "build_weight.sh: '${1:-}' is no commit; expected one, such as HEAD" >&2
  exit 2
fi
shift
folder=$root/build/weight
if [[ "${1:-}" == */* ]]; then folder=$(mkdir -p "$1" && cd "$1" && pwd); shift; fi
parts=("$@")
[ $# -gt 0 ] || parts=(program all tests quick edits)
known=" program all tests quick edits gate "
for part in "${parts[@]}"; do
  if [[ "$known" != *" $part "* ]]; then
    echo "build_weight.sh: unknown part '$part'; expected some of:$known" >&2
    exit 2
  fi
done
clone=$folder/${commit:0:8}
if [ ! -d "$clone" ]; then
  git clone --quiet "$root" "$clone"
  git -C "$clone" checkout --quiet -B main "$commit"
fi
cd "$clone"

# measure NAME COMMAND...: its processor time includes that of all processes that it waits for.
measure() {
  local name=$1 status=0
  shift
  TIMEFORMAT="%U %S %R"
  { time "$@" > "$folder/log" 2>&1 || status=$?; } 2> "$folder/times"
  awk -v name="$name" -v status="$status" '{ printf "%-44s %7.1f s (%.1f s)%s\n", name, $1 + $2, $3,
    status ? "  exit code " status : "" }' "$folder/times"
}

edited=(harness/cli/plot.cpp approximations/sparse/local.cpp approximations/linear/linear_attention.cpp
        experiments/recipes/rank.cpp harness/store/store.hpp harness/core/approximation.hpp)
for part in "${parts[@]}"; do
  case $part in
    program) measure "program and Python module" scripts/build.sh release attnbench attnbench_python ;;
    all) measure "the rest of the release build" scripts/build.sh release ;;
    tests) measure "tests" ctest --preset release ;;
    quick) measure "quick reproduction" build/release/attnbench reproduce --untimed --results "$folder/quick.db" \
             -o "$folder/report" ;;
    edits)
      for file in "${edited[@]}"; do
        for _ in 1 2; do
          echo "// edited" >> "$file"
          measure "$file" scripts/build.sh release attnbench
        done
        git checkout --quiet -- "$file"
      done ;;
    gate) measure "gate" .ci/run; grep '^== ' "$folder/log" ;;
  esac
done
