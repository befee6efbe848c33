#!/usr/bin/env bash
# Installs the libraries that attention is compared with, PyTorch, ONNX Runtime, OpenVINO and JAX, in build/peers (2 GB).
# scripts/setup.sh --ci installs python3-venv, which this needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

packages=(torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 jax==0.10.2 jaxlib==0.10.2)
if [ "$(cat build/peers/installed.txt 2> /dev/null)" != "${packages[*]}" ]; then
  echo "installing ${packages[*]} in build/peers"
  rm -rf build/peers
  mkdir -p build
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { /usr/bin/python3 -m venv build/peers &&
         build/peers/bin/pip install --disable-pip-version-check "${packages[@]}"; } > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "install_peers.sh: these packages could not be installed (above); scripts/setup.sh --ci installs python3-venv" >&2
    exit 1
  fi
  echo "${packages[*]}" > build/peers/installed.txt
fi
