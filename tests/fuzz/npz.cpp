// NumPy's archives. Bytes that begin like a zip archive are one; any others are an array in a sound archive, as q, k
// and v, since hardly a change of an archive keeps its checksums.
#include "harness/inputs/npz.hpp"

#include <zip.h>

#include "tests/fuzz/heads.hpp"

using namespace attnbench;

namespace {

std::string archive_of(std::string_view array) {
  zip_source_t* memory = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_t* archive = zip_open_from_source(memory, ZIP_TRUNCATE, nullptr);
  zip_source_keep(memory);
  for (const char* name : {"q.npy", "k.npy", "v.npy"})
    zip_set_file_compression(archive,
                             static_cast<zip_uint64_t>(zip_file_add(
                                 archive, name, zip_source_buffer(archive, array.data(), array.size(), 0), 0)),
                             ZIP_CM_STORE, 0);
  require(zip_close(archive) == 0 && zip_source_open(memory) == 0, "an archive can be written to memory");
  zip_source_seek(memory, 0, SEEK_END);
  std::string bytes(static_cast<size_t>(zip_source_tell(memory)), '\0');
  zip_source_seek(memory, 0, SEEK_SET);
  zip_source_read(memory, bytes.data(), bytes.size());
  zip_source_free(memory);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  const std::string path = file_of(text.starts_with("PK") ? std::string(text) : archive_of(text));
  // Deflate makes up to 1032 bytes from one, and float16 becomes double. libzip makes room for the 65,535 entries that
  // the shortest archive can declare: 2 MB.
  const AllocationBound bound((size_t{3} << 20) + 4 * 1032 * size);
  read_heads(path, [&] { return read_npz(path, {}, {}); });
  return 0;
}
