// The spectrum of a method's attention matrix: numerical, stable and effective rank. methods.md I.
// There are three algorithms. dense: all singular values of A by LAPACK, up to n = 4096. factored: those of A = L R^T
// from the factors, at any n. randomised: the largest ones and traces from products with A and A^T, at any n, with
// errors. Ranks are recorded with their precision: the numerical rank differs between float and double.
// For a method without an attention matrix, ranks are those of the token Jacobian in the first channel,
// d out_i0 / d V_j0. `rank_of` says which.
#include <fmt/format.h>

#include "experiments/rank_records.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/factored_spectrum.hpp"
#include "harness/measures/linear_map.hpp"

namespace attnbench::rank_experiment {
namespace {

constexpr Index largest_dense = 4096, always_dense = 1024;

enum RankOf { attention, token_jacobian, logits, keys };
enum Way { dense, factored, randomised };

bool of_logits(const Cell& cell) { return cell.experiment.text("of") == "logits"; }
bool of_keys(const Cell& cell) { return cell.experiment.text("of") == "keys"; }

void check_cell(const Cell& cell) {
  if ((of_logits(cell) || of_keys(cell)) && cell.method.name() != "softmax")
    throw Misuse(fmt::format("{} with --method {}: {} are the same for every method; expected --method softmax",
                             cell.experiment.spec(), cell.method.spec(), of_keys(cell) ? "keys" : "the logits Q K^T"));
  const std::string& spectrum = cell.experiment.text("spectrum");
  if (of_keys(cell) && spectrum != "auto" && spectrum != "dense")
    throw Misuse(
        fmt::format("rank:of=keys,spectrum={}: all singular values of the keys are computed; expected "
                    "spectrum=auto or dense",
                    spectrum));
  const double floor = rounding_floor(cell);
  if (cell.experiment.text("threshold") != "auto" && cell.experiment.real("threshold") < floor)
    throw Misuse(
        fmt::format("rank:threshold={} is below the rounding floor {:.3g} of n={} in this precision, where rounding is "
                    "counted for rank; give that or more, or threshold=auto, which is it",
                    cell.experiment.text("threshold"), floor, longest(cell.problem.shape)));
}

// The matrix whose rank is measured, in the scalar type of the cell.
template <class T>
class Target {
 public:
  explicit Target(const Task& task)
      : task_(task),
        mask_(of_logits(task.cell) ? Mask{} : task.cell.problem.shape.mask),
        head_(draw_cell_head(task.cell, task.replicate, 0, Purpose::measured).template cast<T>()) {
    if (!of_logits(task.cell)) method_ = task.method<T>(0, task.replicate);
  }

  bool has_factors() const { return !method_ || (!mask_.causal && method_->factored()); }

  // nq x nk
  Matrix<double> matrix() const {
    if (method_) return attention_matrix(*method_, head_.view(), mask_, task_.context);
    Matrix<T> S(head_.Q.rows(), head_.K.rows());
    multiply_transposed<T>(task_.context, head_.Q, head_.K, S);
    require_finite<T>(S, "logits");
    return S.template cast<double>();
  }

  // nq x F and nk x F
  std::pair<Matrix<double>, Matrix<double>> factors() const {
    Matrix<T> L, R;
    if (method_) {
      method_->factored()->factors(head_.view(), mask_, task_.context, L, R);
    } else {
      L = head_.Q;
      R = head_.K;
    }
    require_finite<T>(L, "left factor");
    require_finite<T>(R, "right factor");
    if constexpr (std::is_same_v<T, double>)
      return {std::move(L), std::move(R)};
    else
      return {L.template cast<double>(), R.template cast<double>()};
  }

  const Approximation<T>& method() const { return *method_; }
  const HeadData<T>& head() const { return head_; }
  Mask mask() const { return mask_; }

  // The exact rank by theory: n for a triangular matrix without zeros on its diagonal, else the bound that generic
  // inputs reach (F features without a causal mask: min(n, F)). Empty: not known.
  std::optional<Index> structural_rank(bool regular_triangle) const {
    const auto& shape = task_.cell.problem.shape;
    if (regular_triangle) return shortest(shape);
    if (!method_) return std::min(shortest(shape), shape.d);
    const auto bound = find<MethodEntry>(task_.cell.method.name()).claims(task_.cell.method, shape).rank_at_most;
    if (mask_.causal || !bound) return {};
    return std::min(shortest(shape), *bound);
  }

 private:
  const Task& task_;
  Mask mask_;
  HeadData<T> head_;
  std::unique_ptr<Approximation<T>> method_;  // null: the logits
};

void measure_jacobian(const Task& task, const std::string& reason, Recorder& record) {
  const auto& shape = task.cell.problem.shape;
  const auto method = task.method<double>(0, task.replicate);
  const auto* mixing = method->mixing();
  if (!mixing) throw Skip(task.cell.method.spec() + " has no attention matrix: " + reason);
  if (longest(shape) > largest_dense || in_float(shape.precision))
    throw Skip("the token Jacobian is formed in double, up to n = " + std::to_string(largest_dense));
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  Matrix<double> M(shape.nq, shape.nk);
  mixing->token_jacobian(head.view(), shape.mask, 0, task.context, M);
  require_finite<double>(M, "token Jacobian");
  record.note(task.cell.method.spec() + " has no attention matrix (" + reason +
              "): ranks are of its token Jacobian d out_i0 / d V_j0");
  record.scalar("rank_of", "1", token_jacobian);
  record.scalar("spectrum_from", "1", dense);
  record_spectrum(task, singular_values(std::move(M), task.context), 0, record);
}

template <class T>
void measure_matrix(const Task& task, Recorder& record) {
  const auto& cell = task.cell;
  const auto& shape = cell.problem.shape;
  const std::string& asked = cell.experiment.text("spectrum");
  const bool fits = longest(shape) <= largest_dense;
  const Target<T> target(task);
  const auto record_facts = [&](Way way, bool regular_triangle) {
    record.scalar("rank_of", "1", of_logits(cell) ? logits : attention);
    record.scalar("spectrum_from", "1", way);
    if (const auto rank = target.structural_rank(regular_triangle))
      record.scalar("structural_rank", "1", static_cast<double>(*rank));
  };
  const auto measure_dense = [&] {
    Matrix<double> A = target.matrix();
    record_facts(dense, shape.nq == shape.nk && is_regular_triangle(A));
    record_spectrum(task, singular_values(std::move(A), task.context), 0, record);
  };

  if (asked == "dense" && !fits)
    throw Skip("the dense spectrum is computed up to n = " + std::to_string(largest_dense));
  if (asked == "factored" && !target.has_factors())
    throw Skip(cell.method.spec() + " has no factors" + (shape.mask.causal ? " under a causal mask" : ""));
  if (asked == "dense" || (asked == "auto" && (longest(shape) <= always_dense || (fits && !target.has_factors()))))
    return measure_dense();
  if (asked != "randomised" && target.has_factors()) {
    const auto [L, R] = target.factors();
    if (L.cols() > shortest(shape) && fits) return measure_dense();
    const auto spectrum = factored_spectrum(L, R, task.context);
    record_facts(factored, false);
    return record_spectrum(task, spectrum.sigma,
                           spectrum.terms * rounding_floor(cell) / static_cast<double>(longest(shape)), record);
  }
  if constexpr (std::is_same_v<T, double>) {
    if (cell.problem.rounding != Rounding::none)
      throw Skip("random probes would be rounded as well, and not only the matrix; use n up to " +
                 std::to_string(largest_dense));
    if (of_logits(cell)) throw Skip("logits have factors; use spectrum=factored");
    if (!target.method().rows())
      throw Skip(cell.method.spec() + " gives no rows of its attention matrix, which A^T G takes; beyond n = " +
                 std::to_string(largest_dense) + " there is no other way to its spectrum");
    const auto streamed = stream_attention(target.method(), target.head().view(), target.mask(), task.context);
    record_facts(randomised, streamed.regular_triangle);
    record_estimates(task, streamed.map, record);
  } else {
    throw Skip(
        "random probes are products in double: those in float would measure their own rounding; use --precision f64");
  }
}

void measure_keys(const Task& task, Recorder& record) {
  Matrix<double> K = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured).K;
  require_finite<double>(K, "keys");
  record.scalar("rank_of", "1", keys);
  record.scalar("spectrum_from", "1", dense);
  record.scalar("structural_rank", "1", static_cast<double>(std::min(K.rows(), K.cols())));
  record_spectrum(task, singular_values(std::move(K), task.context), 0, record);
}

void measure(const Task& task, Recorder& record) {
  if (of_keys(task.cell)) return measure_keys(task, record);
  const auto& shape = task.cell.problem.shape;
  const std::string no_matrix =
      find<MethodEntry>(task.cell.method.name()).claims(task.cell.method, shape).no_attention_matrix;
  if (!no_matrix.empty()) return measure_jacobian(task, no_matrix, record);
  if (in_float(shape.precision)) return measure_matrix<float>(task, record);
  measure_matrix<double>(task, record);
}

// Dense: A, LAPACK's workspace, and the panels in which A is read. Otherwise both factors, twice (as features and as
// factors), or the blocks of the Krylov space.
double bytes_of_cell(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  const auto n = static_cast<double>(longest(shape));
  if (longest(shape) <= largest_dense) return 4 * matrix_bytes(cell);
  const auto claims = find<MethodEntry>(cell.method.name()).claims(cell.method, shape);
  const auto F = static_cast<double>(of_logits(cell) ? shape.d : claims.rank_at_most.value_or(0));
  const auto block = static_cast<double>(cell.experiment.integer("values") + 8 + cell.experiment.integer("probes"));
  return 8 * n * std::max(4 * F, 2 * krylov_steps * block);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "rank",
             .summary = "singular values and ranks of the attention matrix, or of the token Jacobian without one",
             .formula = "sigma(A); rank = #{sigma_i > sigma_1 n eps}, effective rank = exp H(sigma / sum sigma)",
             .reference = "Roy and Vetterli 2007; Wang et al. 2020, arXiv:2006.04768, Fig. 1",
             .cost =
                 "O(n^3), n up to 4096; from factors O(n F^2 + F^3); from probes O(n^2 (values + probes)) a product"},
    .parameters = {Parameter::choice("spectrum", "auto",
                                     "auto: dense up to n = 1024, beyond from factors where there are any, else dense "
                                     "up to n = 4096, randomised beyond",
                                     {"auto", "dense", "factored", "randomised"}),
                   Parameter::choice("of", "attention",
                                     "the attention matrix, the logits Q K^T without a mask, or the keys themselves",
                                     {"attention", "logits", "keys"}),
                   Parameter::real_or("threshold", "auto",
                                      "singular values above this share of sigma_1 count for the numerical rank; auto: "
                                      "the rounding floor, below which none is accepted",
                                      0, 1),
                   Parameter::real("share", 0.9, "of sum sigma^2, for principal_dimensions", 0, 1),
                   Parameter::integer("index", 128, "k of cumulative_at", 1),
                   Parameter::flag("by_index", true,
                                   "keep each singular value where all are known; false: what follows from them"),
                   Parameter::integer("values", 16, "randomised: how many of the largest singular values", 1, 1024),
                   Parameter::integer("probes", 16, "randomised: probes of the traces", 2, 4096)},
    .metrics =
        {{"rank_of", "1",
          "0: the attention matrix A; 1: the token Jacobian d out_i0 / d V_j0 of a method without one; 2: Q K^T; "
          "3: K"},
         {"spectrum_from", "1", "0: the dense matrix; 1: its factors; 2: products with random vectors"},
         {"singular_values", "1",
          "all, largest first, but for those that are 0 by construction; randomised: the largest"},
         {"singular_value_bounds", "1", "randomised: a singular value of A lies within that of each"},
         {"cumulative_spectrum",
          "1",
          "sum of the first k over the sum of all, for as many k as singular_values has",
          {},
          "sum of the first k singular values / all"},
         {"cumulative_at", "1", "that at k = index (1 beyond the last)"},
         {"numerical_rank", "1", "singular values above rank_tolerance", {}, "numerical rank", "log2"},
         {"rank_tolerance", "1",
          "sigma_1 max(nq, nk) 2.2e-16 (1.2e-7 in float), sigma_1 threshold, or the rounding of the factors' terms, "
          "the largest of them"},
         {"structural_rank", "1", "what theory says: n of a triangle with non-zero diagonal, min(n, F) of F features"},
         {"condition",
          "1",
          "sigma_1 / sigma_n, where sigma_n is above rounding",
          {},
          "condition  sigma_1 / sigma_n",
          "log10"},
         {"stable_rank", "1", "|A|_F^2 / |A|_2^2"},
         {"participation_ratio", "1", "(sum sigma^2)^2 / sum sigma^4"},
         {"effective_rank", "1", "exp of the entropy of sigma / sum sigma", {}, "effective rank", "log2"},
         {"effective_rank_squared", "1", "exp of the entropy of sigma^2 / sum sigma^2"},
         {"principal_dimensions",
          "1",
          "fewest singular directions that have the share of sum sigma^2; only where all singular values are known",
          {},
          "principal dimensions"},
         {"spectral_norm", "1", "sigma_1"},
         {"trace_norm", "1", "sum sigma"},
         {"frobenius_norm", "1", "root of sum sigma^2"},
         {"*_low", "1", "randomised: lower end of the metric's 95 % interval"},
         {"*_high", "1", "randomised: its upper end"}},
    .headline = {.metric = "effective_rank", .label = "effective rank"},
    .check = check_cell,
    .bytes = bytes_of_cell,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::rank_experiment
