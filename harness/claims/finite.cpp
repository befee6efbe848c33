// Numbers at the ends of what a head may hold. exp(q.k) at |q| = |k| = 40 is e^1600: only a computation that takes the
// largest exponent off first survives, and published stabilisers fail (keys underflow as |k| grows). Where all logits
// of a row are very negative, a maximum that starts at 0 divides 0 by 0.
#include <fmt/format.h>

#include "harness/claims/precision.hpp"
#include "harness/claims/structural.hpp"
#include "harness/core/methods_inside.hpp"
#include "harness/core/needs.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "finite";
constexpr double norm = 40;

Matrix<double> held_by_float(const Matrix<double>& X) { return X.cast<float>().cast<double>(); }

Matrix<double> of_norm(const Matrix<double>& X, double length) {
  return held_by_float(length * X.rowwise().normalized());
}

// Gates at the ends of the values that they may have.
Extras extreme_extras(const Probe& one, const Params& method, bool high) {
  Extras extras = one.head.extra;
  for (const Need& need : needs_of(method)) {
    auto& numbers = extras.at(need.name).numbers;
    if (need.values == Need::Values::uniform) numbers.setConstant(high ? 1 : 0);
    if (need.values == Need::Values::normal) numbers.setConstant(high ? norm : -norm);
  }
  return extras;
}

struct Extreme {
  const char* words;
  HeadData<double> head;
  bool large = false;  // exponentials of its logits are no numbers
  bool small = false;  // its logits hardly differ
};

std::vector<Extreme> extremes_of(const Probe& one, const Params& method) {
  const HeadData<double>& head = one.head;
  const Matrix<double> Q = of_norm(head.Q, norm), K = of_norm(head.K, norm);
  // All queries lie near one direction and all keys near its opposite.
  Matrix<double> along = of_norm(head.Q, 1), against = of_norm(head.K, 1);
  along.col(0).array() += 8;
  against.col(0).array() -= 8;
  std::vector<Extreme> all{
      {"|q| = |k| = 40", {Q, K, head.V, head.extra}, true},
      {"q = k = 0", {0 * head.Q, 0 * head.K, head.V, head.extra}, false, true},
      {"entries a thousandth",
       {held_by_float(1e-3 * head.Q), held_by_float(1e-3 * head.K), head.V, head.extra},
       false,
       true},
      {"entries 1000 times as large", {1000 * head.Q, 1000 * head.K, head.V, head.extra}, true},
      {"all logits below -1000", {of_norm(along, norm), of_norm(against, norm), head.V, head.extra}, true}};
  if (!needs_of(method).empty())
    for (const bool high : {false, true})
      all.push_back({high ? "gates at their largest" : "gates at their least",
                     {head.Q, head.K, head.V, extreme_extras(one, method, high)}});
  return all;
}

template <class T>
Result count_infinite(const Matrix<T>& out, const std::string& tested) {
  return compared(claim, fmt::format("NaN or infinite numbers in {}, {}", precision_name<T>, tested),
                  static_cast<double>((!out.array().isFinite()).count()), 0);
}

// Row sums, where nothing cancels: an output may be finite and have lost its keys. Features of zeros may all be 0.
Result test_sums(const Approximation<float>& method, const Params& params, HeadData<float> head, Mask mask,
                 const std::string& tested) {
  head.V.setOnes();
  Matrix<float> sums = attended(method, head, mask);
  for (Index i = 0; i < sums.rows(); ++i)
    if (mask.visible(i, head.K.rows()) == 0 || (head.Q.isZero() && sums.row(i).isZero())) sums.row(i).setOnes();
  // Sums over at most 600 keys and 2^20 features of one sign are accurate to 1e-3 in float, in any order.
  return compared(claim, "row sums less 1, " + tested, static_cast<double>((sums.array() - 1).abs().maxCoeff()),
                  limit_at_dtype(params, 1e-3));
}

// Floors decide what small numbers and closed gates give: attend and decoder, by the transcription.
ClaimResults test_formula_at(const Subject& subject, const Drawing& drawing, const Probe& at, const std::string& tested,
                             std::uint64_t seed) {
  const auto method = drawing.draw<double>(0);
  const Matrix<double> want = drawing.transcribed(subject.transcription, *method, at);
  if (want.size() == 0 || !want.allFinite()) return {};
  const auto conditions = row_conditions(*method, at, subject.claims(subject.params, at.shape).non_negative, seed);
  const double size = size_of(at.head.V);
  ClaimResults results{compare_rows(claim, "attend against the transcription, " + tested,
                                    attended(*method, at.head, at.shape.mask), want, conditions, size,
                                    double_tolerance)};
  if (at.shape.mask != Mask{.causal = true} || at.shape.nq != at.shape.nk || !method->decoder(at.shape)) return results;
  results.push_back(compare_rows(claim, "steps against the transcription, " + tested,
                                 decoded(*method, at.shape, at.head, 0), want, conditions, size, double_tolerance));
  return results;
}

// A decoder computes with large numbers by code of its own.
template <class T>
Result decoded_infinite(const Approximation<T>& method, const Probe& at, const std::string& tested) {
  const Matrix<T> steps = decoded(method, at.shape, at.head.cast<T>(), at.shape.nk / 2);
  return compared(claim, fmt::format("NaN or infinite numbers of a decoder in {}, {}", precision_name<T>, tested),
                  static_cast<double>((!steps.array().isFinite()).count()), 0);
}

// So does a backward pass.
template <class T>
Result infinite_gradients(const Approximation<T>& method, const Probe& at, const std::string& tested) {
  const HeadData<T> head = at.head.cast<T>();
  Matrix<T> out(head.Q.rows(), head.V.cols()), Q(head.Q), K(head.K), V(head.V);
  std::vector<T> saved;
  Context context;
  const auto& pass = *method.differentiable();
  pass.forward(head.view(), at.shape.mask, context, out, saved);
  pass.backward(head.view(), at.shape.mask, out, saved, Matrix<T>(Matrix<T>::Ones(out.rows(), out.cols())), context,
                {Q, K, V});
  const auto count = [](const Matrix<T>& X) { return static_cast<double>((!X.array().isFinite()).count()); };
  return compared(claim, fmt::format("NaN or infinite numbers of gradients in {}, {}", precision_name<T>, tested),
                  count(Q) + count(K) + count(V), 0);
}

// Why the method, or one inside it, takes no such numbers; empty: it does.
std::string no_extremes_of(const Subject& subject, const Params& params, const Shape& shape) {
  if (const std::string why = subject.claims(params, shape).no_extremes; !why.empty()) return why;
  for (const Params& one : methods_inside(params))
    if (const std::string why = no_extremes_of(subject_of(one), one, shape); !why.empty()) return why;
  return "";
}

}  // namespace

ClaimResults test_finite(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (const std::string why = no_extremes_of(subject, subject.params, one.shape); !why.empty())
      return {skipped(claim, "it says why not: " + why)};
    const bool normalised = claims.normaliser != Normaliser::none;  // or sums of exponentials are no numbers
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto single = drawing.draw<float>(0);
    const Tensors state = single->state();
    const auto exact = drawing.draw<double>(0, state.empty() ? nullptr : &state);
    for (const Extreme& extreme : extremes_of(one, subject.params)) {
      if (!normalised && extreme.large) continue;
      // Sums of numbers in the thousands are beyond float16, and q.k of a million has no digits in bfloat16.
      if (extreme.head.Q.cwiseAbs().maxCoeff() > 100 &&
          spacing_of(subject.params) > std::numeric_limits<float>::epsilon())
        continue;
      const Probe at{one.shape, extreme.head};
      const std::string tested = fmt::format("{}, {}", extreme.words, one.name());
      const HeadData<float> head = extreme.head.cast<float>();
      const Matrix<float> out = attended(*single, head, one.shape.mask);
      results.push_back(count_infinite(out, tested));
      results.push_back(count_infinite(attended(*exact, extreme.head, one.shape.mask), tested));
      if (results[results.size() - 1].outcome == Outcome::fail || results[results.size() - 2].outcome == Outcome::fail)
        continue;
      if (one.shape.mask == Mask{.causal = true} && one.shape.nq == one.shape.nk && exact->decoder(one.shape)) {
        results.push_back(decoded_infinite(*single, at, tested));
        results.push_back(decoded_infinite(*exact, at, tested));
      }
      if (extreme.large && exact->differentiable()) {
        results.push_back(infinite_gradients(*single, at, tested));
        results.push_back(infinite_gradients(*exact, at, tested));
      }
      // Where all logits are equal, methods that choose keys may break ties in any way.
      if (subject.transcription && !extreme.large && !extreme.head.Q.isZero())
        for (Result& result : test_formula_at(subject, drawing, at, tested, seed)) results.push_back(std::move(result));
      if (claims.row_stochastic && claims.non_negative)
        results.push_back(test_sums(*single, subject.params, head, one.shape.mask, tested));
      // Small logits: what is chosen may hang on the last bit, and exp(z) - 1 has no digits in float.
      if (extreme.small || spacing_of(subject.params) > std::numeric_limits<float>::epsilon()) continue;
      results.push_back(compare_with_double(claim, "float against double, " + tested, out.cast<double>(), *exact, at,
                                            row_conditions(*exact, at, claims.non_negative, seed),
                                            float_rounding(at, state)));
    }
  }
  return results;
}

}  // namespace attnbench
