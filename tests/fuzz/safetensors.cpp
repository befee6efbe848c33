// Safetensors files, and the heads in those that have q, k and v.
#include "harness/inputs/safetensors.hpp"

#include "tests/fuzz/heads.hpp"

using namespace attnbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound(65536 + 64 * size);  // float16 becomes double; maps hold a header's names
  const std::string path = file_of(text_of(data, size));
  read_heads(path, [&] { return read_safetensors(path, {}, {}); });
  return 0;
}
