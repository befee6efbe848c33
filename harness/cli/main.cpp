#include "harness/cli/program.hpp"
#include "harness/linalg/lapack.hpp"

int main(int argc, char** argv) {
  attnbench::prepare_lapack(argv);
  return attnbench::run_program(argc, argv);
}
