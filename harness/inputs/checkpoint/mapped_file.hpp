// A file as bytes in memory. The system reads the pages that are used, when they are used.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace attnbench {

class MappedFile {
 public:
  // Throws Misuse if the path is not a regular file that can be read; `expected` ("a .gguf file") completes the
  // message.
  MappedFile(const std::filesystem::path& path, std::string_view expected);

  // Valid while this object or a copy of it exists. A process that shortens the file meanwhile crashes its readers.
  std::span<const unsigned char> bytes() const { return {first_.get(), size_}; }

 private:
  std::shared_ptr<const unsigned char> first_;
  size_t size_ = 0;
};

}  // namespace attnbench
