// For inputs that add a term of the query's position and of the key's group to the logits of another input. Each group
// takes one further coordinate: 1 in its keys, and the term in the queries. So any table of biases and any mask is an
// input that every method takes.
#pragma once

#include "harness/inputs/logit_terms/inner_input.hpp"

namespace attnbench {

struct GroupedTerms {
  Index groups;                                             // coordinates beyond those of the inner input
  std::function<Index(Index key)> group;                    // of a key, from 0
  std::function<double(Index position, Index group)> term;  // of a query at that position among the keys
};

// Queries are the last tokens where there are fewer of them than keys.
HeadData<double> with_terms(const Params& input, const InputRequest& request, const GroupedTerms& terms);

// For terms that are not a product of few coordinates: each token is a group. The parameter says for how many.
Parameter positions_parameter();
InputLimits limits_by_positions(const Params& input);

// Takes a mask as a term: what a query does not see loses so much. Of a row that sees a key with the logit s, a masked
// key with the logit t keeps at most exp(t - s - penalty) of the weight.
Parameter penalty_parameter();

}  // namespace attnbench
