#include "harness/inputs/checkpoint/cached_weights.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/mapped_file.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Index number_count(const ModelWeight& weight) { return weight.rows * weight.columns; }

// The weights that the checkpoint has, in the order of the file.
std::vector<ModelWeight> present_weights(const Checkpoint& checkpoint) {
  std::vector<ModelWeight> present;
  for (const ModelWeight& weight : weights_of(checkpoint.sizes)) {
    if (checkpoint.has(weight)) {
      present.push_back(weight);
    } else if (!optional_weight(weight.name)) {
      throw Misuse(fmt::format("{}: there is no weight '{}'{}; the file is not complete", checkpoint.title, weight.name,
                               weight.layer < 0 ? "" : fmt::format(" of layer {}", weight.layer)));
    }
  }
  return present;
}

// Removes a file that was not finished.
struct UnfinishedFile {
  std::filesystem::path path;
  ~UnfinishedFile() {
    std::error_code error;
    std::filesystem::remove(path, error);
  }
};

void convert(const Checkpoint& checkpoint, const std::vector<ModelWeight>& weights, const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& why) {
    throw Misuse(
        fmt::format("{}: {}; free it, or set ATTNBENCH_CACHE to another folder", path.parent_path().string(), why));
  };
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) refuse("the folder cannot be made (" + error.message() + ")");
  const UnfinishedFile unfinished{fmt::format("{}.{}", path.string(), getpid())};
  std::ofstream out(unfinished.path, std::ios::binary);
  std::vector<float> numbers;
  double bytes = 0;
  for (const ModelWeight& weight : weights) {
    numbers.resize(static_cast<size_t>(number_count(weight)));
    checkpoint.read(weight, numbers);
    for (const float number : numbers)
      if (!std::isfinite(number))
        throw Misuse(fmt::format("{}: the weight '{}'{} holds NaN or infinity; the file is damaged", checkpoint.title,
                                 weight.name, weight.layer < 0 ? "" : fmt::format(" of layer {}", weight.layer)));
    const auto size = static_cast<std::streamsize>(numbers.size() * sizeof(float));
    out.write(reinterpret_cast<const char*>(numbers.data()), size);
    bytes += static_cast<double>(size);
  }
  out.close();
  if (!out) refuse(fmt::format("the weights in float ({}) cannot be written", memory_size(bytes)));
  std::filesystem::rename(unfinished.path, path, error);
  if (error) refuse("the weights in float cannot be renamed (" + error.message() + ")");
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const std::string chosen = variable("ATTNBENCH_CACHE"); !chosen.empty()) return chosen;
  if (const std::string chosen = variable("XDG_CACHE_HOME"); !chosen.empty())
    return std::filesystem::path(chosen) / "attnbench";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "attnbench";
  throw Misuse("there is no cache folder, because HOME is not set; set ATTNBENCH_CACHE to a folder");
}

std::map<std::pair<std::string, Index>, Weights<float>> cached_weights(const Checkpoint& checkpoint,
                                                                       const std::string& key) {
  const std::vector<ModelWeight> weights = present_weights(checkpoint);
  Index count = 0;
  for (const ModelWeight& weight : weights) count += number_count(weight);
  const std::filesystem::path path = cache_folder() / "weights" / (key + ".f32");
  std::error_code error;
  if (std::filesystem::file_size(path, error) != static_cast<std::uintmax_t>(count) * sizeof(float) || error)
    convert(checkpoint, weights, path);
  const auto mapped = std::make_shared<const MappedFile>(path, "weights that attnbench wrote");
  const auto* next = reinterpret_cast<const float*>(mapped->bytes().data());
  std::map<std::pair<std::string, Index>, Weights<float>> all;
  for (const ModelWeight& weight : weights) {
    all[{weight.name, weight.layer}] = Weights<float>(next, weight.rows, weight.columns, mapped);
    next += number_count(weight);
  }
  return all;
}

}  // namespace attnbench
