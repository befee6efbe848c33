// The relative position biases of T5: a number for each of `buckets` ranges of distance.
//   s_ij = q_i.k_j + b(bucket(j - i))                                                                   methods.md W7
// Raffel et al. 2020, arXiv:1910.10683, section 2.1; the buckets are those of the authors' code. Half of them are for
// later keys, or none with both=false. Of the m buckets of one side the first m / 2 are the distances 0, 1, ..., and
// the others grow geometrically up to `longest`; all longer distances share the last one.
// Biases are learnt there and drawn here: normal with deviation `scale`. A table of distances is not a product of few
// coordinates: each token is one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"
#include "harness/inputs/logit_terms/grouped_terms.hpp"

namespace attnbench::t5_buckets_term {
namespace {

// Of one side with m buckets.
Index bucket_of(Index distance, Index m, Index longest) {
  const Index exact = m / 2;
  if (distance < exact) return distance;
  const double steps = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(longest) / static_cast<double>(exact));
  return std::min(m - 1, exact + static_cast<Index>(steps * static_cast<double>(m - exact)));
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index buckets = params.integer("buckets"), longest = params.integer("longest");
  const bool both = params.flag("both");
  const Index side = both ? buckets / 2 : buckets;
  if (side < 2 || longest <= side / 2)
    throw Misuse(
        fmt::format("{}: expected two buckets a side or more, and a longest distance above half of their "
                    "number, as in t5-buckets:buckets=32,longest=128",
                    params.spec()));
  Generator generator = shared_stream(params, request, "biases");
  const Matrix<double> biases = params.real("scale") * standard_normal(generator, 1, buckets);
  return with_terms(params, request,
                    {.groups = params.integer("positions"),
                     .group = [](Index key) { return key; },
                     .term =
                         [=](Index position, Index key) {
                           if (key <= position) return biases(0, bucket_of(position - key, side, longest));
                           return both ? biases(0, side + bucket_of(key - position, side, longest)) : 0.0;
                         }});
}

const bool registered = add(InputEntry{
    .text = {.name = "t5-buckets",
             .summary = "another input with the relative position biases of T5 in its logits",
             .formula = "s_ij = q_i.k_j + b(bucket(j - i)), as one more coordinate a token",
             .reference = "Raffel et al. 2020, arXiv:1910.10683, section 2.1",
             .cost = "that of the other input, and O(n positions)",
             .family = "logit term",
             .departure = "biases are drawn at random, where the source learns them"},
    .parameters = {inner_parameter(), positions_parameter(),
                   Parameter::integer("buckets", 32, "of distances", 2, 1 << 12),
                   Parameter::integer("longest", 128, "distance with a bucket of its own", 2, 1 << 24),
                   Parameter::real("scale", 1, "standard deviation of the biases", 0, 1e3),
                   Parameter::flag("both", true, "half of the buckets are for later keys; false: they have no bias")},
    .draw = draw,
    .limits = limits_by_positions,
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::t5_buckets_term
