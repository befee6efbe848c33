// Tensor files made byte by byte, so that the readers are tested against the formats and not against the writer; a
// folder to put them in; and what a reader says when it refuses one.
#pragma once

#include <unistd.h>
#include <zip.h>

#include <atomic>
#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/errors/error.hpp"

namespace attnbench {

inline std::filesystem::path write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(
      path);  // ext4 writes a file that is truncated and refilled to the disk at once: 10 times slower
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The message of the Misuse that the action throws; empty when it throws none. Other exceptions pass.
template <class Action>
std::string misuse(const Action& action) {
  try {
    action();
  } catch (const Misuse& error) {
    return error.what();
  }
  return "";
}

// An unsigned number of `bytes` bytes.
inline std::string encoded(std::uint64_t number, size_t bytes, std::endian order = std::endian::little) {
  std::string text;
  for (size_t b = 0; b < bytes; ++b)
    text += static_cast<char>(number >> (8 * (order == std::endian::little ? b : bytes - 1 - b)) & 0xff);
  return text;
}

inline std::string float64_bytes(const std::vector<double>& values, std::endian order = std::endian::little) {
  std::string text;
  for (const double value : values) text += encoded(std::bit_cast<std::uint64_t>(value), 8, order);
  return text;
}

inline std::string float32_bytes(const std::vector<double>& values, std::endian order = std::endian::little) {
  std::string text;
  for (const double value : values) text += encoded(std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4, order);
  return text;
}

inline std::string safetensors(const std::string& header, const std::string& numbers) {
  return encoded(header.size(), 8) + header + numbers;
}

// A .npy array of version 1.0; dictionary e.g. {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
inline std::string npy(const std::string& dictionary, const std::string& numbers) {
  std::string padded = dictionary;
  while ((10 + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  return "\x93NUMPY" + std::string{'\1', '\0'} + encoded(padded.size(), 2) + padded + numbers;
}

inline std::filesystem::path write_zip(const std::filesystem::path& path,
                                       const std::vector<std::pair<std::string, std::string>>& files,
                                       zip_int32_t compression = ZIP_CM_DEFLATE) {
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (!archive) throw std::runtime_error("cannot make " + path.string());
  for (const auto& [name, bytes] : files) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), compression, 0);
  }
  if (zip_close(archive) != 0) throw std::runtime_error("cannot write " + path.string());
  return path;
}

}  // namespace attnbench
