// Several threads give the same bits as one. Compiled with the thread sanitizer, these tests show that no two threads
// touch the same memory unordered: every registered method, by every path that it offers, and every
// experiment of statistics over cells that share what is exact.
#include <array>
#include <thread>

#include "harness/runner/plan.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

using namespace attnbench;

namespace {

constexpr int threads = 3;

// One matrix for each path that the method offers, all of them computed with that many threads.
std::vector<Matrix<double>> every_path(const Approximation<double>& method, const HeadData<double>& data, Mask mask,
                                       int thread_count) {
  const Head<double> head = data.view();
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Context context(thread_count);
  std::vector<Matrix<double>> results{attend(method, data, mask, thread_count)};
  const auto next = [&](Index rows, Index columns) -> Matrix<double>& {
    return results.emplace_back(Matrix<double>::Zero(rows, columns));
  };
  if (const auto* rows = method.rows()) {
    rows->attention_rows(head, mask, 0, context, next(nq, nk));
    const Matrix<double> G = data.Q;
    rows->transposed_times(head, mask, G, context, next(nk, G.cols()));
  }
  if (const auto* kernel = method.kernel()) {
    Matrix<double> block(nq, nk), scale(2, std::max(nq, nk));
    kernel->kernel(head, context, block, {&scale(0, 0), static_cast<size_t>(nq)},
                   {&scale(1, 0), static_cast<size_t>(nk)});
    results.push_back(block);
    Matrix<double>& normalisers = next(2, nq);
    kernel->normalisers(head, mask, context, {&normalisers(0, 0), static_cast<size_t>(nq)},
                        {&normalisers(1, 0), static_cast<size_t>(nq)});
  }
  if (const auto* factored = method.factored(); factored && !mask.causal) {
    Matrix<double> L, R;
    factored->factors(head, mask, context, L, R);
    results.push_back(L);
    results.push_back(R);
  }
  if (const auto* differentiable = method.differentiable()) {
    Matrix<double> out(nq, data.V.cols()), Q(nq, data.Q.cols()), K(nk, data.K.cols()), V(nk, data.V.cols());
    std::vector<double> saved;
    differentiable->forward(head, mask, context, out, saved);
    differentiable->backward(head, mask, out, saved, out, context, {Q, K, V});
    for (auto* gradient : {&Q, &K, &V}) results.push_back(*gradient);
  }
  return results;
}

bool same(const std::vector<Matrix<double>>& a, const std::vector<Matrix<double>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), identical<double>);
}

}  // namespace

TEST_CASE("every path of every method is the same on several threads, called from two at once", "[threads]") {
  // More rows than any engine takes at once, more keys than one partial sum takes (1024).
  for (const Shape& shape : {Shape{.nq = 300, .nk = 300, .d = 4, .dv = 4}, {.nq = 40, .nk = 1100, .d = 4, .dv = 3}}) {
    const TestHead problem = gaussian_problem(shape, 0.8);
    for (const auto& name : catalogue("methods").names())
      for (const Mask mask : {Mask{}, Mask{.causal = true, .offset = shape.nk - shape.nq}}) {
        INFO(name << " at nq=" << shape.nq << ", nk=" << shape.nk << ", " << to_string(mask));
        Shape masked = shape;
        masked.mask = mask;
        const Params params = with_small_budgets(Params("methods", name), masked);
        if (!find<MethodEntry>(name).claims(params, masked).no_form.empty()) continue;
        const auto method = draw_method<double>(params, masked, problem);
        const auto want = every_path(*method, problem.head, mask, 1);
        std::array<std::vector<Matrix<double>>, 2> got;
        {
          std::jthread other([&] { got[1] = every_path(*method, problem.head, mask, threads); });
          got[0] = every_path(*method, problem.head, mask, threads);
        }
        CHECK(same(got[0], want));
        CHECK(same(got[1], want));
      }
  }
}

TEST_CASE("cells side by side give the numbers that they give alone", "[threads]") {
  const auto numbers_of = [](const Cell& cell) {
    try {
      return measured(cell, 0, threads).values;
    } catch (const Skip&) {
      return decltype(Measured::values)();
    }
  };
  size_t experiments = 0;
  for (const auto& name : catalogue("experiments").names()) {
    if (find<ExperimentEntry>(name).timing()) continue;
    INFO(name);
    std::vector<Cell> cells;
    try {
      cells = expand({.experiment = name,
                      .methods = {"softmax", "performer:m=8", "local:window=4", "uniform"},
                      .inputs = {"gaussian", "gaussian:scale=0.5"},
                      .n = {48},
                      .d = {4},
                      .causal = false});
    } catch (const Misuse&) {
      continue;  // it asks something of one method, or of an input of its own
    }
    ++experiments;
    std::vector<decltype(Measured::values)> side_by_side(cells.size());
    Context(threads).for_blocks(static_cast<Index>(cells.size()), 1, [&](Context&, Index i, Index) {
      side_by_side[static_cast<size_t>(i)] = numbers_of(cells[static_cast<size_t>(i)]);
    });
    for (size_t i = 0; i < cells.size(); ++i) CHECK(side_by_side[i] == numbers_of(cells[i]));
  }
  CHECK(experiments >= 3);
}

TEST_CASE("what blocks count is added once, and what one throws arrives", "[threads]") {
  Context context(threads);
  context.for_blocks(1000, 1, [](Context& share, Index, Index) { share.work.flops += 1; });
  CHECK(context.work.flops == 1000);
  CHECK_THROWS_AS(context.for_blocks(1000, 1,
                                     [](Context&, Index first, Index) {
                                       if (first == 3) throw Skip("one of them");
                                     }),
                  Skip);
}
