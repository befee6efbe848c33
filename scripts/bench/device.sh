#!/usr/bin/env bash
# Times methods in PyTorch on a GPU: softmax by each of PyTorch's implementations and as a kernel in Triton, linear attention, Performer,
# a window, a window with sinks, Quest, and softmax over 4 bits, with 8 heads of 64 in bfloat16, bidirectional and causal; then one step of
# decoding, of one head.
#   scripts/bench/device.sh [DEVICE [N...]]     DEVICE: cuda (default), cuda:1, ...; N: 1024 to 65536 (default)
# PYTHON says the interpreter, which needs torch and triton (default: python3). Rows go into results/device.db. Each length is a run of its
# own, so that what was measured stays when the time on a shared device is over; the same command goes on there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
device=${1:-cuda}
lengths=("${@:2}")
[ ${#lengths[@]} -gt 0 ] || lengths=(1024 4096 16384 65536)
decoders=(torch-softmax torch-sink-window torch-quest torch-quantised)
methods=(torch-linear torch-performer torch-local triton-softmax "${decoders[@]}")
for implementation in flash efficient cudnn math; do methods+=("torch-softmax:implementation=$implementation"); done
# run EXPERIMENT OPTION...
run() {
  build/release/attnbench run "$@" --plugin tests/plugins/python/triton_softmax.py --python "${PYTHON:-python3}" --device "$device" \
    --dtype bfloat16 -d 64 --results results/device.db ||
    [ $? = 1 ]  # cells that failed, such as for want of memory: their rows say why
}
for n in "${lengths[@]}"; do
  for mask in bidirectional causal; do run speed --methods "${methods[@]}" -n "$n" --heads 8 "--$mask"; done
done
run decode --methods "${decoders[@]}" -n "$(IFS=,; echo "${lengths[*]}")" --causal
