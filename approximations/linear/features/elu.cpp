// The feature map of "Transformers are RNNs". Katharopoulos et al., arXiv:2006.16236, eq. 7.
//   phi(x) = elu(x) + 1 = 1 + x for x > 0, exp(x) otherwise                                         methods.md C
// d positive features. Does not approximate the softmax kernel: 1 + x is still 26 % below e^x at x = 1.
#include "approximations/linear/features/channelwise.hpp"
#include "harness/linalg/exp.hpp"

namespace attnbench::elu_map {
namespace {

template <class T>
struct EluPlusOne {
  explicit EluPlusOne(const Params&) {}
  // max(x, 0) + exp(min(x, 0)): five times faster than a select, which Eigen does not vectorise.
  void apply(const auto& x, auto&& y) const {
    map_in_lockstep<T>(x.data(), y.data(), x.size(), []<class Packet, int count>(Packet(&held)[count]) {
      const Packet zero = Eigen::internal::pset1<Packet>(T(0));
      Packet positive[count];
      for (int v = 0; v < count; ++v) {
        positive[v] = Eigen::internal::pmax(held[v], zero);
        held[v] = Eigen::internal::pmin(held[v], zero);
      }
      Exponential<T>::in_lockstep(held);
      for (int v = 0; v < count; ++v) held[v] = Eigen::internal::padd(held[v], positive[v]);
    });
  }
  // min(y, 1): y is 1 + x > 1 where the derivative is 1, and e^x, its own derivative, elsewhere.
  void pull(const auto&, const auto& y, const auto& dy, auto&& dx) const { dx = y.min(T(1)) * dy; }
  static constexpr double exps = 1;
};

const bool registered = add(channelwise_map<EluPlusOne>({
    .text = {.name = "elu",
             .printed = "elu + 1",
             .summary = "elu(x) + 1, elementwise and positive",
             .formula = "phi(x) = 1 + x for x > 0, exp(x) otherwise",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 7"},
    .parameters = {},
}));

}  // namespace
}  // namespace attnbench::elu_map
