#!/usr/bin/env bash
# Measures exact attention, and linear ones where a peer has them, beside other libraries: one thread and two, with and without
# a causal mask, n = 512 to 16384. Prints the fastest peer of each.
#   scripts/bench/peers.sh [--quick] [RESULTS]    RESULTS: a file, which gets the rows (default results/peers.db)
# The first run installs the libraries (install_peers.sh). Debian's PyTorch (apt-get install python3-torch) is measured as
# well where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

blocks=9 turn=60 longest=16384
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) blocks=7 turn=20 longest=4096 ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "peers.sh: unknown option '$1'; expected --quick or a results file" >&2; exit 2 ;;
    *) results=$1 ;;
  esac
  shift
done
results=${results:-results/peers.db}
mkdir -p "$(dirname "$results")"

scripts/bench/install_peers.sh
peers=(pytorch onnx_runtime openvino_cpu jax_cpu)
if /usr/bin/python3 -c "import torch" 2> /dev/null; then
  peers+=(debian_pytorch)
fi

scripts/build.sh release attnbench
for peer in "${peers[@]}"; do
  methods=(--method softmax)
  case "$peer" in
    *pytorch) methods+=(--method linear --method performer --method local) ;;
    jax_cpu) methods+=(--method linear --method performer) ;;
  esac
  for threads in 1 2; do
    for mask in bidirectional causal; do
      forms=("${methods[@]}")
      if [ "$mask" = bidirectional ] && [[ $peer == *pytorch ]]; then
        forms+=(--method linformer --method nystrom --method vq)
      fi
      echo "== $peer, threads $threads, $mask"
      # Exit 1: a cell failed, such as one for which a library asks for more memory than there is. Its row says so.
      build/release/attnbench run "speed:blocks=$blocks,turn=$turn,peer=scripts/bench/peers/$peer.py" "${forms[@]}" \
        --sweep "n=512:$longest:x2" -d 64 --heads 8 --threads "$threads" "--$mask" --precision f32 \
        --python build/peers/bin/python --results "$results" > /dev/null || [ $? -eq 1 ]
    done
  done
done
/usr/bin/python3 scripts/bench/table.py "$results"
