// Results files for tests: cells to record, and what they read as.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "harness/store/export.hpp"
#include "tests/folder.hpp"

namespace attnbench {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline CellRow cell(const std::string& method, Index n = 64) {
  return {.key = method + "/" + std::to_string(n),
          .experiment = "kernel-error:draws=8",
          .method = method,
          .input = "gaussian",
          .shape = {.nq = n, .nk = n, .d = 16, .dv = 16, .mask = {.causal = true}, .precision = Precision::f64},
          .heads = 2,
          .logit_scale = 0.5,
          .seed = 18446744073709551615u,
          .parameters = R"({"m":256})",
          .source_version = "0123456789abcdef"};
}

inline Measurement scalar(const std::string& metric, double value) { return {metric, "1", {}, {value}}; }

// Everything that the file holds.
inline std::string csv(const Store& store, bool clock = false) {
  std::ostringstream out;
  store.export_table(out, {.arrays = true, .clock = clock});
  return out.str();
}

}  // namespace attnbench
