#include "approximations/mixers/positions.hpp"

#include <fmt/format.h>

#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

// A system that overcommits memory would kill the process. Skip the cell instead.
void skip_beyond_memory(double bytes, const std::string& what) {
  if (bytes < 1e8) return;  // below this size the check takes longer than the draw
  try {
    refuse_beyond_memory(bytes, what, "use fewer tokens");
  } catch (const Misuse& refusal) {
    throw Skip(refusal.what());
  }
}

}  // namespace

std::string no_weights_for_rows(const Shape& shape) {
  const Index last = shape.nq - 1 + shape.mask.offset;
  if (last >= shape.nk)
    return fmt::format("its weights belong to the {} positions of the keys, and a row has position {}", shape.nk, last);
  if (!shape.mask.causal && shape.mask.offset < 0)
    return fmt::format("its weights belong to positions from 0 on, and a row has position {}", shape.mask.offset);
  return "";
}

void require_drawn(const Positions& drawn, const Positions& asked, const std::string& method) {
  if (asked.size() > 0 && (asked.begin < drawn.begin || asked.end > drawn.end))
    throw Misuse(
        fmt::format("{}: rows at positions {} to {} are asked for, and it was drawn for {} to {}; draw it for "
                    "the shape and offset of the call",
                    method, asked.begin, asked.end - 1, drawn.begin, drawn.end - 1));
}

template <class T>
Matrix<T> rows_by_position(const Draw& draw, const char* name, Positions positions, Index columns, double scale) {
  if (const auto* given = draw.injected(name, positions.size(), columns)) return given->cast<T>();
  skip_beyond_memory(static_cast<double>(positions.size()) * static_cast<double>(columns) * sizeof(T),
                     fmt::format("{}: {}, {} x {},", draw.params.spec(), name, positions.size(), columns));
  if (scale == 0) return Matrix<T>::Zero(positions.size(), columns);
  Matrix<T> weights(positions.size(), columns);
  for (Index p = positions.begin; p < positions.end; ++p) {
    auto generator = draw.streams.stream("weights", draw.params.name(), name, p, draw.head, draw.replicate);
    weights.row(p - positions.begin) = (scale * standard_normal(generator, 1, columns)).cast<T>();
  }
  return weights;
}

template <class T>
Matrix<T> rows_in_order(const Draw& draw, const std::string& name, Index rows, Index columns, double scale) {
  if (const auto* given = draw.injected(name, rows, columns)) return given->cast<T>();
  auto generator = draw.streams.stream("weights", draw.params.name(), name, columns, draw.head, draw.replicate);
  return (scale * standard_normal(generator, rows, columns)).cast<T>();
}

template <class T>
Matrix<T> constant_unless_injected(const Draw& draw, const std::string& name, Index rows, Index columns, double value) {
  if (const auto* given = draw.injected(name, rows, columns)) return given->cast<T>();
  return Matrix<T>::Constant(rows, columns, static_cast<T>(value));
}

#define ATTNBENCH_INSTANTIATE(T)                                                              \
  template Matrix<T> rows_by_position<T>(const Draw&, const char*, Positions, Index, double); \
  template Matrix<T> rows_in_order<T>(const Draw&, const std::string&, Index, Index, double); \
  template Matrix<T> constant_unless_injected<T>(const Draw&, const std::string&, Index, Index, double);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
