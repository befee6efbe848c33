#include "harness/core/key_score.hpp"

namespace attnbench {

template class Registry<KeyScoreEntry>;

}  // namespace attnbench
