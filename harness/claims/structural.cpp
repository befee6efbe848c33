#include "harness/claims/structural.hpp"

namespace attnbench {

const std::vector<StructuralClaim>& structural_claims() {
  static const std::vector<StructuralClaim> all{
      {"second-paths", "kernel, rows, factors and token Jacobian agree with attend, so tests of them hold for attend",
       test_second_paths},
      {"repeatable", "the same draw gives the same bits: again, after other heads, on any number of threads",
       test_repeatable},
      {"inputs-kept", "a call leaves Q, K and V as they were", test_inputs_kept},
      {"linear", "attend is linear in V: its matrix can be read off with V = I", test_linear},
      {"row-sums", "rows of the attention matrix sum to one", test_row_sums},
      {"non-negative", "no entry of the attention matrix is negative, in double and in float", test_non_negative},
      {"permutation", "reordering keys with their values changes nothing", test_permutation},
      {"causal", "under a causal mask no token changes an earlier row by one bit", test_causality},
      {"rank", "the attention matrix has at most the claimed rank", test_rank},
      {"exact-when", "equals softmax attention for the parameters that it names", test_exact_when},
      {"large-norms", "finite in float at |q| = |k| = 40", test_large_norms},
      {"geometry", "projection vectors have the angles and norms that their ensemble states", test_geometry}};
  return all;
}

}  // namespace attnbench
