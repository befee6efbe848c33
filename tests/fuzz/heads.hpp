// Properties that both tensor formats share: each tensor has as many numbers as its shape says, and each head is inside
// its tensor.
#pragma once

#include "harness/errors/error.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/tensor_formats.hpp"
#include "tests/fuzz/bounded.hpp"

namespace attnbench {

template <class Read>
void read_heads(const std::string& path, const Read& read) {
  try {
    for (const auto& [name, tensor] : read())
      require(number_count(tensor.shape) == static_cast<Index>(tensor.values.size()), "a shape is that of its numbers");
    const AttentionFile file = read_attention_file(path);
    double touched = 0;  // by the address sanitizer
    for (Index batch = 0; batch < file.batches; ++batch)
      for (Index h = 0; h < file.heads; ++h) {
        const Head<double> head = file.head(batch, h);
        touched += head.Q.cwiseAbs().maxCoeff() + head.K.cwiseAbs().maxCoeff() + head.V.cwiseAbs().maxCoeff();
      }
    require(touched >= 0, "heads are finite");
  } catch (const Misuse&) {
  }
}

}  // namespace attnbench
