// The test program's main, the same for both versions of Catch2.
#define CATCH_CONFIG_RUNNER
#include "harness/linalg/spectrum.hpp"
#include "tests/catch.hpp"

int main(int argc, char** argv) {
  attnbench::prepare_lapack(argv);
  return Catch::Session().run(argc, argv);
}
