// GGUF files, as llama.cpp reads and writes them: the metadata and the tensors of a language model.
#pragma once

#include <filesystem>
#include <optional>

#include "harness/inputs/checkpoint/gguf_header.hpp"
#include "harness/inputs/checkpoint/mapped_file.hpp"

namespace attnbench {

class GgufFile {
 public:
  // Maps the file and reads its header. Every size is checked before it is used, and nothing is allocated beyond a
  // constant times the file's size. Throws Misuse, as all members do: what is wrong, where, and what was expected.
  explicit GgufFile(const std::filesystem::path& path);

  const std::map<std::string, GgufTensor>& tensors() const { return header_.tensors; }
  bool has(const std::string& tensor) const { return header_.tensors.contains(tensor); }
  // Throws Misuse if there is no such tensor.
  const GgufTensor& tensor(const std::string& name) const;
  // Writes the tensor's numbers, row-major. Throws Misuse if `out` is not of their count, or if attnbench cannot
  // dequantise the type.
  void read(const std::string& tensor, std::span<float> out) const;

  // A metadata value. T and the types of GGUF that it accepts:
  //   std::string   string
  //   bool          bool
  //   Index         the integer types, if the value fits
  //   double        the float types, and integers below 2^53, which a double holds exactly
  //   std::vector of std::string, Index or double: an array of these
  // Throws Misuse for another type. If the key is absent, metadata throws Misuse and metadata_if_there gives nullopt.
  template <class T>
  T metadata(const std::string& key) const;
  template <class T>
  std::optional<T> metadata_if_there(const std::string& key) const;

 private:
  std::string file_;
  MappedFile mapped_;
  GgufHeader header_;  // points into the mapping
};

}  // namespace attnbench
