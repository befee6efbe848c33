// Changes what all that follows in its process would see: the locale, the rounding, the folder.
#include <fenv.h>
#include <unistd.h>

#include <iostream>
#include <locale>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

struct Commas final : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

const bool registered = add(faulty("state", [] {
  std::locale::global(std::locale(std::locale::classic(), new Commas));
  std::cout.imbue(std::locale());
  fesetround(FE_UPWARD);
  if (chdir("/") != 0) throw std::runtime_error("no folder");
}));

}  // namespace
}  // namespace attnbench
