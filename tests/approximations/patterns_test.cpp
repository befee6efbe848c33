// Sparse patterns: what methods.md F and J39 to J44 say of them, and bugs of published code planted to be seen.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <type_traits>

#include "approximations/sparse/sparse_softmax.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::patterns_test {

namespace {

constexpr double tolerance = 1e-12;

using Sets = std::vector<std::vector<Index>>;

TestHead square(Index n) { return gaussian_problem({.nq = n, .nk = n, .d = 6, .dv = 4}, 0.8); }

Sets keys_of(const Approximation<double>& method, const TestHead& problem, Mask mask = {}) {
  REQUIRE(method.pattern() != nullptr);
  Sets keys(static_cast<size_t>(problem.shape.nq));
  Context context;
  method.pattern()->keys_of_rows(problem.head.view(), mask, 0, context, keys);
  return keys;
}
Sets keys_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  return keys_of(*drawn(spec, problem, mask), problem, mask);
}
Sets keys_of(const std::string& spec, Index n, bool causal = false) {
  return keys_of(spec, square(n), {.causal = causal});
}

Index nnz(const Sets& keys) {
  Index count = 0;
  for (const auto& row : keys) count += std::ssize(row);
  return count;
}

Matrix<double> rows_of(const Approximation<double>& method, const TestHead& problem, Mask mask = {}) {
  Matrix<double> A(problem.shape.nq, problem.shape.nk);
  Context context;
  REQUIRE(method.rows() != nullptr);
  method.rows()->attention_rows(problem.head.view(), mask, 0, context, A);
  return A;
}
Matrix<double> softmax_of(const TestHead& problem, Mask mask = {}) {
  return rows_of(*drawn("softmax", problem, mask), problem, mask);
}

double mass(const Eigen::RowVectorXd& exact, const std::vector<Index>& keys) {
  double sum = 0;
  for (const Index j : keys) sum += exact(j);
  return sum;
}

// Softmax with everything outside of the pattern lowered by `penalty`, as libraries mask that add a large number.
Matrix<double> additive_mask(const TestHead& problem, const Sets& keys, double penalty) {
  Matrix<double> A = problem.head.Q * problem.head.K.transpose();
  for (Index i = 0; i < A.rows(); ++i) {
    const auto& row = keys[static_cast<size_t>(i)];
    for (Index j = 0; j < A.cols(); ++j)
      if (!std::binary_search(row.begin(), row.end(), j)) A(i, j) -= penalty;
    A.row(i) = (A.row(i).array() - A.row(i).maxCoeff()).exp();
    A.row(i) /= A.row(i).sum();
  }
  return A;
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

// Every method that is a fixed pattern, in forms that differ.
const std::vector<std::string> patterns{"local:window=5",
                                        "sink-window:window=5,sinks=3",
                                        "dilated:stride=4",
                                        "dilated:stride=4,convention=lee",
                                        "strided:stride=5",
                                        "strided:stride=5,part=window",
                                        "strided:stride=5,part=column",
                                        "sparse-fixed:stride=6,c=2",
                                        "sparse-fixed:stride=6,part=block",
                                        "sparse-fixed:stride=6,c=2,part=summary",
                                        "global:global=3",
                                        "global:global=3,self=false",
                                        "longformer:window=5,global=3",
                                        "bigbird:block=4,window=1,global=1,random=2",
                                        "per-head:[strided:stride=5],[local]"};

// A pattern given as a function of position and key, to plant what published code does.
class Planted final : public SparsePattern {
 public:
  Planted(std::function<bool(Index, Index)> sees, Index times = 1) : sees_(std::move(sees)), times_(times) {}
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    for (Index j = 0; j < visible; ++j)
      if (sees_(position, j))
        for (Index t = 0; t < times_; ++t) runs.push_back({j, 1});
  }

 private:
  std::function<bool(Index, Index)> sees_;
  Index times_;
};

// Whether everything at or before i is reached from i in two steps: one of `first`, then one of `second` (a pattern in
// one head, then in the next), in either order.
bool reaches_all(const Sets& first, const Sets& second) {
  for (size_t i = 0; i < first.size(); ++i) {
    std::set<Index> reached;
    for (const auto& [one, two] : {std::pair(&first, &second), std::pair(&second, &first)})
      for (const Index via : (*one)[i]) {
        const auto& next = (*two)[static_cast<size_t>(via)];
        reached.insert(next.begin(), next.end());
      }
    for (Index j = 0; j <= static_cast<Index>(i); ++j)
      if (!reached.contains(j)) return false;
  }
  return true;
}

Sets both(const Sets& a, const Sets& b) {
  Sets all;
  for (size_t i = 0; i < a.size(); ++i) {
    std::vector<Index> row;
    std::set_union(a[i].begin(), a[i].end(), b[i].begin(), b[i].end(), std::back_inserter(row));
    all.push_back(row);
  }
  return all;
}

}  // namespace

TEST_CASE("a row of Transformer-XL sees its segment and the memory before it", "[unit]") {
  const Sets bidirectional = keys_of("transformer-xl:segment=4,memory=3", 14);
  CHECK(bidirectional[0] == std::vector<Index>{0, 1, 2, 3});
  CHECK(bidirectional[9] == std::vector<Index>{5, 6, 7, 8, 9, 10, 11});
  CHECK(bidirectional[13] == std::vector<Index>{9, 10, 11, 12, 13});
  CHECK(keys_of("transformer-xl:segment=4,memory=3", 14, true)[9] == std::vector<Index>{5, 6, 7, 8, 9});
  CHECK(keys_of("transformer-xl:segment=4,memory=0", 14, true)[8] == std::vector<Index>{8});
}

TEST_CASE("adaptive span with a ramp of 1 is a window, and a longer ramp weighs the tokens beyond it by their distance",
          "[unit]") {
  const TestHead problem = square(60);
  for (const Mask mask : {Mask{}, Mask{.causal = true}})
    CHECK((rows_of(*drawn("adaptive-span:span=7,ramp=1", problem, mask), problem, mask) -
           rows_of(*drawn("local:window=7", problem, mask), problem, mask))
              .cwiseAbs()
              .maxCoeff() < tolerance);
  const Matrix<double> A = rows_of(*drawn("adaptive-span:span=2,ramp=4", problem), problem);
  const Matrix<double> exact = softmax_of(problem);
  const auto weight = [&](Index distance) {
    return A(30, 30 + distance) / A(30, 30) / (exact(30, 30 + distance) / exact(30, 30));
  };
  const double want[] = {1, 1, 1, 0.75, 0.5, 0.25, 0, 0};
  for (Index distance = 0; distance < 8; ++distance)
    for (const Index side : {1, -1}) CHECK(std::abs(weight(side * distance) - want[distance]) < tolerance);
}

TEST_CASE("a run between two indices holds those of its residue", "[methods]") {
  for (Index begin = -7; begin <= 7; ++begin)
    for (Index end = -7; end <= 7; ++end)
      for (Index first = -4; first <= 4; ++first)
        for (const Index step : {1, 2, 3, 5}) {
          std::vector<Index> want, got;
          for (Index j = begin; j < end; ++j)
            if (((j - first) % step + step) % step == 0) want.push_back(j);
          const IndexRun run = run_between(begin, end, first, step);
          for (Index l = 0; l < run.count; ++l) got.push_back(run.first + l * run.step);
          CHECK(got == want);
        }
}

TEST_CASE("patterns have as many pairs as their formulas say", "[methods]") {
  for (const Index n : {1, 2, 7, 64, 65, 130}) {
    INFO("n = " << n);
    for (const Index w : {0, 1, 5, 300}) {
      const Index reach = std::min(w, n - 1);  // the formulas hold for w < n
      const std::string spec = "local:window=" + std::to_string(w);
      CHECK(nnz(keys_of(spec, n)) == n * (2 * reach + 1) - reach * (reach + 1));
      CHECK(nnz(keys_of(spec, n, true)) == n * (reach + 1) - reach * (reach + 1) / 2);
      for (const Index g : {0, 1, 9}) {
        Index more = 0;
        for (Index i = 0; i < std::min(g, n); ++i) more += std::max<Index>(0, n - 1 - reach - i);
        const std::string global = fmt::format("longformer:window={},global={}", w, g);
        CHECK(nnz(keys_of(global, n)) == n * (2 * reach + 1) - reach * (reach + 1) + 2 * more);
      }
    }
    for (const Index s : {1, 3, 4, 200}) {
      const Index a = n / s, b = n % s;
      const std::string spec = "dilated:stride=" + std::to_string(s);
      CHECK(nnz(keys_of(spec, n)) == b * (a + 1) * (a + 1) + (s - b) * a * a);
      CHECK(nnz(keys_of(spec + ",convention=lee", n)) == n + 2 * std::max<Index>(0, n - s));
    }
    for (const Index g : {1, 3, 500}) {
      const Index all = std::min(g, n);
      const std::string spec = "global:global=" + std::to_string(g);
      CHECK(nnz(keys_of(spec + ",self=false", n)) == 2 * all * n - all * all);
      CHECK(nnz(keys_of(spec, n)) == 2 * all * n - all * all + n - all);
    }
  }
}

TEST_CASE("what a pattern gives no weight is 0 and what it sees sums to one, and the cost counts its pairs",
          "[methods]") {
  const TestHead problem = square(65);
  for (const auto& spec : patterns)
    for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.causal = true, .offset = -3}, Mask{.keys = 41}}) {
      INFO(spec << ", " << to_string(mask));
      const auto method = drawn(spec, problem, mask);
      const Sets keys = keys_of(*method, problem, mask);
      const Matrix<double> A = rows_of(*method, problem, mask);
      for (Index i = 0; i < 65; ++i) {
        const auto& row = keys[static_cast<size_t>(i)];
        CHECK(std::is_sorted(row.begin(), row.end()));
        CHECK(std::adjacent_find(row.begin(), row.end()) == row.end());
        for (Index j = 0; j < 65; ++j) CHECK((A(i, j) > 0) == std::binary_search(row.begin(), row.end(), j));
      }
      Shape shape = problem.shape;
      shape.mask = mask;
      if (spec.starts_with("per-head") || spec.starts_with("bigbird")) continue;  // a mean; another draw
      const Params params("methods", spec);
      CHECK(find<MethodEntry>(params.name()).cost(params, shape).exps == static_cast<double>(nnz(keys)));
    }
}

TEST_CASE("a pattern's rows are softmax's on the pattern: L1 distance 2 (1 - p), KL -log p", "[methods]") {
  const TestHead problem = square(65);
  const auto check = [&](const std::string& spec, Mask mask) {
    INFO(spec << ", " << to_string(mask));
    const auto method = drawn(spec, problem, mask);
    const Sets keys = keys_of(*method, problem, mask);
    const Matrix<double> A = rows_of(*method, problem, mask), exact = softmax_of(problem, mask);
    for (Index i = 0; i < 65; ++i) {
      const auto& row = keys[static_cast<size_t>(i)];
      if (row.empty()) continue;
      const double p = mass(exact.row(i), row);
      double kl = 0;
      for (const Index j : row) {
        CHECK(std::abs(A(i, j) - exact(i, j) / p) < tolerance);
        kl += A(i, j) * std::log(A(i, j) / exact(i, j));
      }
      CHECK(std::abs((A.row(i) - exact.row(i)).cwiseAbs().sum() - 2 * (1 - p)) < tolerance);
      CHECK(std::abs(kl + std::log(p)) < tolerance);
    }
  };
  for (const bool causal : {false, true}) {
    for (const auto& spec : patterns) check(spec, {.causal = causal});
    check("top-k:k=7", {.causal = causal});
  }
  check("heavy-hitter:heavy=4,recent=4", {.causal = true});
}

TEST_CASE("dilated attention is block diagonal after sorting tokens by their residue", "[methods]") {
  const TestHead problem = square(66);
  const Index s = 4;
  std::vector<Index> order(66);
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return a % s < b % s; });
  const Matrix<double> A = rows_of(*drawn("dilated:stride=4", problem), problem);
  Index begin = 0;
  for (Index residue = 0; residue < s; ++residue) {
    const Index count = 66 / s + (residue < 66 % s ? 1 : 0);
    TestHead block = gaussian_problem({.nq = count, .nk = count, .d = 6, .dv = 4}, 0.8);
    for (Index l = 0; l < count; ++l) {
      block.head.Q.row(l) = problem.head.Q.row(order[static_cast<size_t>(begin + l)]);
      block.head.K.row(l) = problem.head.K.row(order[static_cast<size_t>(begin + l)]);
    }
    const Matrix<double> want = softmax_of(block);
    double inside = 0;
    for (Index l = 0; l < count; ++l)
      for (Index r = 0; r < count; ++r) {
        const double got = A(order[static_cast<size_t>(begin + l)], order[static_cast<size_t>(begin + r)]);
        CHECK(std::abs(got - want(l, r)) < tolerance);
        inside += got;
      }
    CHECK(std::abs(inside - static_cast<double>(count)) < 100 * tolerance);  // nothing is left for other blocks
    begin += count;
  }
}

TEST_CASE("two causal steps of the Sparse Transformer's patterns reach every earlier token", "[methods]") {
  for (const Index n : {1, 7, 65, 130})
    for (const Index l : {1, 4, 8, 16}) {
      INFO("n = " << n << ", l = " << l);
      const std::string stride = "stride=" + std::to_string(l);
      const auto keys = [&](const std::string& spec) { return keys_of(spec, n, true); };
      CHECK(reaches_all(keys("strided:part=window," + stride), keys("strided:part=column," + stride)));
      const Sets united = keys("strided:" + stride);
      CHECK(united == both(keys("strided:part=window," + stride), keys("strided:part=column," + stride)));
      CHECK(reaches_all(united, united));
      for (const Index c : {Index(1), std::min<Index>(3, l)}) {
        const std::string fixed = stride + ",c=" + std::to_string(c);
        CHECK(keys("sparse-fixed:" + fixed) ==
              both(keys("sparse-fixed:part=block," + fixed), keys("sparse-fixed:part=summary," + fixed)));
        const Sets whole = keys("sparse-fixed:" + fixed);
        CHECK(reaches_all(whole, whole));
      }
    }
  // A window alone does not, nor does a window that is one short with the column.
  CHECK_FALSE(reaches_all(keys_of("local:window=8", 65, true), keys_of("local:window=8", 65, true)));
  CHECK_FALSE(reaches_all(keys_of("local:window=6", 65, true), keys_of("strided:part=column,stride=8", 65, true)));
}

TEST_CASE("given real keys, rows with external global tokens are rows of local attention", "[methods]") {
  const TestHead problem = square(65);
  for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.causal = true, .offset = -3}, Mask{.keys = 41}}) {
    INFO(to_string(mask));
    const auto method = drawn("global:kind=external,global=3,window=5", problem, mask);
    REQUIRE(method->mixing() != nullptr);
    Matrix<double> M(65, 65);
    Context context;
    method->mixing()->token_jacobian(problem.head.view(), mask, 0, context, M);
    const Matrix<double> local = rows_of(*drawn("local:window=5", problem, mask), problem, mask);
    for (Index i = 0; i < 65; ++i) {
      const double kept = M.row(i).sum();
      if (local.row(i).isZero(0)) {
        CHECK(kept == 0);
        continue;
      }
      CHECK(kept > 0);
      CHECK(kept < 1);  // the learnt tokens have the rest
      CHECK(difference(M.row(i) / kept, local.row(i)) < tolerance);
    }
    // The mixing is that of attend: a unit of V more moves the output by its column.
    HeadData<double> moved = problem.head;
    moved.V.row(20).array() += 1;
    const Matrix<double> change = attend(*method, moved, mask) - attend(*method, problem.head, mask);
    CHECK((change.colwise() - M.col(20)).cwiseAbs().maxCoeff() < tolerance);
  }
}

TEST_CASE("the learnt tokens' outputs are dropped and their values are weighed as softmax would", "[methods]") {
  const TestHead problem = square(30);
  const auto method = drawn("global:kind=external,global=3,window=1000", problem);
  TestHead longer = gaussian_problem({.nq = 30, .nk = 33, .d = 6, .dv = 4}, 0.8);
  longer.head.Q = problem.head.Q;
  longer.head.K << method->state().at("global_keys"), problem.head.K;
  longer.head.V << method->state().at("global_values"), problem.head.V;
  CHECK(difference(attend(*method, problem.head, {}), attend(*drawn("softmax", longer), longer.head, {})) < tolerance);
}

TEST_CASE("top-k keeps more of softmax's mass than any other pattern of as many keys", "[methods]") {
  const TestHead problem = square(65);
  Generator generator(test_seed);
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal};
    const Matrix<double> exact = softmax_of(problem, mask);
    std::vector<Sets> best;
    for (Index k = 1; k <= 65; ++k) best.push_back(keys_of("top-k:k=" + std::to_string(k), problem, mask));
    const auto compare = [&](Index i, const std::vector<Index>& others) {
      if (others.empty()) return;
      const auto& kept = best[others.size() - 1][static_cast<size_t>(i)];
      CHECK(kept.size() == others.size());
      CHECK(mass(exact.row(i), kept) >= mass(exact.row(i), others) - tolerance);
    };
    for (const auto& spec : patterns) {
      const Sets keys = keys_of(spec, problem, mask);
      for (Index i = 0; i < 65; ++i) compare(i, keys[static_cast<size_t>(i)]);
    }
    for (int repetition = 0; repetition < 200; ++repetition)
      for (Index i = 0; i < 65; ++i) {
        std::vector<Index> others(static_cast<size_t>(mask.visible(i, 65)));
        std::iota(others.begin(), others.end(), Index(0));
        for (size_t j = others.size() - 1; j > 0; --j) std::swap(others[j], others[generator() % (j + 1)]);
        others.resize(1 + generator() % others.size());
        compare(i, others);
      }
  }
}

TEST_CASE("top-k breaks ties to the lowest index", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 1, .nk = 3000, .d = 2, .dv = 1}, 0.8);
  problem.head.Q << 1, 0;
  problem.head.K.setZero();
  for (const Index j : {40, 1500, 2500}) problem.head.K(j, 0) = 2;  // in all three blocks of keys
  CHECK(keys_of("top-k:k=2", problem)[0] == std::vector<Index>{40, 1500});
  CHECK(keys_of("top-k:k=5", problem)[0] == std::vector<Index>{0, 1, 40, 1500, 2500});
  CHECK(keys_of("top-k:k=5", problem, {.keys = 2})[0] == std::vector<Index>{0, 1});
}

TEST_CASE("patterns that hold every key are softmax, and those that hold the own alone the identity", "[methods]") {
  const TestHead problem = square(65);
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal};
    const Matrix<double> exact = attend(*drawn("softmax", problem, mask), problem.head, mask);
    for (const std::string spec :
         {"local:window=64", "sink-window:window=64,sinks=3", "longformer:window=64,global=0", "dilated:stride=1",
          "strided:stride=64", "strided:stride=1", "sparse-fixed:stride=65", "sparse-fixed:stride=8,c=8",
          "sparse-fixed:stride=8,c=100,part=summary", "global:global=65", "global:global=1000",
          "longformer:window=0,global=65", "bigbird:block=4,window=16", "bigbird:block=65,window=0,random=0,global=0",
          "bigbird:block=4,window=0,random=100", "top-k:k=65", "truncated:window=64,base=performer,m=32"}) {
      INFO(spec << (causal ? ", causal" : ""));
      if (spec.starts_with("truncated")) {
        const Matrix<double> whole = attend(*drawn("performer:m=32", problem, mask), problem.head, mask);
        CHECK(difference(attend(*drawn(spec, problem, mask), problem.head, mask), whole) < tolerance);
        continue;
      }
      if (spec.starts_with("bigbird:block=4,window=0") && causal) continue;  // 2 leading blocks are rows of their own
      CHECK(difference(attend(*drawn(spec, problem, mask), problem.head, mask), exact) < tolerance);
    }
    for (const std::string spec : {"local:window=0", "sink-window:window=0,sinks=0", "longformer:window=0,global=0",
                                   "dilated:stride=65", "dilated:stride=65,convention=lee",
                                   "bigbird:block=1,window=0,global=0,random=0", "sparse-fixed:stride=1,part=block"}) {
      INFO(spec);
      CHECK(difference(attend(*drawn(spec, problem, mask), problem.head, mask), problem.head.V) == 0);
    }
  }
}

TEST_CASE("longformer without global tokens is local, and with them their rows are softmax's", "[methods]") {
  const TestHead problem = square(65);
  CHECK(identical(attend(*drawn("longformer:window=5,global=3", problem), problem.head, {}).topRows(3).eval(),
                  attend(*drawn("global:global=3", problem), problem.head, {}).topRows(3).eval()));
  CHECK(difference(attend(*drawn("longformer:window=5,global=0", problem), problem.head, {}),
                   attend(*drawn("local:window=5", problem), problem.head, {})) < tolerance);
  CHECK(keys_of("longformer:window=5,global=0", problem) == keys_of("local:window=5", problem));
}

TEST_CASE("bigbird draws blocks without replacement, from the rest, for each row block its own", "[methods]") {
  const TestHead problem = square(161);  // 41 blocks of 4, the last of one token
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal};
    const std::string spec = "bigbird:block=4,window=2,global=1,random=3";
    const Matrix<double> drawn_blocks = drawn(spec, problem, mask)->state().at("random_blocks");
    REQUIRE(drawn_blocks.rows() == 41);
    std::set<std::vector<Index>> distinct;
    for (Index I = 0; I < 41; ++I) {
      std::vector<Index> blocks;
      for (Index r = 0; r < 3; ++r)
        if (drawn_blocks(I, r) >= 0) blocks.push_back(static_cast<Index>(drawn_blocks(I, r)));
      const Index left = std::max<Index>(0, I - 2 - 1),
                  right = std::max<Index>(0, causal ? 0 : 41 - std::max<Index>(I + 3, 1));
      CHECK(std::ssize(blocks) == std::min<Index>(3, left + right));
      CHECK(std::set<Index>(blocks.begin(), blocks.end()).size() == blocks.size());
      for (const Index J : blocks) {
        CHECK(J >= 1);
        CHECK(J < 41);
        CHECK(std::abs(I - J) > 2);
        if (causal) CHECK(J < I);
      }
      distinct.insert(blocks);
    }
    CHECK(distinct.size() > 20);
    CHECK_FALSE(identical(drawn(spec, problem, mask, nullptr, 1)->state().at("random_blocks"), drawn_blocks));
    // Fewer random blocks leave the rest of the pattern as it is.
    const Sets without = keys_of("bigbird:block=4,window=2,global=1,random=0", problem, mask);
    const Sets with = keys_of(spec, problem, mask);
    CHECK(both(without, with) == with);
  }
}

TEST_CASE("bigbird's draws reach every candidate equally often", "[statistics]") {
  // Row block 9 of 11, window 0, no global: 10 candidates, 3 of them drawn. Counts over 3000 replicates are binomial
  // with p = 0.3; ten two-sided bounds at a family-wise error rate of 1e-6: 5.33 standard deviations.
  const TestHead problem = gaussian_problem({.nq = 11, .nk = 11, .d = 1, .dv = 1}, 1);
  constexpr int replicates = 3000;
  std::vector<int> count(11, 0);
  for (int r = 0; r < replicates; ++r) {
    const auto state = drawn("bigbird:block=1,window=0,global=0,random=3", problem, {}, nullptr, r)->state();
    for (Index c = 0; c < 3; ++c) ++count[static_cast<size_t>(state.at("random_blocks")(9, c))];
  }
  CHECK(count[9] == 0);
  for (const int J : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10})
    CHECK(std::abs(count[static_cast<size_t>(J)] - 0.3 * replicates) < 5.33 * std::sqrt(0.21 * replicates));
}

TEST_CASE("heads take the specs in turn, with draws of their own", "[methods]") {
  const TestHead problem = square(65);
  const Params params("methods", "per-head:[performer:m=32],[bigbird:block=4,random=2],[local:window=5]");
  const std::string own[] = {"performer:m=32", "bigbird:block=4,random=2", "local:window=5"};
  const auto draw = [&](const Params& spec, Index head) {
    return make_approximation<double>(
        {.shape = problem.shape, .params = spec, .streams = Streams(test_seed), .head = head});
  };
  for (Index head = 0; head < 5; ++head) {
    INFO("head " << head);
    const auto method = draw(params, head);
    const auto want = draw(Params("methods", own[head % 3]), head);
    CHECK(identical(attend(*method, problem.head, {}), attend(*want, problem.head, {})));
    CHECK(method->state().size() == want->state().size());
    CHECK((method->kernel() != nullptr) == (want->kernel() != nullptr));
    CHECK((method->factored() != nullptr) == (want->factored() != nullptr));
    CHECK((method->pattern() != nullptr) == (want->pattern() != nullptr));
    CHECK((method->differentiable() != nullptr) == (want->differentiable() != nullptr));
  }
  const auto claims = [&](const std::string& spec, Mask mask = {}) {
    Shape shape = problem.shape;
    shape.mask = mask;
    const Params of("methods", spec);
    return find<MethodEntry>("per-head").claims(of, shape);
  };
  CHECK(claims("per-head:[local],[softmax]").row_stochastic);
  CHECK_FALSE(claims("per-head:[local],[softmax]").permutation_equivariant);
  CHECK_FALSE(claims("per-head:[local],[linformer]").row_stochastic);
  CHECK_FALSE(claims("per-head:[local],[linformer]", {.causal = true}).no_form.empty());
  CHECK(contains(misuse_of([] { Params("methods", "per-head:[locale]"); }), "local"));
}

TEST_CASE("the normalisers that the engine gives are those of the pattern's keys", "[methods]") {
  const TestHead problem = square(65);
  const Planted every_third([](Index p, Index j) { return p != 7 && (p + j) % 3 == 0; });
  std::vector<double> log_normalisers(65);
  Matrix<double> out(65, 4);
  Context context;
  sparse_softmax<double>(every_third, problem.head.view(), {}, context, out, log_normalisers);
  for (Index i = 0; i < 65; ++i) {
    double sum = 0;
    for (Index j = 0; j < 65; ++j)
      if (i != 7 && (i + j) % 3 == 0) sum += std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
    if (i == 7) {
      CHECK(log_normalisers[7] == -std::numeric_limits<double>::infinity());
      CHECK(out.row(7).isZero(0));
    } else {
      CHECK(std::abs(log_normalisers[static_cast<size_t>(i)] - std::log(sum)) < tolerance);
    }
  }
}

TEST_CASE("long rows are put together exactly from their pieces", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 5000, .d = 4, .dv = 3}, 1.5);
  for (const Mask mask : {Mask{}, Mask{.keys = 4900}, Mask{.causal = true, .offset = 4960}}) {
    const Matrix<double> exact = attend(*drawn("softmax", problem, mask), problem.head, mask);
    for (const std::string spec : {"local:window=10000", "longformer:window=1,global=6000", "dilated:stride=1",
                                   "strided:stride=1", "sparse-fixed:stride=10,c=10", "bigbird:window=1000"}) {
      INFO(spec << ", " << to_string(mask));
      CHECK(difference(attend(*drawn(spec, problem, mask), problem.head, mask), exact) < tolerance);
    }
  }
}

TEST_CASE("keys that lie apart are put together exactly, shared by rows or not, in one piece or several", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 70, .nk = 1700, .d = 6, .dv = 4}, 1.5);
  const auto scattered = [](Index j, Index shift, Index share) { return (7919 * j + 131 * shift) % 1000 < share; };
  for (const Index share : {30, 450})  // some 50 keys of 1700, and 765
    for (const Index rows_alike : {1, 20, 1000})
      for (const Mask mask : {Mask{}, Mask{.keys = 1600}, Mask{.causal = true, .offset = 1630}}) {
        INFO("share " << share << ", alike " << rows_alike << ", " << to_string(mask));
        const auto sees = [&](Index p, Index j) {
          const Index i = p - mask.offset;
          return i != 3 && i != 64 && scattered(j, i / rows_alike, share);
        };
        Matrix<double> out(70, 4), expected = Matrix<double>::Zero(70, 4);
        Context context;
        sparse_softmax<double>(Planted(sees), problem.head.view(), mask, context, out);
        for (Index i = 0; i < 70; ++i) {
          double sum = 0;
          for (Index j = 0; j < mask.visible(i, 1700); ++j) {
            if (!sees(i + mask.offset, j)) continue;
            const double weight = std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
            sum += weight;
            expected.row(i) += weight * problem.head.V.row(j);
          }
          if (sum > 0) expected.row(i) /= sum;
        }
        CHECK(difference(out, expected) < tolerance);
      }
}

TEMPLATE_TEST_CASE("tiles of many rows leave out what no row sees, and nothing else", "[methods]", float, double) {
  using T = TestType;
  const TestHead problem = gaussian_problem({.nq = 200, .nk = 200, .d = 6, .dv = 4}, 1.5);
  const HeadData<T> head = problem.head.cast<T>();
  // Rounding moves a logit by at most (d + 2) u |q| |k|, with u half the distance from 1 to the next number and the
  // inputs' own rounding counted, and so a weight by that part of itself. Sums of 200 weights and 200 weighted values
  // lose 200 u each. Exponentials, a division and a rescaling add 8 u.
  const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double of_logits =
      8 * u * problem.head.Q.rowwise().norm().maxCoeff() * problem.head.K.rowwise().norm().maxCoeff();
  const double bound = (2 * of_logits + (2 * 200 + 8) * u) * problem.head.V.cwiseAbs().maxCoeff();
  // A window, its first keys, a window with a hole, and one that only some rows of a tile have.
  const std::vector<std::function<bool(Index, Index)>> planted{
      [](Index p, Index j) { return std::abs(p - j) <= 20; },
      [](Index p, Index j) { return j < 3 || std::abs(p - j) <= 12; },
      [](Index p, Index j) { return std::abs(p - j) <= 30 && std::abs(p - j) >= 10; },
      [](Index p, Index j) { return p % 64 > 20 && j < p && j % 40 < 25; }};
  for (const auto& sees : planted)
    for (const Mask mask : {Mask{}, Mask{.keys = 150}, Mask{.causal = true}, Mask{.causal = true, .offset = -30}}) {
      INFO(&sees - planted.data() << ", " << to_string(mask));
      Matrix<T> out(200, 4);
      Matrix<double> expected = Matrix<double>::Zero(200, 4);
      Context context;
      sparse_softmax<T>(Planted(sees), head.view(), mask, context, out);
      double pairs = 0;
      for (Index i = 0; i < 200; ++i) {
        double sum = 0;
        for (Index j = 0; j < mask.visible(i, 200); ++j) {
          if (!sees(i + mask.offset, j)) continue;
          ++pairs;
          const double weight = std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
          sum += weight;
          expected.row(i) += weight * problem.head.V.row(j);
        }
        if (sum > 0) expected.row(i) /= sum;
      }
      CHECK(difference(out.template cast<double>(), expected) < bound);
      CHECK(context.work.exps == pairs);
    }
}

TEST_CASE("keys outside of the pattern are not read, even where they are no numbers", "[methods]") {
  TestHead problem = square(65);
  problem.head.K.bottomRows(20).setConstant(std::numeric_limits<double>::quiet_NaN());
  problem.head.V.bottomRows(20).setConstant(std::numeric_limits<double>::quiet_NaN());
  for (const auto& spec : patterns)
    for (const bool causal : {false, true}) {
      INFO(spec);
      const Mask mask{.causal = causal, .keys = 45};
      CHECK(attend(*drawn(spec, problem, mask), problem.head, mask).allFinite());
    }
}

// ---------------------------------------------------------------------------------------------- bugs, planted

TEST_CASE("a local attention that is strided is seen", "[methods]") {
  // Long Range Arena's: tokens reshaped to (block, number of blocks) and attended over the first axis.
  const Index n = 64, block = 8;
  const TestHead problem = square(n);
  const SparseSoftmax<double> planted(
      std::make_shared<Planted>([&](Index p, Index j) { return p % (n / block) == j % (n / block); }));
  const Sets wrong = keys_of(planted, problem), right = keys_of("sparse-fixed:part=block,stride=8", problem);
  CHECK(nnz(wrong) == nnz(right));  // a count of pairs does not tell them apart
  CHECK(wrong != right);
  CHECK(difference(attend(planted, problem.head, {}),
                   attend(*drawn("sparse-fixed:part=block,stride=8", problem), problem.head, {})) > 1e-2);
  CHECK(wrong == keys_of("dilated:stride=8", problem));
}

TEST_CASE("a mask that adds -1e4 leaks at large logits, and what leaks is seen", "[methods]") {
  TestHead problem = square(65);
  const Sets keys = keys_of("local:window=5", problem);
  const Matrix<double> small = rows_of(*drawn("local:window=5", problem), problem);
  CHECK(difference(additive_mask(problem, keys, 1e4), small) < tolerance);  // not at logits of a few units
  problem.head.Q *= 200;
  problem.head.K *= 200;
  const Matrix<double> A = rows_of(*drawn("local:window=5", problem), problem);
  const Matrix<double> leaking = additive_mask(problem, keys, 1e4);
  double leaked = 0;
  for (Index i = 0; i < 65; ++i) {
    CHECK(std::abs(mass(A.row(i), keys[static_cast<size_t>(i)]) - 1) < tolerance);
    leaked = std::max(leaked, 1 - mass(leaking.row(i), keys[static_cast<size_t>(i)]));
  }
  CHECK(leaked > 0.99);
}

TEST_CASE("a window that is one off is seen", "[methods]") {
  // xformers' odd W is w = W / 2 rounded down: W = 11 is w = 5, and taken for its half width minus one it is 4.
  const TestHead problem = square(65);
  const SparseSoftmax<double> planted(std::make_shared<Planted>([](Index p, Index j) { return std::abs(p - j) <= 4; }));
  CHECK(nnz(keys_of(planted, problem)) != 65 * 11 - 5 * 6);
  CHECK(difference(attend(planted, problem.head, {}), attend(*drawn("local:window=5", problem), problem.head, {})) >
        1e-2);
  CHECK_FALSE(reaches_all(keys_of("strided:part=column,stride=8", 65, true), keys_of("local:window=3", 65, true)));
}

TEST_CASE("global tokens that are counted once more in the window are seen", "[methods]") {
  // Weights of window and global columns added without leaving out what is in both.
  const TestHead problem = square(65);
  const Index w = 5, g = 3;
  Matrix<double> E = (problem.head.Q * problem.head.K.transpose()).array().exp();
  Matrix<double> once = E, twice = E;
  for (Index i = 0; i < 65; ++i)
    for (Index j = 0; j < 65; ++j) {
      const int in_window = std::abs(i - j) <= w, in_global = j < g;
      if (i < g) continue;
      once(i, j) *= in_window || in_global;
      twice(i, j) *= in_window + in_global;
    }
  for (auto* A : {&once, &twice})
    for (Index i = 0; i < 65; ++i) A->row(i) /= A->row(i).sum();
  const Matrix<double> A = rows_of(*drawn("longformer:window=5,global=3", problem), problem);
  CHECK(difference(A, once) < tolerance);
  CHECK(difference(twice, once) > 1e-2);
  const Matrix<double> out = attend(*drawn("longformer:window=5,global=3", problem), problem.head, {});
  CHECK(difference(out, once * problem.head.V) < tolerance);
}

}  // namespace attnbench::patterns_test
