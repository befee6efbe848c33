// Checks of a parser in fuzz targets, beside the sanitizers: no allocation above a constant times the input's size,
// and properties of what it returns. Breaking either ends the program, so that libFuzzer keeps the input.
#pragma once

#include <sanitizer/allocator_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace attnbench {

inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", property);
  std::abort();
}

// While it lives, an allocation of more than `bytes` ends the program.
class AllocationBound {
 public:
  explicit AllocationBound(size_t bytes) {
    static const int installed = __sanitizer_install_malloc_and_free_hooks(refuse_beyond, ignore);
    require(installed != 0, "the sanitizer takes hooks");
    limit = bytes;
  }
  AllocationBound(const AllocationBound&) = delete;
  AllocationBound& operator=(const AllocationBound&) = delete;
  ~AllocationBound() { limit = SIZE_MAX; }

 private:
  static inline thread_local size_t limit = SIZE_MAX;
  static void refuse_beyond(const volatile void*, size_t bytes) {
    if (bytes <= limit) return;
    std::fprintf(stderr, "broken: an allocation of %zu bytes; at most %zu for this input\n", bytes, limit);
    std::abort();
  }
  static void ignore(const volatile void*) {}
};

inline std::string_view text_of(const std::uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file in memory with these bytes, for readers that take a path: one file, rewritten.
inline std::string file_of(std::string_view bytes) {
  static const int file = memfd_create("fuzz", 0);
  require(file >= 0 && ftruncate(file, 0) == 0 &&
              pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "a file in memory can be written");
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace attnbench
