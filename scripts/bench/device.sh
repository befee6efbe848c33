#!/usr/bin/env bash
# Times methods in PyTorch on a GPU: softmax by each of PyTorch's implementations, linear attention, Performer, a window, and softmax as
# a kernel in Triton, with 8 heads of 64 in bfloat16, bidirectional and causal.
#   scripts/bench/device.sh [DEVICE [N...]]     DEVICE: cuda (default), cuda:1, ...; N: 1024 to 65536 (default)
# PYTHON says the interpreter, which needs torch and triton (default: python3). Rows go into results/device.db. Each length is a run of its
# own, so that what was measured stays when the time on a shared device is over; the same command goes on there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case "${1:-}" in
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
device=${1:-cuda}
lengths=("${@:2}")
[ ${#lengths[@]} -gt 0 ] || lengths=(1024 4096 16384 65536)
methods=(torch-softmax torch-linear torch-performer torch-local triton-softmax)
for implementation in flash efficient cudnn math; do methods+=("torch-softmax:implementation=$implementation"); done
for n in "${lengths[@]}"; do
  for mask in bidirectional causal; do
    build/release/attnbench run speed --plugin tests/plugins/python/triton_softmax.py --python "${PYTHON:-python3}" \
      --methods "${methods[@]}" --device "$device" --dtype bfloat16 -n "$n" -d 64 --heads 8 "--$mask" --results results/device.db ||
      [ $? = 1 ]  # cells that failed, such as for want of memory: their rows say why
  done
done
