#include "harness/inputs/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

struct OpenFile {
  int descriptor;
  explicit OpenFile(const std::filesystem::path& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
};

[[noreturn]] void refuse_unreadable(const std::filesystem::path& path) {
  throw Misuse(fmt::format("{}: cannot be read: {}; check its permissions and its disk", path.string(),
                           std::generic_category().message(errno)));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view expected) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw Misuse(fmt::format("{}: there is no such file; expected {}", path.string(), expected));
  if (!std::filesystem::is_regular_file(status))  // opening a pipe would wait for its writer
    throw Misuse(fmt::format("{}: not a regular file; expected {}", path.string(), expected));
  const OpenFile file(path);
  struct stat facts {};
  if (file.descriptor < 0 || fstat(file.descriptor, &facts) != 0) refuse_unreadable(path);
  const auto size = static_cast<size_t>(facts.st_size);
  if (size == 0) return;  // a mapping has at least one byte
  void* first = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (first == MAP_FAILED) refuse_unreadable(path);
  first_ = {static_cast<const unsigned char*>(first), [first, size](const unsigned char*) { munmap(first, size); }};
  size_ = size;
}

}  // namespace attnbench
