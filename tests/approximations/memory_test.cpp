// What methods say that they need beside inputs and output, against what they are seen to take.
#include "harness/machine/peak_memory.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"

using namespace attnbench;

// Leading terms only, of one thread; what is below a megabyte is blocks and tiles.
TEST_CASE("a call takes the memory that the entry says", "[methods]") {
  if (sanitized) return;
  constexpr double tiles = 1 << 20;
  const TestHead problem = gaussian_problem({.nq = 8192, .nk = 8192, .d = 64, .dv = 64}, 0.5);
  const HeadData<float> head = problem.head.cast<float>();
  Matrix<float> out = Matrix<float>::Zero(problem.shape.nq, problem.shape.dv);
  for (const Params& params : all_variants()) {
    INFO(params.spec());
    const auto& entry = find<MethodEntry>(params.name());
    REQUIRE(entry.memory);
    Shape shape = problem.shape;
    shape.mask.causal = !entry.claims(params, shape).no_form.empty();
    const double said = entry.memory(params, shape);
    if (said > 64 * tiles) continue;  // a matrix of n x n
    const auto method = draw_method<float>(params, shape, problem);
    Context context;
    method->attend(head.view(), shape.mask, context, out);  // LAPACK keeps what it allocates on its first call
    const auto taken = peak_bytes([&] { method->attend(head.view(), shape.mask, context, out); });
    if (!taken) return;  // a kernel that does not tell
    CHECK(*taken < 2 * said + tiles);
    CHECK(said < 2 * *taken + tiles);
  }
}
