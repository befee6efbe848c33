#include "harness/core/feature_map.hpp"

namespace attnbench {

template class Registry<FeatureMapEntry>;
template class Registry<DeterministicMapEntry>;

}  // namespace attnbench
