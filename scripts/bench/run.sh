#!/usr/bin/env bash
# Measures the engines and prints what was asked of them beside what they reach on this machine: roofline fractions, ratios
# to other libraries (peers.sh), threads, products of bfloat16, exponents, memory, what a tenth of the FLOPs buys, decoding,
# gradients, kernel statistics, spectra.
#   scripts/bench/run.sh [--quick] [RESULTS]    RESULTS: a file, which is replaced (default results/bench.db)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

blocks=11 turn=60 longest=65536 quick=()
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) blocks=7 turn=20 longest=16384 quick=(--quick) ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option '$1'; expected --quick or a results file" >&2; exit 2 ;;
    *) results=$1 ;;
  esac
  shift
done
results=${results:-results/bench.db}
mkdir -p "$(dirname "$results")"
rm -f "$results"

scripts/setup.sh
scripts/build.sh release attnbench
attnbench() { build/release/attnbench run "$@" --precision "${precision:-f32}" --results "$results" > /dev/null; }
approximations=(--method performer --method performer:features=trig --method linear --method local)

echo "== one call of 8 heads, n = 4096, one thread"
patterns=(--method longformer --method bigbird --method truncated --method sink-window)
attnbench "speed:blocks=$blocks,turn=$turn" --method softmax "${approximations[@]}" "${patterns[@]}" --method linformer \
  --method nystrom --method vq --method clustered --method reformer --method combine \
  -n 4096 -d 64 --heads 8 --threads 1 --bidirectional
attnbench "speed:blocks=$blocks,turn=$turn" --method softmax "${approximations[@]}" "${patterns[@]}" \
  -n 4096 -d 64 --heads 8 --threads 1 --causal
for n in 512 1024 2048; do
  attnbench "speed:blocks=$blocks,turn=$turn" --method "combine:[local],[linear]" --match "flops=$((n * n * 64))" \
    -n "$n" -d 64 --threads 1 --bidirectional
done

echo "== one thread and two, in turns"
for replicates in 1 2 3; do
  for threads in 1 2; do
    for mask in bidirectional causal; do
      attnbench "speed:blocks=5,turn=$turn" --method softmax --method performer --method linear \
        -n 4096 -d 64 --heads 8 --threads "$threads" "--$mask" --replicates "$replicates"
    done
  done
done

echo "== float and products of bfloat16, in turns"
# Exit 1: skipped, because the processor has no such instruction.
for replicates in 1 2 3; do
  for operands in f32 bf16; do
    precision=$operands attnbench "speed:blocks=5,turn=$turn" --method softmax --method performer --method linear --method local --method nystrom \
      -n 1024 -n 4096 -n 16384 -d 64 --heads 2 --threads 1 --bidirectional --replicates "$replicates" || [ $? -eq 1 ]
  done
done

echo "== n = 4096 to $longest: time and memory of one head"
attnbench "speed:blocks=$blocks,turn=$turn" --method performer --method linear --method performer:features=trig \
  --method polynomial --method cosformer --sweep "n=4096:$longest:x4" -d 64 --threads 1 --bidirectional
attnbench "speed:blocks=$blocks,turn=$turn" --method performer --method linear \
  --sweep "n=4096:$longest:x4" -d 64 --threads 1 --causal
attnbench "speed:blocks=2,turn=1" --method softmax -n "$longest" -d 64 --threads 1 --bidirectional

echo "== the methods of the field, n = 4096 to $longest, at as many FLOPs a token"
field=()
for method in linformer nystrom vq soft-vq local dilated strided sparse-fixed longformer bigbird truncated reformer \
              routing clustered improved-clustered sinkhorn combine fnet; do
  field+=(--method "$method")
done
for ((n = 4096; n <= longest; n *= 4)); do
  attnbench "speed:blocks=5,turn=$turn,pair=false" "${field[@]}" --match "flops=$((n * 100000))" \
    -n "$n" -d 64 --threads 1 --bidirectional
done

echo "== the methods since 2022, n = 16384, at a tenth of exact attention's FLOPs"
since=()
for method in sampled hyper kdeformer magicpig wildcat thinformer lara eva skyformer performer:features=polysketch \
              quest moba loki sparq evict mra multipole; do
  since+=(--method "$method")
done
attnbench "speed:blocks=6,turn=$turn" "${since[@]}" --match "flops=$((16384 * 16384 * 64 * 4 / 10))" \
  -n 16384 -d 64 --threads 1 --bidirectional

echo "== decoding"
attnbench "decode:blocks=$((4 * blocks)),from=1000" --method softmax --method linear --method performer \
  -n 1000 -n 4096 -n 16384 -n 65000 -d 64 --threads 1 --causal

echo "== gradients"
attnbench "training-step:blocks=$blocks,turn=$turn" --method softmax --method performer --method linear \
  -n 4096 -d 64 --heads 8 --threads 1 --causal

echo "== other libraries"
scripts/bench/peers.sh "${quick[@]}" "$results"
attnbench "speed:blocks=6,turn=$turn,peer=scripts/bench/peers/pytorch_since_2022.py" "${since[@]}" \
  --match "flops=$((16384 * 16384 * 64 * 4 / 10))" -n 16384 -d 64 --threads 1 --bidirectional --python build/peers/bin/python
/usr/bin/python3 scripts/bench/kernel_statistics.py
/usr/bin/python3 scripts/bench/spectra.py
