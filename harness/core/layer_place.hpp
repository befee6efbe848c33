#pragma once

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// Where in a model a head is: layer of layers. The defaults are for a head by itself.
struct LayerPlace {
  Index layer = 0, layers = 1;
};

}  // namespace attnbench
