#include "harness/experiment/measured_cost.hpp"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "harness/core/methods_inside.hpp"
#include "harness/core/needs.hpp"
#include "harness/core/scaling.hpp"

namespace attnbench {

namespace {

HeadData<double> gaussian_head(const Params& method, const Shape& shape) {
  const auto normal = [&](const char* what, Index rows, Index columns) {
    auto generator = Streams(1).stream("match", what, rows, columns);
    return Matrix<double>(standard_normal(generator, rows, columns) * edge_scale(shape.d));
  };
  return {normal("Q", shape.nq, shape.d), normal("K", shape.nk, shape.d), normal("V", shape.nk, shape.dv),
          drawn_extras(method, shape, 1)};
}

template <class T>
std::unique_ptr<Approximation<T>> fitted(const Params& method, const Shape& shape, const HeadData<double>& to) {
  const Head<double> learnt = to.view();
  return make_approximation<T>({.shape = shape, .params = method, .streams = Streams(1), .calibration = &learnt});
}

template <class T>
double seconds_of_call(const Params& method, Shape shape) {
  const HeadData<double> calibration = gaussian_head(method, shape);
  const auto drawn = fitted<T>(method, shape, calibration);
  const HeadData<T> head = calibration.template cast<T>();
  Matrix<T> out(shape.nq, shape.dv);
  double least = INFINITY;
  for (int call = 0; call < 4; ++call) {  // the first call warms up
    Context context(1, Rounding::none, operands_of(shape.precision));
    const auto begin = std::chrono::steady_clock::now();
    drawn->attend(head.view(), shape.mask, context, out);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

// The mean over rows of the number of keys that they read: of all rows up to 64, else of 8 x 8 neighbours. nullopt if
// the method declares no pattern.
std::optional<double> keys_of_row(const Params& method, const Shape& shape) {
  const HeadData<double> head = gaussian_head(method, shape);
  const auto drawn = fitted<double>(method, shape, head);
  if (!drawn->pattern()) return std::nullopt;
  constexpr Index neighbours = 8, groups = 8;
  const bool few = shape.nq <= neighbours * groups;
  const Index count = few ? shape.nq : neighbours;
  Context context;
  double keys = 0, rows = 0;
  for (Index group = 0; group < (few ? 1 : groups); ++group) {
    std::vector<std::vector<Index>> of_rows(static_cast<size_t>(count));
    const Index first = few ? 0 : group * (shape.nq - count) / (groups - 1);
    drawn->pattern()->keys_of_rows(head.view(), shape.mask, first, context, of_rows);
    for (const auto& of_row : of_rows) keys += static_cast<double>(of_row.size());
    rows += static_cast<double>(count);
  }
  return keys / rows;
}

// Bytes that a decoder keeps after all tokens of a gaussian head. nullopt if the method has no decoder.
template <class T>
std::optional<double> bytes_after(const Params& method, const Shape& shape) {
  const HeadData<double> head = gaussian_head(method, shape);
  const auto drawn = fitted<T>(method, shape, head);
  const auto decoder = drawn->decoder(shape);
  if (!decoder) return std::nullopt;
  Context context;
  decoder->prefill(head.template cast<T>().view(), context);
  return static_cast<double>(decoder->bytes());
}

template <class T>
std::optional<double> measured_here(const std::string& what, const Params& method, const Shape& shape) {
  if (what == "keys") return keys_of_row(method, shape);
  if (what == "kv-bytes") return bytes_after<T>(method, shape);
  if (what == "seconds") return seconds_of_call<T>(method, shape);
  throw std::logic_error("nothing measures " + what);
}

// The entry of the spec, or of a method inside it, that only a worker may call. Null: this process may call all of
// them.
const MethodEntry* entry_elsewhere(const Params& method) {
  const auto& entry = find<MethodEntry>(method.name());
  if (entry.measured) return &entry;
  for (const Params& one : methods_inside(method))
    if (const auto* found = entry_elsewhere(one)) return found;
  return nullptr;
}

}  // namespace

std::optional<double> measured_cost(const std::string& what, const Params& method, const Shape& shape) {
  if (const auto* entry = entry_elsewhere(method)) return entry->measured(what, method, shape);
  return in_float(shape.precision) ? measured_here<float>(what, method, shape)
                                   : measured_here<double>(what, method, shape);
}

}  // namespace attnbench
