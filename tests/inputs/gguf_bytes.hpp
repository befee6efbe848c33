// GGUF files made byte by byte, so that the reader is tested against the format and not against a writer.
#pragma once

#include <string>
#include <vector>

#include "tests/inputs/tensor_bytes.hpp"

namespace attnbench {

inline std::string gguf_text(const std::string& text) { return encoded(text.size(), 8) + text; }

// An array of elements of that type, each as the file writes it.
inline std::string gguf_array(std::uint32_t type, const std::vector<std::string>& elements) {
  std::string bytes = encoded(type, 4) + encoded(elements.size(), 8);
  for (const auto& element : elements) bytes += element;
  return bytes;
}

struct GgufBytes {
  std::uint32_t version = 3;
  size_t alignment = 32;
  std::uint64_t tensors = 0, entries = 0;
  std::string metadata = {}, places = {}, data = {};

  GgufBytes& entry(const std::string& key, std::uint32_t type, const std::string& value) {
    metadata += gguf_text(key) + encoded(type, 4) + value;
    ++entries;
    return *this;
  }
  // A tensor that lies anywhere. axes: the fastest first, as the file has them.
  GgufBytes& place(const std::string& name, const std::vector<std::uint64_t>& axes, std::uint32_t type,
                   std::uint64_t offset) {
    places += gguf_text(name) + encoded(axes.size(), 4);
    for (const auto axis : axes) places += encoded(axis, 8);
    places += encoded(type, 4) + encoded(offset, 8);
    ++tensors;
    return *this;
  }
  // A tensor after the ones before.
  GgufBytes& tensor(const std::string& name, const std::vector<std::uint64_t>& axes, std::uint32_t type,
                    const std::string& blocks) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    place(name, axes, type, data.size());
    data += blocks;
    return *this;
  }
  std::string bytes() const {
    std::string text = "GGUF" + encoded(version, 4) + encoded(tensors, 8) + encoded(entries, 8) + metadata + places;
    text.resize((text.size() + alignment - 1) / alignment * alignment);
    return text + data;
  }
};

}  // namespace attnbench
