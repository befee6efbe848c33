// Soft vector quantisation: every key is spread over the codes of a Gaussian mixture. Source 001 (kexue 9862).
//   A = rownorm(exp(Q C^T) P^T),  P_jy = p(y|k_j) = softmax_y(log pi_y - |k_j - c_y|^2 / (2 sigma^2))   methods.md D
// sigma -> 0 is vq, sigma -> infinity the mean of V; codebook = keys with sigma -> 0 is softmax. rank <= codes.
// pi: with codebook=kmeans the share of calibration keys on each code; uniform otherwise, and if a codebook is injected
// without counts. A uniform mixture on a fine lattice gives softmax for every sigma: the sum over the lattice
// approximates the integral of exp(q.w) N(w; k, sigma^2).
#include "approximations/codebook/codebook.hpp"
#include "approximations/codebook/nearest_codes.hpp"
#include "approximations/codebook/soft_codes.hpp"
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench::soft_vq_method {
namespace {

// The codes that have keys, with their counts: a code without keys has weight 0.
struct Mixture {
  Matrix<double> codebook;  // c x d
  Matrix<double> counts;    // c x 1
};

Mixture used_codes(const In<double>& K, const Matrix<double>& codebook) {
  Context context;
  Matrix<double> counts = Matrix<double>::Zero(codebook.rows(), 1);
  for (const Index code : nearest_codes<double>(context, K, codebook)) ++counts(code, 0);
  Mixture mixture{Matrix<double>(codebook.rows(), codebook.cols()), Matrix<double>(codebook.rows(), 1)};
  Index used = 0;
  for (Index y = 0; y < codebook.rows(); ++y) {
    if (counts(y, 0) == 0) continue;
    mixture.codebook.row(used) = codebook.row(y);
    mixture.counts(used++, 0) = counts(y, 0);
  }
  mixture.codebook.conservativeResize(used, Eigen::NoChange);
  mixture.counts.conservativeResize(used, Eigen::NoChange);
  return mixture;
}

template <class T>
std::unique_ptr<FeatureMap<T>> make_map(const Draw& draw) {
  const Matrix<double> codebook = learn_codebook(draw);
  const double sigma = draw.params.real("sigma");
  if (draw.state && draw.state->contains("codebook"))
    return std::make_unique<SoftCodes<T>>(codebook, draw.injected("counts", codebook.rows(), 1), sigma);
  if (draw.params.text("codebook") != "kmeans") return std::make_unique<SoftCodes<T>>(codebook, nullptr, sigma);
  const Mixture mixture = used_codes(draw.calibration->K, codebook);
  return std::make_unique<SoftCodes<T>>(mixture.codebook, &mixture.counts, sigma);
}

template <class T>
class SoftVectorQuantised final : public LinearAttention<T> {
 public:
  explicit SoftVectorQuantised(const Draw& draw) : LinearAttention<T>(make_map<T>(draw)) {}
};

std::vector<Parameter> parameters() {
  auto all = codebook_parameters();
  all.push_back(Parameter::real("sigma", 1, "width of the mixture: small is vq, large the mean of V", 1e-6, 1e6));
  return all;
}

const bool registered = add(method<SoftVectorQuantised>({
    .text = {.name = "soft-vq",
             .printed = "Soft VQ",
             .summary = "softmax on keys spread over a codebook by a Gaussian mixture",
             .formula = "A = rownorm(exp(Q C^T) P^T), P_jy = softmax_y(log pi_y - |k_j - c_y|^2 / (2 sigma^2))",
             .reference = "Su 2023, kexue.fm/archives/9862",
             .cost = "O(n c (d + dv)) time, O(c dv) memory beyond input and output",
             .family = "codebook"},
    .parameters = parameters(),
    .claims =
        [](const Params& params, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = rank_bound(params)};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return linear_memory(expected_codes(params, shape), shape); },
    // methods.md H: the cost of linear attention with F = c, plus 4 n c d for the features.
    .cost =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(expected_codes(params, shape));
          const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          return Work{.flops = 2 * (nq + nk) * c * static_cast<double>(shape.d + shape.dv + 1),
                      .exps = (nq + 2 * nk) * c};
        },
    .fitted = codes_are_learnt,
    .caveats = codebook_caveats,
}));

}  // namespace
}  // namespace attnbench::soft_vq_method
