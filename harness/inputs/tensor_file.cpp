#include "harness/inputs/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "harness/errors/error.hpp"
#include "harness/inputs/npz.hpp"
#include "harness/inputs/safetensors.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

std::string first_bytes(const std::filesystem::path& path) {
  std::array<char, 9> bytes{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<size_t>(stream.gcount())};
}

// The axes of q, k or v as (batches, heads, n, width).
std::array<Index, 4> four_axes(const std::vector<Index>& shape) {
  std::array<Index, 4> axes{1, 1, 1, 1};
  std::copy_backward(shape.begin(), shape.end(), axes.end());
  return axes;
}

void check_axes(const Tensor& tensor, const char* name, size_t axes, const std::string& file) {
  const auto& shape = tensor.shape;
  if (shape.size() < 2 || shape.size() > 4)
    throw Misuse(fmt::format("{}: {} has the shape {}; expected [n, d], [heads, n, d] or [batch, heads, n, d]", file,
                             name, shown(shape)));
  if (shape.size() != axes)
    throw Misuse(fmt::format("{}: {} has the shape {}, q has {} axes; give q, k and v the same layout", file, name,
                             shown(shape), axes));
  if (tensor.values.empty())
    throw Misuse(
        fmt::format("{}: {} has the shape {} and no values; every axis must be at least 1", file, name, shown(shape)));
}

void check_finite(const Tensor& tensor, const std::string& name, const std::string& file) {
  const auto bad =
      std::find_if_not(tensor.values.begin(), tensor.values.end(), [](double x) { return std::isfinite(x); });
  if (bad == tensor.values.end()) return;
  Index place = bad - tensor.values.begin();
  std::vector<Index> index(tensor.shape.size());
  for (size_t axis = index.size(); axis-- > 0; place /= tensor.shape[axis]) index[axis] = place % tensor.shape[axis];
  throw Misuse(
      fmt::format("{}: {}{} is {}; every value must be finite: fix the tensor, or cut the tokens that are padding off",
                  file, name, shown(index), *bad));
}

// A further input has the rows and columns of its need, and the heads of q, those of k, or none.
void check_extra(const Need& need, const Tensor& tensor, const AttentionFile& file, const std::string& path) {
  const auto [rows, columns] = size_of(need, {.nq = file.nq, .nk = file.nk, .d = file.d, .dv = file.dv});
  const std::vector<Index> own{rows, columns};
  const auto with_axes_of = [&](const Tensor& other) {
    std::vector<Index> shape = other.shape;
    std::copy(own.begin(), own.end(), shape.end() - 2);
    return shape;
  };
  if (tensor.shape != own && tensor.shape != with_axes_of(file.q) && tensor.shape != with_axes_of(file.k))
    throw Misuse(fmt::format("{}: {} has the shape {}; expected {} ({}){}", path, shown(need.name), shown(tensor.shape),
                             shown(own), words_of(need),
                             file.leading.empty() ? "" : ", or " + shown(with_axes_of(file.q)) + " for each head"));
  check_finite(tensor, shown(need.name), path);
}

// Files of other programs may have one; without it, padding would be taken for tokens.
void refuse_masks(const std::vector<std::string>& left_out, const std::string& path) {
  for (const std::string& name : left_out)
    if (name.find("mask") != std::string::npos)
      throw Misuse(
          fmt::format("{}: it has '{}' beside q, k and v, and a file's heads have no mask: write a file without "
                      "it, in which every token counts (the first `length` of them: q[..., :length, :]), and "
                      "give --causal where it was causal",
                      path, shown(name)));
}

In<double> matrix_of(const Tensor& tensor, Index position) {
  const auto [batches, heads, n, width] = four_axes(tensor.shape);
  return {tensor.values.data() + position * n * width, n, width, width};
}

}  // namespace

NamedTensors read_tensors(const std::filesystem::path& path, const std::vector<std::string>& only,
                          const std::vector<std::string>& if_there, std::vector<std::string>* left_out) {
  size_of_regular_file(path);  // throws if it is not a regular file
  const std::string start = first_bytes(path);
  const bool zip = start.starts_with("PK"), npz = path.extension() == ".npz";
  if (start.starts_with("\x93NUMPY"))
    throw Misuse(fmt::format("{}: a single .npy array; put q, k and v into one .npz with numpy.savez", path.string()));
  if (path.extension() == ".safetensors" && zip)
    throw Misuse(fmt::format("{}: a zip archive, no safetensors file; name it .npz if NumPy wrote it", path.string()));
  if (path.extension() == ".safetensors" || (!npz && !zip && start.ends_with('{') && start.size() == 9))
    return read_safetensors(path, only, if_there, left_out);
  if (npz || zip) return read_npz(path, only, if_there, left_out);
  if (path.extension() == ".pt" || path.extension() == ".pth") refuse_file_of_pytorch(path.string());
  throw Misuse(fmt::format("{}: neither .safetensors nor .npz by its name and first bytes; convert it to one of them",
                           path.string()));
}

Matrix<double> as_matrix(const Tensor& tensor, const std::string& name) {
  const auto& shape = tensor.shape;
  if (shape.empty() || shape.size() > 2)
    throw Misuse(fmt::format("tensor '{}' has the shape {}; expected one or two axes", shown(name), shown(shape)));
  return In<double>(tensor.values.data(), shape.size() == 1 ? 1 : shape.front(), shape.back(), shape.back());
}

Tensor as_tensor(const Matrix<double>& matrix) {
  return {{matrix.rows(), matrix.cols()}, {matrix.data(), matrix.data() + matrix.size()}};
}

Head<double> AttentionFile::head(Index batch, Index head) const {
  if (batch < 0 || batch >= batches || head < 0 || head >= heads)
    throw Misuse(fmt::format("batch={}, head={} was asked for; the file has batches 0 to {} and heads 0 to {}", batch,
                             head, batches - 1, heads - 1));
  const Index key_position = batch * key_heads + head * key_heads / heads;
  return {matrix_of(q, batch * heads + head), matrix_of(k, key_position), matrix_of(v, key_position)};
}

Extras AttentionFile::extras(Index batch, Index head) const {
  Extras of_head;
  for (const auto& [name, given] : extra) {
    const auto& [need, tensor] = given;
    const Index own = four_axes(tensor.shape)[1];  // heads: of q, of k, or one for all
    of_head[name] = extra_of(need, matrix_of(tensor, tensor.shape.size() == 2 ? 0 : batch * own + head * own / heads));
  }
  return of_head;
}

AttentionFile read_attention_file(const std::filesystem::path& path, const std::vector<Need>& needs) {
  std::vector<std::string> if_there;
  for (const Need& need : needs) if_there.push_back(need.name);
  std::vector<std::string> left_out;
  auto tensors = read_tensors(path, {"q", "k", "v"}, if_there, &left_out);
  refuse_masks(left_out, path.string());
  AttentionFile file;
  file.q = std::move(tensors["q"]);
  file.k = std::move(tensors["k"]);
  file.v = std::move(tensors["v"]);
  const std::string name = path.string();
  check_axes(file.q, "q", file.q.shape.size(), name);
  check_axes(file.k, "k", file.q.shape.size(), name);
  check_axes(file.v, "v", file.q.shape.size(), name);

  const auto [q_batches, q_heads, nq, d] = four_axes(file.q.shape);
  const auto [k_batches, k_heads, nk, k_width] = four_axes(file.k.shape);
  const auto [v_batches, v_heads, v_rows, dv] = four_axes(file.v.shape);
  const auto refuse = [&](const std::string& expected) {
    throw Misuse(fmt::format("{}: q {}, k {}, v {}: {}", name, shown(file.q.shape), shown(file.k.shape),
                             shown(file.v.shape), expected));
  };
  if (k_width != d) refuse(fmt::format("d is {} for q and {} for k; expected the same", d, k_width));
  if (v_rows != nk) refuse(fmt::format("k has {} keys and v {} values; expected the same", nk, v_rows));
  if (k_batches != q_batches || v_batches != q_batches) refuse("the batches differ; expected the same");
  if (v_heads != k_heads) refuse("k and v have different heads; expected the same");
  if (q_heads % k_heads != 0) refuse("the heads of q are not a multiple of those of k; expected groups of equal size");
  check_finite(file.q, "q", name);
  check_finite(file.k, "k", name);
  check_finite(file.v, "v", name);

  file.leading.assign(file.q.shape.begin(), file.q.shape.end() - 2);
  file.batches = q_batches;
  file.heads = q_heads;
  file.key_heads = k_heads;
  file.nq = nq;
  file.nk = nk;
  file.d = d;
  file.dv = dv;
  for (const Need& need : needs)
    if (const auto found = tensors.find(need.name); found != tensors.end()) {
      check_extra(need, found->second, file, name);
      file.extra.emplace(need.name, std::pair(need, std::move(found->second)));
    }
  return file;
}

}  // namespace attnbench
