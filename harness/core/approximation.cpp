#include "harness/core/approximation.hpp"

#include <fmt/format.h>

#include "harness/linalg/products.hpp"

namespace attnbench {

template <class T>
void Kernel<T>::diagonal(const Head<T>& head, Context& context, std::span<T> values, std::span<T> log_scale) const {
  Matrix<T> one(1, 1);
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const auto place = static_cast<size_t>(i);
    T log_column;
    kernel(HeadPart<T>::tokens(head, i, 1).view(), context, one, log_scale.subspan(place, 1), {&log_column, 1});
    values[place] = one(0, 0);
    log_scale[place] += log_column;
  }
}

template <class T>
void Kernel<T>::normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                            std::span<T> log_scale) const {
  // Blocks have enough rows to pay for the work that a method repeats per block: vq quantises all keys.
  const Index nq = head.Q.rows(), nk = head.K.rows(), block = std::clamp<Index>((Index{1} << 20) / nk, 16, 256);
  Matrix<T> memory(std::min(block, nq), nk);
  Eigen::Array<T, 1, Eigen::Dynamic> log_columns(nk);
  for (Index begin = 0; begin < nq; begin += block) {
    const Index count = std::min(block, nq - begin);
    const auto K = corner(memory, count, nk);
    kernel(HeadPart<T>(head, begin, count, 0, nk).view(), context, K,
           log_scale.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
           {log_columns.data(), static_cast<size_t>(nk)});
    for (Index i = 0; i < count; ++i) {
      const auto place = static_cast<size_t>(begin + i);
      const Index seen = mask.visible(begin + i, nk);
      values[place] = 0;
      if (seen == 0) {
        log_scale[place] = -std::numeric_limits<T>::infinity();
        continue;
      }
      const T largest = log_columns.head(seen).maxCoeff();
      values[place] = (K.row(i).head(seen).array() * (log_columns.head(seen) - largest).exp()).sum();
      log_scale[place] += largest;
    }
  }
}

template class Kernel<float>;
template class Kernel<double>;

template <class T>
void Rows<T>::transposed_times(const Head<T>& head, Mask mask, const In<T>& G, Context& context, Out<T> out) const {
  // A fixed number of partial sums, added in order, gives the same bits for any number of threads. Blocks have enough
  // rows to pay for the work that a method repeats per block, such as the features of all keys.
  constexpr Index partial_sums = 4;
  const Index nq = head.Q.rows(), nk = head.K.rows(), share = (nq + partial_sums - 1) / partial_sums;
  const Index block = std::clamp<Index>((Index{1} << 22) / nk, 16, 256);
  std::vector<Matrix<T>> sums(partial_sums);
  context.for_blocks(nq, share, [&](Context& single, Index begin, Index count) {
    auto& sum = sums[static_cast<size_t>(begin / share)];
    sum = Matrix<T>::Zero(nk, G.cols());
    Matrix<T> memory(std::min(block, count), nk);
    for (Index row = begin; row < begin + count; row += block) {
      const Index height = std::min(block, begin + count - row);
      const auto A = corner(memory, height, nk);
      attention_rows(head, mask, row, single, A);
      transposed_multiply_add<T>(single, A, row_block(G, row, height), sum);
    }
  });
  out.setZero();
  for (const auto& sum : sums)
    if (sum.size() > 0) out += sum;
}

template class Rows<float>;
template class Rows<double>;

const Matrix<double>* Draw::injected(const std::string& name, Index rows, Index columns) const {
  if (!state) return nullptr;
  const auto found = state->find(name);
  if (found == state->end()) return nullptr;
  const auto& tensor = found->second;
  if (tensor.rows() != rows || tensor.cols() != columns)
    throw Misuse(fmt::format("{}: the injected tensor '{}' is {} x {}; expected {} x {}", params.spec(), name,
                             tensor.rows(), tensor.cols(), rows, columns));
  return &tensor;
}

void require_row_sums(const Params& base, const std::string& user) {
  // A normaliser does not depend on sizes.
  const Shape any{.nq = 64, .nk = 64, .d = 16, .dv = 16};
  const Normaliser given = find<MethodEntry>(base.name()).claims(base, any).normaliser;
  if (given == Normaliser::row_sums) return;
  throw Misuse(
      fmt::format("{}: [{}] has the normaliser {}; expected row_sums, a method that divides its weights by their "
                  "row sums, such as linear or performer",
                  user, base.spec(), given == Normaliser::none ? "none" : "l2"));
}

template <class T>
std::unique_ptr<Approximation<T>> make_approximation(const Draw& draw) {
  const auto& entry = find<MethodEntry>(draw.params.name());
  const auto& shape = draw.shape;
  if (shape.nq < 1 || shape.nk < 1 || shape.d < 1 || shape.dv < 1)
    throw Misuse(fmt::format("{}: nq={}, nk={}, d={}, dv={}; every size must be at least 1", draw.params.spec(),
                             shape.nq, shape.nk, shape.d, shape.dv));
  entry.check(draw.params);
  const auto claims = entry.claims(draw.params, shape);
  if (!claims.no_form.empty())
    throw Skip(fmt::format("{} has no {} form: {}", draw.params.spec(), shape.mask.causal ? "causal" : "bidirectional",
                           claims.no_form));
  if constexpr (std::is_same_v<T, float>)
    return entry.f32(draw);
  else
    return entry.f64(draw);
}

template std::unique_ptr<Approximation<float>> make_approximation<float>(const Draw&);
template std::unique_ptr<Approximation<double>> make_approximation<double>(const Draw&);

std::function<bool(const Params&)> never_fitted() {
  return [](const Params&) { return false; };
}

TheoryOf no_theory() {
  return [](const Params&, const Shape&, const Head<double>*) { return std::optional<KernelTheory>(); };
}

std::function<void(const Params&)> no_check() {
  return [](const Params&) {};
}

std::function<std::vector<std::string>(const Params&, const Shape&)> no_caveats() {
  return [](const Params&, const Shape&) { return std::vector<std::string>(); };
}

template class Registry<MethodEntry>;

}  // namespace attnbench
