#include "harness/claims/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/core/estimates.hpp"
#include "harness/core/needs.hpp"

namespace attnbench {

namespace {

Matrix<double> normal(std::uint64_t seed, const char* what, Index row_count, Index columns) {
  Generator generator = Streams(seed).stream("check", what, row_count, columns);
  return standard_normal(generator, row_count, columns);
}

HeadData<double> draw_calibration_head(Index n, Index d, std::uint64_t seed) {
  HeadData<double> head{normal(seed, "calibration Q", n, d), normal(seed, "calibration K", n, d),
                        normal(seed, "calibration V", n, 4)};
  // Standard deviations from 0.6 to 0.3 in Q and from 0.3 to 0.6 in K, for d = 4, and means of length 0.1. With larger
  // ones a learnt shift would move the tested pairs to where tails are heavy.
  const double unit = 0.6 * std::sqrt(4 / static_cast<double>(d));
  for (Index l = 0; l < d; ++l) {
    const double part = static_cast<double>(l) / static_cast<double>(std::max<Index>(1, d - 1));
    head.Q.col(l) *= unit * (1 - part / 2);
    head.K.col(l) *= unit * (0.5 + part / 2);
  }
  head.Q.col(0).array() += 0.1;
  head.K.col(d - 1).array() += 0.1;
  return head;
}

}  // namespace

HeadData<double> calibration_head(Index n, Index d, std::uint64_t seed) {
  // Claims ask for the same one under each mask: drawing it was a quarter of the time of their tests under sanitizers.
  using Key = std::tuple<Index, Index, std::uint64_t>;
  thread_local std::optional<std::pair<Key, HeadData<double>>> last;
  const Key key{n, d, seed};
  if (!last || last->first != key) last.emplace(key, draw_calibration_head(n, d, seed));
  return last->second;
}

Drawing::Drawing(const Subject& subject, Params params, const Shape& shape, std::uint64_t seed,
                 Index calibration_tokens)
    : subject_(&subject),
      params_(std::move(params)),
      shape_(shape),
      seed_(seed),
      calibration_(calibration_head(calibration_tokens, shape.d, seed)) {
  calibration_.extra = drawn_extras(
      params_, {.nq = calibration_tokens, .nk = calibration_tokens, .d = shape.d, .dv = calibration_.V.cols()}, seed);
}

template <class T>
std::unique_ptr<Approximation<T>> Drawing::make(Streams streams, Index head, Index replicate, const Tensors* state,
                                                LayerPlace place) const {
  const Head<double> learnt = calibration_.view();
  Shape shape = shape_;
  shape.precision = std::is_same_v<T, float> ? Precision::f32 : Precision::f64;
  return subject_->make<T>({.shape = shape,
                            .params = params_,
                            .streams = streams,
                            .head = head,
                            .replicate = replicate,
                            .calibration = &learnt,
                            .state = state,
                            .layer = place.layer,
                            .layers = place.layers});
}

template <class T>
std::unique_ptr<Approximation<T>> Drawing::draw(Index i, const Tensors* state) const {
  const Tensors* fitted = fitted_.empty() ? nullptr : &fitted_;
  return make<T>(streams_of(i), 0, 0, state ? state : fitted);
}

Streams Drawing::streams_of(Index i) const { return Streams(hash_bytes(fmt::format("check/{}/{}", seed_, i))); }

Matrix<double> Drawing::transcribed(const Transcription& transcription, const Approximation<double>& drawn,
                                    const Probe& one) const {
  const Head<double> learnt = calibration_.view();
  Shape shape = shape_;
  shape.precision = Precision::f64;
  return transcription({.shape = shape, .params = params_, .streams = streams_of(0), .calibration = &learnt}, drawn,
                       one.head.view(), one.shape.mask);
}

template <class T>
std::unique_ptr<Approximation<T>> Drawing::draw_for(std::uint64_t seed, Index head, Index replicate,
                                                    LayerPlace place) const {
  return make<T>(Streams(seed), head, replicate, nullptr, place);
}

template std::unique_ptr<Approximation<float>> Drawing::draw<float>(Index, const Tensors*) const;
template std::unique_ptr<Approximation<double>> Drawing::draw<double>(Index, const Tensors*) const;
template std::unique_ptr<Approximation<float>> Drawing::draw_for<float>(std::uint64_t, Index, Index, LayerPlace) const;
template std::unique_ptr<Approximation<double>> Drawing::draw_for<double>(std::uint64_t, Index, Index,
                                                                          LayerPlace) const;

void Drawing::fit_once() {
  if (!subject_->fitted) return;
  const Tensors first = draw<double>(0)->state(), second = draw<double>(1)->state();
  for (const auto& [name, tensor] : first)
    if (const auto other = second.find(name); other != second.end() && other->second == tensor)
      fitted_.emplace(name, tensor);
}

std::optional<KernelTheory> Drawing::theory() const {
  const Head<double> learnt = calibration_.view();
  return subject_->theory(params_, shape_, &learnt);
}

std::string Probe::name() const {
  const auto& mask = shape.mask;
  std::string text =
      shape.nq == shape.nk ? fmt::format("n = {}", shape.nk) : fmt::format("n = {} of {}", shape.nq, shape.nk);
  if (mask.causal) text += ", causal";
  if (mask.offset != (mask.causal ? shape.nk - shape.nq : 0)) text += fmt::format(", offset {}", mask.offset);
  if (mask.keys >= 0) text += fmt::format(", padded after {} keys", mask.keys);
  return text;
}

Probe gaussian_probe(const Params& method, const Shape& shape, std::uint64_t seed) {
  const auto held_by_float = [](const Matrix<double>& X) { return X.cast<float>().cast<double>().eval(); };
  return {shape,
          {held_by_float(0.8 * normal(seed, "Q", shape.nq, shape.d)),
           held_by_float(0.8 * normal(seed, "K", shape.nk, shape.d)),
           held_by_float(normal(seed, "V", shape.nk, shape.dv)), drawn_extras(method, shape, seed)}};
}

Probe with_all_bits(const Probe& one, std::uint64_t seed) {
  constexpr double below_float = 0x1p-30;
  Probe full = one;
  for (auto& [matrix, what] :
       {std::pair{&full.head.Q, "Q below float"}, {&full.head.K, "K below float"}, {&full.head.V, "V below float"}})
    *matrix += below_float * normal(seed, what, matrix->rows(), matrix->cols());
  return full;
}

Probes probes_of(const Subject& subject, std::uint64_t seed) {
  constexpr Index d = 8, dv = 5;
  const auto make = [&](Index shorter, Index longer, Index queries) {
    Probes made;
    for (const Shape& shape :
         {Shape{.nq = shorter, .nk = shorter, .d = d, .dv = dv},
          {.nq = longer, .nk = longer, .d = d, .dv = dv},
          {.nq = longer, .nk = longer, .d = d, .dv = dv, .mask = {.causal = true}},
          {.nq = queries, .nk = longer, .d = d, .dv = dv, .mask = {.causal = true, .offset = longer - queries}}}) {
      if (!subject.claims(subject.params, shape).no_form.empty()) continue;
      made.push_back(gaussian_probe(subject.params, shape, seed));
      Drawing(subject, subject.params, shape, seed).draw<double>(0);
    }
    return made;
  };
  try {
    return make(48, 130, 100);
  } catch (const Misuse&) {
  } catch (const Skip&) {
  }
  return make(600, 600, 500);
}

std::optional<Probe> under(const Subject& subject, const Probe& one, Mask mask) {
  Probe other = one;
  other.shape.mask = mask;
  if (!subject.claims(subject.params, other.shape).no_form.empty()) return std::nullopt;
  try {
    Drawing(subject, subject.params, other.shape, 1).draw<double>(0);
  } catch (const Misuse&) {  // too few keys for it
    return std::nullopt;
  } catch (const Skip&) {
    return std::nullopt;
  }
  return other;
}

void move_extras(Extras& extras, const Params& method, Index key, Index last_key, Index query, Index last_query) {
  for (const Need& need : needs_of(method)) {
    Extra& extra = extras.at(need.name);
    const auto move = [&](auto entries) {
      if (need.values == Need::Values::normal) entries *= -30;
      if (need.values == Need::Values::uniform) entries = 1 - entries;
      if (need.values == Need::Values::positions) entries += 1000;
    };
    const auto move_along = [&](Extra::Axis axis, const auto& block) {
      if (axis == Extra::Axis::keys) move(block(key, last_key - key));
      if (axis == Extra::Axis::queries) move(block(query, last_query - query));
    };
    auto numbers = extra.numbers.array();
    move_along(extra.rows, [&](Index first, Index count) { return numbers.middleRows(first, count); });
    move_along(extra.columns, [&](Index first, Index count) { return numbers.middleCols(first, count); });
  }
}

template <class T>
Matrix<T> attended(const Approximation<T>& method, const HeadData<T>& head, Mask mask, int threads) {
  Matrix<T> out = Matrix<T>::Constant(head.Q.rows(), head.V.cols(), std::numeric_limits<T>::quiet_NaN());
  Context context(threads);
  method.attend(head.view(), mask, context, out);
  return out;
}

template Matrix<float> attended(const Approximation<float>&, const HeadData<float>&, Mask, int);
template Matrix<double> attended(const Approximation<double>&, const HeadData<double>&, Mask, int);

template <class T>
Matrix<T> decoded(const Approximation<T>& method, const Shape& shape, const HeadData<T>& head, Index prompt) {
  const auto decoder = method.decoder(shape);
  if (!decoder) return {};
  Context context;
  const auto tokens = [&](Index first, Index count) { return HeadPart<T>::tokens(head.view(), first, count); };
  if (prompt > 0) decoder->prefill(tokens(0, prompt).view(), context);
  Matrix<T> out = Matrix<T>::Constant(head.Q.rows() - prompt, head.V.cols(), std::numeric_limits<T>::quiet_NaN());
  for (Index t = prompt; t < head.Q.rows(); ++t)
    decoder->step(tokens(t, 1).view(), context, row_block(out, t - prompt, 1));
  return out;
}

template Matrix<float> decoded(const Approximation<float>&, const Shape&, const HeadData<float>&, Index);
template Matrix<double> decoded(const Approximation<double>&, const Shape&, const HeadData<double>&, Index);

template <class T>
double differing_numbers(const Matrix<T>& a, const Matrix<T>& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return std::numeric_limits<double>::infinity();
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  double different = 0;
  for (Index i = 0; i < a.size(); ++i)
    different += std::bit_cast<Bits>(a.data()[i]) != std::bit_cast<Bits>(b.data()[i]);
  return different;
}

template double differing_numbers(const Matrix<float>&, const Matrix<float>&);
template double differing_numbers(const Matrix<double>&, const Matrix<double>&);

Params tested_params(const Params& params, const Approximation<double>& method) {
  Params tested = params;
  if (const auto* sums = unbiased_sums(method); sums && !sums->tested_at().empty())
    for (const auto& [key, value] : parse_spec("assignments:" + sums->tested_at()).arguments)
      tested = tested.with(key, value);
  return tested;
}

double size_of(const Matrix<double>& V) { return std::max(1.0, V.cwiseAbs().maxCoeff()); }

ScaledKernel::ScaledKernel(const Kernel<double>& kernel, const Probe& one)
    : block(one.shape.nq, one.shape.nk),
      log_rows(static_cast<size_t>(one.shape.nq)),
      log_columns(static_cast<size_t>(one.shape.nk)) {
  Context context;
  kernel.kernel(one.head.view(), context, block, log_rows, log_columns);
}

Eigen::RowVectorXd ScaledKernel::row(Index i, Mask mask) const {
  const Index seen = mask.visible(i, block.cols());
  if (seen == 0) return {};
  const Eigen::Map<const Eigen::RowVectorXd> columns(log_columns.data(), seen);
  return block.row(i).head(seen).array() * (columns.array() - columns.maxCoeff()).exp();
}

double ScaledKernel::log_scale_of_row(Index i, Mask mask) const {
  const Index seen = mask.visible(i, block.cols());
  const Eigen::Map<const Eigen::RowVectorXd> columns(log_columns.data(), seen);
  return log_rows[static_cast<size_t>(i)] + columns.maxCoeff();
}

std::vector<double> cancellations(const Approximation<double>& method, const Probe& one) {
  std::vector<double> ratios(static_cast<size_t>(one.shape.nq), 1);
  constexpr Index most_keys = 5000;  // some kernels are parts of a matrix of n x n numbers
  if (!method.kernel() || one.shape.nk > most_keys) return ratios;
  const ScaledKernel K(*method.kernel(), one);
  for (size_t i = 0; i < ratios.size(); ++i) {
    const Eigen::RowVectorXd row = K.row(static_cast<Index>(i), one.shape.mask);
    if (row.size() > 0) ratios[i] = std::max(1.0, row.cwiseAbs().sum() / std::abs(row.sum()));
  }
  return ratios;
}

std::vector<double> row_conditions(const Approximation<double>& method, const Probe& one, bool non_negative,
                                   std::uint64_t seed) {
  constexpr double change = 1e-9;
  std::vector<double> condition(static_cast<size_t>(one.shape.nq), 1);
  if (non_negative) return condition;
  Generator generator = Streams(seed).stream("check", "conditions");
  const auto changed = [&](Matrix<double> X) {
    for (Index i = 0; i < X.size(); ++i) X.data()[i] *= 1 + (generator() % 2 == 0 ? change : -change);
    return X;
  };
  const Matrix<double> out = attended(method, one.head, one.shape.mask);
  const double unit = change * one.head.V.cwiseAbs().maxCoeff();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const HeadData<double> other{changed(one.head.Q), changed(one.head.K), changed(one.head.V), one.head.extra};
    const Matrix<double> moved = attended(method, other, one.shape.mask) - out;
    for (Index i = 0; i < out.rows(); ++i)
      condition[static_cast<size_t>(i)] =
          std::max(condition[static_cast<size_t>(i)], moved.row(i).cwiseAbs().maxCoeff() / unit);
  }
  const std::vector<double> ratios = cancellations(method, one);
  for (size_t i = 0; i < condition.size(); ++i) condition[i] = std::max(condition[i], ratios[i]);
  return condition;
}

Result compare_rows(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                    const Matrix<double>& want, const std::vector<double>& condition, double size, double limit) {
  double worst = 0;
  Index left_out = 0;
  for (Index i = 0; i < want.rows(); ++i) {
    const double c = condition[static_cast<size_t>(i)];
    if (c > largest_condition) {
      ++left_out;
      continue;
    }
    // A quotient errs by as much as its denominator, relative to itself: where that nearly cancels, rows are large.
    const double own_size = std::max(size, want.row(i).cwiseAbs().maxCoeff());
    for (Index j = 0; j < want.cols(); ++j) worst = worse(worst, std::abs(got(i, j) - want(i, j)) / (own_size * c));
  }
  if (left_out == want.rows()) return skipped(claim, tested + ": the normalisers of all rows cancel");
  return compared(claim, left_out == 0 ? tested : fmt::format("{}, {} rows that cancel left out", tested, left_out),
                  worst, limit);
}

}  // namespace attnbench
