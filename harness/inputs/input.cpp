#include "harness/inputs/input.hpp"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/scaling.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

constexpr double bytes_per_number = sizeof(double);
constexpr double block_rows = 64;  // rows of the attention matrix in one block of work

// In double, so that n = 10^18 does not overflow before we refuse it.
double head_bytes(double nq, double nk, double d, double dv) {
  const double head = nq * d + nk * d + nk * dv, output = nq * dv, block = block_rows * nk;
  return bytes_per_number * (head + output + block);
}

void refuse_non_finite(const Params& input, const char* name, const Matrix<double>& X) {
  if (X.allFinite()) return;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < X.cols(); ++j)
      if (!std::isfinite(X(i, j)))
        throw Misuse(
            fmt::format("{}: {}({}, {}) is {} once scaled; every value must be finite: fix the input, or "
                        "give a smaller scale",
                        input.spec(), name, i, j, X(i, j)));
}

void require_shape(const Params& input, const char* name, const Matrix<double>& X, Index rows, Index columns) {
  if (X.rows() != rows || X.cols() != columns)
    throw std::logic_error(
        fmt::format("{}: drew {} of {} x {}, not {} x {}", input.spec(), name, X.rows(), X.cols(), rows, columns));
}

}  // namespace

bool has_calibration(const Params& input) {
  for (const Parameter& parameter : input.declared())
    if (parameter.kind == Parameter::Kind::specs && parameter.catalogue == InputEntry::plural)
      for (const Params& inner : input.all_nested(parameter.name))
        if (!has_calibration(inner)) return false;
  return find<InputEntry>(input.name()).has_calibration;
}

std::string inputs_that_give(const Need& need) {
  std::string names;
  for (const auto& name : catalogue(InputEntry::plural).names())
    for (const Need& given : find<InputEntry>(name).provides)
      if (given.name == need.name && words_of(given) == words_of(need)) names += name + ", ";
  return fmt::format("inputs that do: {}file:PATH with an array '{}' beside q, k and v", names, need.name);
}

void refuse_absurd_sizes(Index nq, Index nk, Index d, Index dv) {
  const std::string sizes = fmt::format("nq={}, nk={}, d={}, dv={}", nq, nk, d, dv);
  if (nq < 1 || nk < 1 || d < 1 || dv < 1)
    throw Misuse(fmt::format("{}: every size must be at least 1; give positive sizes", sizes));
  const double width = static_cast<double>(d), value_width = static_cast<double>(dv);
  refuse_beyond_memory(head_bytes(static_cast<double>(nq), static_cast<double>(nk), width, value_width),
                       sizes + ": this head, its output and one block of work",
                       fmt::format("give smaller sizes ({} for each token at this d and dv)",
                                   memory_size(head_bytes(1, 1, width, value_width))));
}

void refuse_sizes(const Params& input, Index nq, Index nk, Index d, Index dv) {
  const InputLimits limits = find<InputEntry>(input.name()).limits(input);
  const auto refuse_more_rows = [&](const char* size, Index asked, Index limit) {
    if (limit > 0 && asked > limit)
      throw Misuse(fmt::format("{}: {}={} was asked for and the input has {} rows; expected {} <= {}", input.spec(),
                               size, asked, limit, size, limit));
  };
  const auto refuse_another_width = [&](const char* size, Index asked, Index fixed) {
    if (fixed > 0 && asked != fixed)
      throw Misuse(fmt::format("{}: {}={} was asked for and the input has {}={}; leave {} out or give {}", input.spec(),
                               size, asked, size, fixed, size, fixed));
  };
  refuse_more_rows("nq", nq, limits.queries);
  refuse_more_rows("nk", nk, limits.keys);
  refuse_another_width("d", d, limits.d);
  refuse_another_width("dv", dv, limits.dv);
  refuse_absurd_sizes(nq, nk, d, dv);
}

HeadData<double> draw_head(const Params& input, const InputRequest& request, double logit_scale) {
  if (!(std::isfinite(logit_scale) && logit_scale >= 0))
    throw Misuse(fmt::format("logit_scale={} is not allowed; expected a finite number >= 0", logit_scale));
  const auto& entry = find<InputEntry>(input.name());
  refuse_sizes(input, request.nq, request.nk, request.d, request.dv);

  HeadData<double> head = entry.draw(input, request);
  require_shape(input, "Q", head.Q, request.nq, request.d);
  require_shape(input, "K", head.K, request.nk, request.d);
  require_shape(input, "V", head.V, request.nk, request.dv);
  const Shape shape{.nq = request.nq, .nk = request.nk, .d = request.d, .dv = request.dv};
  for (const Need& given : entry.provides) {
    const auto [rows, columns] = size_of(given, shape);
    require_shape(input, given.name.c_str(), head.extra[given.name].numbers, rows, columns);
  }
  const double scale = std::sqrt(logit_scale) * edge_scale(request.d);
  head.Q *= scale;
  head.K *= scale;
  refuse_non_finite(input, "Q", head.Q);
  refuse_non_finite(input, "K", head.K);
  refuse_non_finite(input, "V", head.V);
  return head;
}

template class Registry<InputEntry>;

InputPlace place_of(const Params& input) {
  const auto& entry = find<InputEntry>(input.name());
  return entry.place ? entry.place(input) : InputPlace{input.spec(), ""};
}

}  // namespace attnbench
