#include "harness/inputs/captured_heads.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "harness/errors/error.hpp"
#include "harness/inputs/last_read.hpp"
#include "harness/inputs/tensor_formats.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

std::string hash_of_file(const std::filesystem::path& path) {
  const auto size = size_of_regular_file(path);
  refuse_beyond_memory(static_cast<double>(size), path.string(), "use a smaller file");
  std::string bytes(size, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream) throw Misuse(fmt::format("{}: cannot be read to its end; check the file", path.string()));
  return fmt::format("{:016x}", hash_bytes(bytes));
}

}  // namespace

std::string version_of(const std::filesystem::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return path.string();  // reading the file will report the problem
  return fmt::format("{}\n{} {} {} {}.{}", path.string(), found.st_dev, found.st_ino, found.st_size,
                     found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

std::shared_ptr<const AttentionFile> captured_heads(const std::filesystem::path& path, const std::vector<Need>& needs) {
  // Two: a model's measured and calibration heads. Files may be as large as memory allows, so we keep no more.
  static LastRead<std::shared_ptr<const AttentionFile>, 2> files;
  std::string key = version_of(path);
  for (const Need& need : needs) key += "\n" + need.name + " " + words_of(need);
  return files.get(key, [&] { return std::make_shared<const AttentionFile>(read_attention_file(path, needs)); });
}

CapturedSizes captured_sizes(const std::filesystem::path& path) {
  static LastRead<CapturedSizes, 16> sizes;
  return sizes.get(version_of(path), [&] {
    const auto file = captured_heads(path);
    return CapturedSizes{file->batches, limits_of(*file)};
  });
}

std::string content_hash(const std::filesystem::path& path) {
  static LastRead<std::string, 16> hashes;
  return hashes.get(version_of(path), [&] { return hash_of_file(path); });
}

HeadData<double> first_tokens(const AttentionFile& file, Index batch, Index head, const InputRequest& request) {
  // The limits come from the measured file. The calibration file may have other sizes, and either may be rewritten.
  if (request.nq > file.nq || request.nk > file.nk || request.d != file.d || request.dv != file.dv)
    throw Misuse(fmt::format(
        "nq={}, nk={}, d={}, dv={} was asked for and a {} file has nq={}, nk={}, d={}, dv={}; give "
        "files of the same sizes, or a smaller n",
        request.nq, request.nk, request.d, request.dv,
        request.purpose == Purpose::measured ? "measured" : "calibration", file.nq, file.nk, file.d, file.dv));
  const Extras extra = file.extras(batch, head);
  Head<double> whole = file.head(batch, head);
  whole.extra = &extra;
  const HeadPart<double> part(whole, 0, request.nq, 0, request.nk);
  const Head<double> view = part.view();
  return {view.Q, view.K, view.V, *view.extra};
}

InputLimits limits_of(const AttentionFile& file) {
  return {.queries = file.nq, .keys = file.nk, .d = file.d, .dv = file.dv, .heads = file.heads};
}

}  // namespace attnbench
