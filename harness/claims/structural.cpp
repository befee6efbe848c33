#include "harness/claims/structural.hpp"

namespace attnbench {

const std::vector<StructuralClaim>& structural_claims() {
  static const std::vector<StructuralClaim> all{
      {"formula", "attend equals the method's own plain transcription of its formula", test_formula},
      {"golden", "attend gives the numbers of the authors' code", test_golden},
      {"second-paths", "kernel, rows, factors and token Jacobian agree with attend, so tests of them hold for attend",
       test_second_paths},
      {"pattern", "keys outside the declared pattern have weight 0", test_pattern},
      {"precision", "attend in float agrees with attend in double as far as float's rounding allows", test_precision},
      {"repeatable", "the same draw gives the same bits: again, after other heads, on any number of threads",
       test_repeatable},
      {"inputs-kept", "a call leaves Q, K and V as they were", test_inputs_kept},
      {"draws", "every seed, head and replicate has its own draw, and float and double share one", test_draws},
      {"state", "an instance made from the state of another gives the same bits", test_state},
      {"views", "attend reads and writes views into larger memory, and nothing around them", test_views},
      {"padding", "keys and values that are padding change no bit", test_padding},
      {"empty-rows", "a row that sees no key is 0", test_empty_rows},
      {"linear", "attend is linear in V, so that its matrix can be read off with V = I, or scales with V", test_linear},
      {"row-sums", "rows of the attention matrix sum to one", test_row_sums},
      {"non-negative", "no entry of the attention matrix is negative, in double and in float", test_non_negative},
      {"permutation", "reordering keys with their values changes nothing", test_permutation},
      {"equal-keys", "where all keys are equal, each row is the mean of the values that it sees", test_equal_keys},
      {"causal", "under a causal mask no token changes an earlier row by one bit", test_causality},
      {"heads", "several heads in one call give what each gives alone", test_heads},
      {"decoder", "a prompt and then one token after another give the rows of causal attention", test_decoder},
      {"gradients", "the backward pass agrees with central differences of attend", test_gradients},
      {"rank", "the attention matrix has at most the claimed rank", test_rank},
      {"exact-when", "equals softmax attention, or the method that it names, for the parameters that it names",
       test_exact_when},
      {"bounds",
       "no logit is above the bound that the method has for it, and no coarse weight above those it stands for",
       test_bounds},
      {"finite", "large, zero and very negative logits and extreme gates give finite numbers, in float those of double",
       test_finite},
      {"lengths", "one token, one query, and heads of 1100 and 5000 tokens are right as well", test_lengths},
      {"threads", "threads change no bit where the work is split, in one head or over heads", test_threads},
      {"effect", "each parameter changes the output, or is declared to change rounding only", test_effect},
      {"differs", "the output is not exact softmax's, unless that is claimed", test_differs},
      {"geometry", "projection vectors have the angles and norms that their ensemble states", test_geometry},
      {"nested", "fewer projection vectors are the first of more", test_nested},
      {"work", "the FLOPs and exponentials that attend counts are the declared ones", test_work},
      {"memory", "attend takes the memory that is declared", test_memory, true},
      {"state-bytes", "a decoder keeps the bytes that it says", test_state_bytes, true},
      {"budget", "the parameter that is its budget changes what it costs", test_budget}};
  return all;
}

}  // namespace attnbench
