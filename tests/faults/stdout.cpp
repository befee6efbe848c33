// Prints what could be taken for an answer.
#include <iostream>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("stdout", [] {
  for (int line = 0; line < 1000; ++line) std::cout << "{\"ending\": 0, \"measurements\": []}" << std::endl;
}));

}  // namespace
}  // namespace attnbench
