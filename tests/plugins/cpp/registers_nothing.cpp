// Includes the interface and leaves it at that.
#include "harness/core/approximation.hpp"
