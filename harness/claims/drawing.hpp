// Draws of one subject at one shape, and the heads for testing them.
#pragma once

#include "harness/claims/result.hpp"
#include "harness/claims/subject.hpp"
#include "harness/core/layer_place.hpp"

namespace attnbench {

// A head that fitted methods learn from. The axes of Q and K have unequal variances and their own means,
// so that every fit to moments has something to fit.
HeadData<double> calibration_head(Index tokens, Index d, std::uint64_t seed);

struct Probe;

class Drawing {
 public:
  Drawing(const Subject& subject, Params params, const Shape& shape, std::uint64_t seed, Index calibration_tokens = 96);

  // Draw number i, made from these tensors if there are any. Each draw has its own base seed instead of its own
  // replicate, because share=step gives all replicates one draw.
  template <class T>
  std::unique_ptr<Approximation<T>> draw(Index i, const Tensors* state = nullptr) const;
  // The draw of a head and a replicate with that seed.
  template <class T>
  std::unique_ptr<Approximation<T>> draw_for(std::uint64_t seed, Index head, Index replicate,
                                             LayerPlace place = {}) const;
  // Returns the output of the transcription for draw number 0.
  Matrix<double> transcribed(const Transcription& transcription, const Approximation<double>& drawn,
                             const Probe& one) const;
  // Fits once for all later draws: they receive the state tensors that two draws have in common.
  void fit_once();
  // Later draws have these tensors in their state, and draw the others.
  void hold(const Tensors& given) { fitted_.insert(given.begin(), given.end()); }

  const Params& params() const { return params_; }
  const Shape& shape() const { return shape_; }
  std::optional<KernelTheory> theory() const;

 private:
  template <class T>
  std::unique_ptr<Approximation<T>> make(Streams streams, Index head, Index replicate, const Tensors* state,
                                         LayerPlace place = {}) const;
  Streams streams_of(Index i) const;

  const Subject* subject_;
  Params params_;
  Shape shape_;
  std::uint64_t seed_;
  HeadData<double> calibration_;
  Tensors fitted_;
};

// The parameters at which a method says that its sums are tested (UnbiasedSums::tested_at); those of other methods as
// they are. method: a draw with these parameters.
Params tested_params(const Params& params, const Approximation<double>& method);

// A head with Gaussian entries that float represents exactly, and a shape with the mask.
struct Probe {
  Shape shape;
  HeadData<double> head;
  std::string name() const;
};

using Probes = std::vector<Probe>;

// With what the method needs beside Q, K and V.
Probe gaussian_probe(const Params& method, const Shape& shape, std::uint64_t seed);
// The same with numbers that float does not hold: what is rounded to float on the way shows.
Probe with_all_bits(const Probe& one, std::uint64_t seed);
// One length below and one above the 64 rows of a causal chunk; causal with and without earlier keys. A subject that
// refuses so few tokens gets 600. Passes on the subject's Misuse or Skip at that size.
Probes probes_of(const Subject& subject, std::uint64_t seed);
// The same sizes and numbers under another mask, or nothing if the subject has no form for it or refuses its few keys.
std::optional<Probe> under(const Subject& subject, const Probe& one, Mask mask);

// Moves the entries of keys [key, last_key) and of queries [query, last_query) in a method's further inputs, within the
// values that each may take.
void move_extras(Extras& extras, const Params& method, Index key, Index last_key, Index query, Index last_query);

// Calls attend on memory filled with NaN, so that unwritten entries are noticed.
template <class T>
Matrix<T> attended(const Approximation<T>& method, const HeadData<T>& head, Mask mask, int threads = 1);

// The rows of a causal head from `prompt` on: its decoder takes in that many tokens at once and then one after another.
// Into memory that held NaN as well. Empty if the method has no decoder.
template <class T>
Matrix<T> decoded(const Approximation<T>& method, const Shape& shape, const HeadData<T>& head, Index prompt);

// The number of entries that differ in any bit, the signs of zeros included.
template <class T>
double differing_numbers(const Matrix<T>& a, const Matrix<T>& b);

template <class T>
constexpr const char* precision_name = sizeof(T) == 4 ? "f32" : "f64";

// The kernel of a method on a head: K_ij = exp(log_rows_i + log_columns_j) block_ij.
struct ScaledKernel {
  ScaledKernel(const Kernel<double>& kernel, const Probe& one);
  // Row i over the keys that it sees, up to a factor per row. Avoids overflow of the column scales.
  Eigen::RowVectorXd row(Index i, Mask mask) const;
  double log_scale_of_row(Index i, Mask mask) const;  // the logarithm of that factor

  Matrix<double> block;
  std::vector<double> log_rows, log_columns;
};

// sum_j |K_ij| / |sum_j K_ij| of each row of the method's kernel, at least 1; 1 without a kernel or beyond 5000 keys.
std::vector<double> cancellations(const Approximation<double>& method, const Probe& one);

// How much each row may amplify rounding. Changes every number of the input by one part in 10^9 up or down, and divides
// the row's movement, in units of V's size, by that part (the most of three tries, at least 1). The result is at least
// the row's cancellation: step features do not move, but their normalisers cancel too. 1 if no entry is negative,
// because nothing cancels then.
std::vector<double> row_conditions(const Approximation<double>& method, const Probe& one, bool non_negative,
                                   std::uint64_t seed);

// The bound of a comparison in double, relative to the row's size and condition. Rounding gives less: a weight exp(L)
// with exponents up to 50 has 50 units of rounding (1.1e-16) and a few more for a dot product over d <= 16, about
// 2e-14; sums over up to 2500 keys add at most 2500 units, 6e-13.
constexpr double double_tolerance = 1e-12;

double size_of(const Matrix<double>& V);  // its largest entry in magnitude, at least 1

// Compares rows, relative to size and to the row's condition. Leaves out rows with a larger condition than this, whose
// normaliser cancels to a thousandth of its terms, and reports their number.
constexpr double largest_condition = 1e3;
Result compare_rows(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                    const Matrix<double>& want, const std::vector<double>& condition, double size, double limit);

}  // namespace attnbench
