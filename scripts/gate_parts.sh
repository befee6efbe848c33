# Sourced by .ci/run and scripts/full_gate.sh.

# part NAME: says that a part begins, after how much time, and after how much processor time of all that this shell has
# waited for: on a machine with other work this says more than the clock.
part() {
  local stat ticks
  read -r -a stat < "/proc/$BASHPID/stat"
  ticks=$((stat[15] + stat[16]))
  printf '== %s (%d:%02d, %d.%d processor minutes)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)) $((ticks / 6000)) \
    $((ticks % 6000 / 600))
}
