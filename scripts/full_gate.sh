#!/usr/bin/env bash
# Everything that can be tested: .ci/run; lint of every file; whether a cell goes stale with each source that it needs; all
# tests under sanitizers; fuzzing of every parser; everything on several threads; the wheel and the tarball in a system without
# compilers; planted mistakes; AArch64 under an emulator. Takes hours. A part that fails does not end the others; the last lines
# say how each part ended, and the exit code is 1 if one failed.
#   scripts/full_gate.sh               all parts
#   scripts/full_gate.sh PART...       some of: gate lint sources sanitizers fuzzing threads wheel mistakes mutations aarch64
# Needs root, for debootstrap and chroot. Run it once when you finish a part of work, and write down how it ended.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
gate() { .ci/run; }
lint() { scripts/lint.sh --all; }
sources() {  # whose change makes a cell stale are all that it needs: this shows where each file is compiled alone
  scripts/build.sh dev attnbench_tests
  ctest --preset dev
}
sanitizers() {
  scripts/build.sh sanitize attnbench_tests attnbench
  ctest --preset sanitize
}
fuzzing() {
  scripts/build.sh sanitize fuzz_targets
  ctest --preset fuzz
}
threads() {
  scripts/build.sh threads threads_tests
  ctest --preset threads
}
wheel() { scripts/test_wheel.sh; }
mistakes() {  # of every group; README's test command takes those that show without statistics
  scripts/build.sh release
  /usr/bin/python3 tests/mistakes/mistakes_test.py build/release
}
mutations() {
  scripts/build.sh release
  scripts/mutate.py
}
aarch64() { scripts/aarch64.sh; }

all=(gate lint sources sanitizers fuzzing threads wheel mistakes mutations aarch64)
case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
for name in "$@"; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "full_gate.sh: unknown part '$name'; expected some of: ${all[*]}" >&2
    exit 2
  fi
done
chosen=("$@")
[ $# -gt 0 ] || chosen=("${all[@]}")
scripts/setup.sh --ci
source scripts/gate_parts.sh
ended=() failed=0
for name in "${chosen[@]}"; do
  part "$name"
  # In a shell of its own, in which the first command that fails ends the part.
  if bash -euo pipefail -c "$(declare -f "$name"); $name"; then
    ended+=("$name: passed")
  else
    ended+=("$name: FAILED") failed=1
  fi
done
part "done"
printf '%s\n' "${ended[@]}"
exit $failed
