// Tensors in files: .safetensors and .npz. Every size is checked before it is used.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/core/needs.hpp"

namespace attnbench {

struct Tensor {
  std::vector<Index> shape;    // row-major
  std::vector<double> values;  // float16, bfloat16, float32 and float64 are exact in double
};

using NamedTensors = std::map<std::string, Tensor>;

// The tensors of a .safetensors (F16, BF16, F32, F64) or .npz (f2, f4, f8, either byte order, C or Fortran order) file.
// only: names to read; empty reads all. if_there: names to read as well where the file has them. left_out, unless it is
// null, gets the names of the others. Throws Misuse that says what is wrong, where, and what was expected. Never
// allocates more than a constant times the file's size.
NamedTensors read_tensors(const std::filesystem::path& path, const std::vector<std::string>& only = {},
                          const std::vector<std::string>& if_there = {}, std::vector<std::string>* left_out = nullptr);

// A tensor with 1 or 2 axes as a matrix (1 axis: one row), and back.
Matrix<double> as_matrix(const Tensor& tensor, const std::string& name);
Tensor as_tensor(const Matrix<double>& matrix);

// q, k and v of a file in one layout: [n, d], [heads, n, d] or [batch, heads, n, d]. k and v may have fewer heads than
// q (grouped queries: query head h reads key head h * key_heads / heads) and another length.
struct AttentionFile {
  std::vector<Index> leading;  // axes of q before [n, d]: {}, {heads} or {batch, heads}
  Index batches = 1, heads = 1, key_heads = 1;
  Index nq = 0, nk = 0, d = 0, dv = 0;
  Tensor q, k, v;
  // The tensors in the file that a method needs: [rows, columns] for all heads, or with the leading axes of q or of k.
  std::map<std::string, std::pair<Need, Tensor>> extra;

  // One head, not scaled: views into this object.
  Head<double> head(Index batch, Index head) const;
  // Its further inputs.
  Extras extras(Index batch, Index head) const;
};

// Reads and checks q, k, v: same layout, d equal for q and k, nk equal for k and v, every value finite. Of the needs it
// reads what the file has. A mask beside them is refused, because attention to a file's heads has none. Throws Misuse.
AttentionFile read_attention_file(const std::filesystem::path& path, const std::vector<Need>& needs = {});

}  // namespace attnbench
