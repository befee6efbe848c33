// KDEformer: exact softmax within hashed blocks, keys drawn by the norms of their values for the rest. Zandieh, Han,
// Daliri and Karbasi 2023, arXiv:2302.02451, section 3; the precursor of HyperAttention.
//   o_i = (sum over i's block of e_ij v_j + sum_t [J_t outside of it] e_iJ_t v_J_t / (s p_J_t)) / the same without v,
//   e_ij = exp(q_i.k_j), J_1 ... J_s from p, the same for all queries,  p_j ~ |v_j|^2 / |V|_op^2 + 1/n   methods.md S
// |V|_op is the largest singular value of V, so that p does not change with the scale of V. p = 1/n where V = 0.
// probabilities=authors: p_j ~ |v'_j| / |V'|_op^2 + 1/n, v' = (v, 1), as in the authors' code: a length over a squared
// length, which changes with the scale of V. maximum=false: exponentials of the logits as they are, as there. Given
// the hash, numerator and denominator are unbiased. block >= n and s >= n are exact: then every key is added once. The
// blocks and their hash are those of hashed_blocks.hpp. No causal form: p depends on all values.
// O(n (block + s) (d + dv) + n dv^2) time. Probabilities are in double for both scalar types.
#include "approximations/sampling/hashed_blocks.hpp"
#include "harness/linalg/lapack.hpp"

namespace attnbench::kdeformer_method {
namespace {

// sum_j v_j v_j^T over blocks of rows, dv x dv, for V / scale.
template <class T>
Matrix<double> gram_matrix(Context& context, const In<T>& V, double scale) {
  constexpr Index block_rows = 256;
  Matrix<double> gram = Matrix<double>::Zero(V.cols(), V.cols());
  for (Index j = 0; j < V.rows(); j += block_rows) {
    const Matrix<double> rows = row_block(V, j, std::min(block_rows, V.rows() - j)).template cast<double>() / scale;
    transposed_multiply_add<double>(context, rows, rows, gram);
  }
  return gram;
}

// |v_j|^2 / |V|_op^2 + 1/n of each row.
template <class T>
std::vector<double> paper_weights(Context& context, const In<T>& V) {
  const double n = static_cast<double>(V.rows());
  std::vector<double> weights(static_cast<size_t>(V.rows()), 1 / n);
  const double scale = static_cast<double>(V.cwiseAbs().maxCoeff());  // squares overflow without
  if (scale == 0) return weights;
  Context unrounded;  // half precision is that of the head's products, not of choosing keys
  const double squared_norm = singular_values(gram_matrix<T>(unrounded, V, scale)).front();
  context.work += unrounded.work;
  for (Index j = 0; j < V.rows(); ++j)
    weights[static_cast<size_t>(j)] += (V.row(j).template cast<double>() / scale).squaredNorm() / squared_norm;
  return weights;
}

// |v'_j| / |V'|_op^2 + 1/n of each row, v' = (v, 1).
template <class T>
std::vector<double> authors_weights(Context& context, const In<T>& V) {
  Matrix<double> longer(V.rows(), V.cols() + 1);
  longer << V.template cast<double>(), Matrix<double>::Ones(V.rows(), 1);
  Context unrounded;
  const double squared_norm = singular_values(gram_matrix<double>(unrounded, longer, 1)).front();
  context.work += unrounded.work;
  std::vector<double> weights;
  for (Index j = 0; j < V.rows(); ++j)
    weights.push_back(longer.row(j).norm() / squared_norm + 1 / static_cast<double>(V.rows()));
  return weights;
}

template <class T>
class KdeFormer final : public HashedBlockRows<T> {
 public:
  explicit KdeFormer(const Draw& draw)
      : HashedBlockRows<T>(draw, "kdeformer",
                           {.block = draw.params.integer("block"),
                            .samples = draw.params.integer("s"),
                            .maximum = draw.params.flag("maximum")}),
        samples_(draw.params.integer("s")),
        value_weights_(draw.params.text("probabilities") == "paper" ? paper_weights<T> : authors_weights<T>) {}

  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    std::vector<double> weights;
    double total = 0;
    return this->blocks().law(head, mask, row, [&](const HashedProblem& problem, Index key) {
      if (weights.empty()) {
        Context context;
        weights = value_weights_(context, row_block(head.V, 0, problem.keys));
        total = std::accumulate(weights.begin(), weights.end(), 0.0);
      }
      return weights[static_cast<size_t>(key)] / total;
    });
  }

 protected:
  typename HashedBlocks<T>::DrawKeys draw_keys(const Head<T>& head, Context& context) const override {
    return [this, &head, &context](const HashedProblem& problem) {
      const auto weights = value_weights_(context, row_block(head.V, 0, problem.keys));
      std::vector<double> sums(weights.size());
      std::partial_sum(weights.begin(), weights.end(), sums.begin());
      DrawnKeys drawn;
      for (const double u : this->numbers(problem)) {
        const auto passed = std::upper_bound(sums.begin(), sums.end(), u * sums.back()) - sums.begin();
        const Index key = std::min<Index>(problem.keys - 1, passed);
        drawn.keys.push_back(key);
        const double p = weights[static_cast<size_t>(key)] / sums.back();
        drawn.log_weights.push_back(-std::log(static_cast<double>(samples_) * p));
      }
      return drawn;
    };
  }

 private:
  Index samples_;
  std::vector<double> (*value_weights_)(Context&, const In<T>&);
};

const bool registered = add(method<KdeFormer>({
    .text = {.name = "kdeformer",
             .printed = "KDEformer",
             .summary = "softmax within hashed blocks, and keys drawn by the norms of their values for the rest",
             .formula = "o_i = (sum over i's block of e_ij v_j + sum over drawn j outside of e_ij v_j / (s p_j)) / the "
                        "same without v_j, e_ij = exp(q_i.k_j), p_j ~ |v_j|^2 / |V|_op^2 + 1/n",
             .reference = "Zandieh et al. 2023, arXiv:2302.02451",
             .cost = "O(n (block + s) (d + dv) + n dv^2) time, O(n + (block + s) (d + dv)) memory",
             .family = "sampling",
             .departure = "the paper's probabilities also grow with norms of columns of the attention matrix, which it "
                          "estimates by kernel densities; here and in the authors' code they do not"},
    .parameters = {Parameter::integer("block", 256, "keys of a block", 1),
                   Parameter::integer("s", 256, "keys drawn for all queries; from n on all keys, once", 1).as_budget(),
                   Parameter::integer("bits", 7, "signs of a hash", 1, 24),
                   Parameter::choice("probabilities", "paper",
                                     "of keys; authors: as in the authors' code, which change with the scale of V",
                                     {"paper", "authors"})
                       .as_published(),
                   Parameter::flag("maximum", true,
                                   "false: exponentials without subtracting a maximum, as in the authors' code")
                       .as_published()
                       .as_numerics()},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "the values of all keys decide which are drawn" : "",
                        .linear_in_V = false,
                        .scales_with_V = true,
                        .no_attention_matrix = "the values decide which keys are drawn",
                        .exact_when = "block=1000000000"};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return hashed_memory(params, shape) + 16 * static_cast<double>(shape.nk); },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = hashed_cost(params, shape);
          const Index keys = Mask{.keys = shape.mask.keys}.visible(0, shape.nk);
          if (params.integer("block") < keys && params.integer("s") < keys)
            work.flops += 2 * static_cast<double>(keys * shape.dv * shape.dv);
          return work;
        },
}));

}  // namespace
}  // namespace attnbench::kdeformer_method
