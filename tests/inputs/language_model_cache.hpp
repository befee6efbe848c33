// A temporary cache folder, and tiny language models as files beside it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/folder.hpp"
#include "tests/inputs/tiny_language_model.hpp"

namespace attnbench {

// A folder that is the cache for as long as it exists.
class LanguageModelCache {
 public:
  LanguageModelCache() : before_(std::getenv("ATTNBENCH_CACHE") ? std::getenv("ATTNBENCH_CACHE") : "") {
    setenv("ATTNBENCH_CACHE", (folder_ / "cache").c_str(), 1);
  }
  ~LanguageModelCache() {
    before_.empty() ? unsetenv("ATTNBENCH_CACHE") : setenv("ATTNBENCH_CACHE", before_.c_str(), 1);
  }
  LanguageModelCache(const LanguageModelCache&) = delete;
  LanguageModelCache& operator=(const LanguageModelCache&) = delete;
  std::string operator/(const std::string& name) const { return folder_ / name; }

  std::string gguf(const TinyLanguageModel& model, const std::string& name = "tiny.gguf") const {
    return write_bytes(folder_ / name, model.gguf().bytes()).string();
  }
  std::string folder(const TinyLanguageModel& model, size_t parts = 1, const std::string& name = "tiny") const {
    std::filesystem::remove_all(folder_ / name);
    model.write_folder(folder_ / name, parts);
    return folder_ / name;
  }
  size_t converted() const {
    std::error_code error;
    size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache/weights", error))
      files += file.path().extension() == ".f32" ? 1 : 1000;
    return files;
  }

 private:
  Folder folder_;
  std::string before_;
};

}  // namespace attnbench
