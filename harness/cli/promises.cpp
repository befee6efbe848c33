#include "harness/cli/promises.hpp"

#include <fmt/format.h>

#include "harness/core/estimates.hpp"
#include "harness/core/needs.hpp"

namespace attnbench {
namespace {

// Whether the method draws keys, or claims unbiased rows, which an instance says.
void add_estimates(const Params& params, std::vector<Promise>& all) {
  const auto method = small_instance(params);
  if (!method) return;
  if (unbiased_sums(*method)) all.push_back({"sums of random weights have no bias", "unbiased sums"});
  if (has_unbiased_rows(*method)) all.push_back({"rows have no bias", "unbiased rows"});
}

}  // namespace

std::unique_ptr<Approximation<double>> small_instance(const Params& params) {
  const auto [n, d] = small_sizes;
  Shape shape{.nq = n, .nk = n, .d = d, .dv = d, .precision = Precision::f64};
  shape.mask.causal = !find<MethodEntry>(params.name()).claims(params, shape).no_form.empty();
  Generator generator = Streams(1).stream("describe");
  const HeadData<double> head{standard_normal(generator, n, d), standard_normal(generator, n, d),
                              standard_normal(generator, n, d), drawn_extras(params, shape, 1)};
  const Head<double> calibration = head.view();
  try {
    return make_approximation<double>(
        {.shape = shape, .params = params, .streams = Streams(1), .calibration = &calibration});
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::vector<Promise> promises_of(const Params& params) {
  const auto& entry = find<MethodEntry>(params.name());
  const Claims claims = entry.claims(params, example_shape);
  std::vector<Promise> all;
  const auto add = [&](bool held, const char* words, const char* brief) {
    if (held) all.push_back({words, brief});
  };
  add(claims.row_stochastic, "rows of A sum to one", "row sums 1");
  add(claims.non_negative, "entries of A are not negative", "A >= 0");
  add(claims.permutation_equivariant, "permuting keys with their values changes nothing", "");
  add(claims.equal_keys, "of equal keys: the mean of the values", "");
  add(claims.causal_exact, "causal: row i depends on no later token", "causal");
  const auto refusal = [&](const char* form, bool causal) {
    Shape shape = example_shape;
    shape.mask.causal = causal;
    const std::string reason = entry.claims(params, shape).no_form;
    if (!reason.empty()) all.push_back({fmt::format("no {} form: {}", form, reason), fmt::format("no {} form", form)});
  };
  refusal("bidirectional", false);
  refusal("causal", true);
  if (!claims.no_attention_matrix.empty()) all.push_back({"no attention matrix: " + claims.no_attention_matrix, ""});
  add(!claims.linear_in_V, "not linear in V", "");
  if (claims.rank_at_most)
    all.push_back(
        {fmt::format("rank of A at most {}", *claims.rank_at_most), fmt::format("rank <= {}", *claims.rank_at_most)});
  if (claims.exact_when == exact_always)
    all.push_back({"exact", "exact softmax"});
  else if (!claims.exact_when.empty())
    all.push_back({"exact when " + claims.exact_when, "exact at `" + claims.exact_when + "`"});
  if (const auto theory = entry.theory(params, example_shape, nullptr))
    all.push_back({fmt::format("its kernel estimates {}{}", theory->target,
                               theory->variance ? ", with a closed form of the variance" : ""),
                   theory->variance ? "mean and variance of its kernel" : "mean of its kernel"});
  add_estimates(params, all);
  return all;
}

}  // namespace attnbench
