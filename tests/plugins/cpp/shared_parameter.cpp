// A feature map with a parameter that performer has as well: performer:features=... could mean either by it.
#include "harness/core/feature_map.hpp"

namespace attnbench {
namespace {

template <class T>
class Shifted final : public FeatureMap<T> {
 public:
  explicit Shifted(const Draw& draw) : d_(draw.shape.d) {}
  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    block = X;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }

 private:
  Index d_;
};

const bool registered = add(feature_map<Shifted>({
    .text = {.name = "shifted", .summary = "for tests", .formula = "phi(x) = x", .reference = "none", .cost = "none"},
    .parameters = {Parameter::text("backward", "", "performer has one too")},
    .features = [](const Params&, Index d) { return d; },
}));

}  // namespace
}  // namespace attnbench
