#include "harness/plugins/entry_message.hpp"

namespace attnbench {

// Structured bindings name every member, so that a new member does not compile here until it is sent as well.

void to_json(Message& message, const Parameter& parameter) {
  const auto& [kind, name, value, help, minimum, maximum, choices, catalogue, word, published, numerics, budget] =
      parameter;
  message = {static_cast<int>(kind),
             name,
             value,
             help,
             minimum,
             maximum,
             choices,
             catalogue,
             word,
             published,
             numerics,
             budget};
}

void from_json(const Message& message, Parameter& p) {
  p = {.kind = static_cast<Parameter::Kind>(message.at(0).get<int>()),
       .name = message.at(1),
       .default_value = message.at(2),
       .help = message.at(3),
       .minimum = message.at(4),
       .maximum = message.at(5),
       .choices = message.at(6),
       .catalogue = message.at(7),
       .word = message.at(8),
       .published = message.at(9),
       .numerics = message.at(10),
       .budget = message.at(11)};
}

void to_json(Message& message, const Claims& claims) {
  const auto& [row_stochastic, non_negative, permutation_equivariant, no_form, equal_keys, causal_exact, linear_in_V,
               scales_with_V, no_attention_matrix, rank_at_most, exact_when, normaliser, mixes_heads, no_extremes,
               implied] = claims;
  message = {row_stochastic,
             non_negative,
             permutation_equivariant,
             no_form,
             equal_keys,
             causal_exact,
             linear_in_V,
             scales_with_V,
             no_attention_matrix,
             rank_at_most.value_or(-1),
             exact_when,
             static_cast<int>(normaliser),
             mixes_heads,
             no_extremes,
             implied};
}

void from_json(const Message& message, Claims& c) {
  c = {.row_stochastic = message.at(0),
       .non_negative = message.at(1),
       .permutation_equivariant = message.at(2),
       .no_form = message.at(3),
       .equal_keys = message.at(4),
       .causal_exact = message.at(5),
       .linear_in_V = message.at(6),
       .scales_with_V = message.at(7),
       .no_attention_matrix = message.at(8),
       .exact_when = message.at(10),
       .normaliser = static_cast<Normaliser>(message.at(11).get<int>()),
       .mixes_heads = message.at(12),
       .no_extremes = message.at(13),
       .implied = message.at(14)};
  if (const Index rank = message.at(9); rank >= 0) c.rank_at_most = rank;
}

}  // namespace attnbench
