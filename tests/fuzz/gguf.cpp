// GGUF files: every value of the metadata in every form, and the numbers of every tensor.
#include "harness/inputs/checkpoint/gguf.hpp"

#include "harness/errors/error.hpp"
#include "harness/inputs/tensor_formats.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

namespace {

template <class T>
void ask(const GgufFile& file, const std::string& key) {
  try {
    require(file.metadata_if_there<T>(key).has_value(), "a key of the header is there");
  } catch (const Misuse&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  // An array of texts takes 8 bytes for each, and a std::string 32; a block of 18 bytes becomes 128.
  const AllocationBound bound(65536 + 64 * size);
  const std::string path = file_of(text_of(data, size));
  try {
    // The class does not list its keys, so the header is read a second time.
    const MappedFile mapped(path, "a .gguf file");
    const GgufHeader header = read_gguf_header(mapped.bytes(), path);
    const GgufFile file(path);
    for (const auto& [key, value] : header.metadata) {
      ask<std::string>(file, key);
      ask<bool>(file, key);
      ask<Index>(file, key);
      ask<double>(file, key);
      ask<std::vector<std::string>>(file, key);
      ask<std::vector<Index>>(file, key);
      ask<std::vector<double>>(file, key);
    }
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      bytes += tensor.bytes.size();
      require(number_count(tensor.shape) == tensor.count, "the count of a tensor is the product of its shape");
      require(tensor.count * tensor.type->bytes == static_cast<Index>(tensor.bytes.size()) * tensor.type->numbers,
              "a tensor has as many blocks as its shape says");
      if (!tensor.type->dequantise) continue;
      std::vector<float> numbers(static_cast<size_t>(tensor.count));
      file.read(name, numbers);
    }
    require(bytes <= size, "tensors do not overlap");
  } catch (const Misuse&) {
  }
  return 0;
}
