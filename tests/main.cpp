// The test program's main, the same for both versions of Catch2.
#define CATCH_CONFIG_RUNNER
#include "harness/linalg/lapack.hpp"
#include "harness/workers/serve.hpp"
#include "tests/catch.hpp"

int main(int argc, char** argv) {
  attnbench::prepare_lapack(argv);
  if (const auto code = attnbench::serve_if_worker(argc, argv)) return *code;
  return Catch::Session().run(argc, argv);
}
