#include "harness/experiment/exact.hpp"

#include <algorithm>

#include "harness/core/approximation.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {
constexpr size_t kept = 4;  // cells are sorted by input, so two threads need two, and a few more cost little

std::unique_ptr<Approximation<double>> softmax(const Shape& shape) {
  const Params params("methods", "softmax");
  return make_approximation<double>({.shape = shape, .params = params, .streams = Streams(0)});  // draws nothing
}
}  // namespace

Exact::Exact(const Cell& cell, Index replicate)
    : head(draw_cell_head(cell, replicate, 0, Purpose::measured)), shape_(cell.problem.shape) {
  Context context;
  output.resize(head.Q.rows(), head.V.cols());
  softmax(shape_)->attend(head.view(), shape_.mask, context, output);
}

const Matrix<double>& Exact::attention() const {
  std::call_once(once_, [&] {
    Context context;
    // Row by row costs n^2 d; attend with V = I, which is proved equal, would cost n^3.
    attention_.resize(head.Q.rows(), head.K.rows());
    softmax(shape_)->rows()->attention_rows(head.view(), shape_.mask, 0, context, attention_);
    require_finite<double>(attention_, "exact attention matrix");
  });
  return attention_;
}

std::shared_ptr<const Exact> ExactCache::get(const Cell& cell, Index replicate) {
  const std::string key = cell.input_key() + " replicate=" + std::to_string(replicate);
  Slot slot;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.key == key; });
    if (found == slots_.end()) {
      slot.key = key;
      slots_.push_front(slot);
      if (slots_.size() > kept) slots_.pop_back();
    } else {
      slot = *found;
    }
  }
  std::call_once(*slot.once, [&] { *slot.value = std::make_shared<const Exact>(cell, replicate); });
  return *slot.value;
}

std::vector<double> ExactCache::remembered(const Cell& cell, Index replicate, const std::string& name,
                                           const std::function<void(std::vector<double>&)>& compute) {
  std::shared_ptr<Numbers> numbers;
  {
    const std::scoped_lock lock(mutex_);
    auto& slot = numbers_[cell.input_key() + " replicate=" + std::to_string(replicate) + " " + name];
    if (!slot) slot = std::make_shared<Numbers>();
    numbers = slot;
  }
  std::call_once(numbers->once, [&] { compute(numbers->values); });
  return numbers->values;
}

}  // namespace attnbench
