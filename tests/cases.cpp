#include "tests/cases.hpp"

#include <cmath>
#include <set>

#include "harness/core/needs.hpp"
#include "harness/core/projection.hpp"

namespace attnbench {

namespace {

Matrix<double> normal(const Shape& shape, const char* what, Index rows, Index columns) {
  auto generator = Streams(test_seed).stream("methods test", what, shape.nq, shape.nk, shape.d, shape.dv);
  return standard_normal(generator, rows, columns).cast<float>().cast<double>();
}

// Numbers for all that any registered method may need beside Q, K and V.
Extras needed_by_any(const Shape& shape) {
  Extras all;
  for (const auto& name : catalogue("methods").names())
    for (const Need& need : find<MethodEntry>(name).needs) {
      Params params("methods", name);
      if (!need.when.first.empty()) params = params.with(need.when.first, need.when.second);
      all.merge(drawn_extras(params, shape, test_seed));
    }
  return all;
}

void add_variants(const Params& start, const std::set<std::string>& settled, std::vector<Params>& variants);

// A value that needs another one beside it (merge=true of evict, a prompt) is in the tests of its method.
bool is_allowed(const Params& params) {
  try {
    find<MethodEntry>(params.name()).check(params);
  } catch (const Misuse&) {
    return false;
  }
  return true;
}

// The variant of `start` with one value changed, and what that value makes possible.
void add_change(const Params& start, const Parameter& parameter, const std::string& value,
                const std::set<std::string>& settled, std::vector<Params>& variants) {
  const Params changed = start.with(parameter.name, value);
  if (!is_allowed(changed)) return;
  variants.push_back(changed);
  std::set<std::string> seen = settled;
  seen.insert(parameter.name);
  if (parameter.catalogue != "methods")
    for (const Parameter& p : start.declared()) seen.insert(p.name);
  add_variants(changed, seen, variants);
}

// A feature map sees of an ensemble only a matrix W, and of `share` only another seed. Both parameters are therefore
// varied with one map of each form, positive (exponents) and trig (values). Other maps have their defaults.
bool varies_elsewhere(const Params& params, const std::string& parameter) {
  if (parameter != "projection" && parameter != "share") return false;
  return params.text("features") != "positive" && params.text("features") != "trig";
}

void add_variants(const Params& start, const std::set<std::string>& settled, std::vector<Params>& variants) {
  for (const Parameter& p : start.declared()) {
    if (settled.contains(p.name) || p.published) continue;  // what a library does is tested where it is transcribed
    if (start.has("features") && varies_elsewhere(start, p.name)) continue;
    std::vector<std::string> values;
    if (p.kind == Parameter::Kind::flag) values = {"false", "true"};
    if (p.kind == Parameter::Kind::choice) values = p.choices;
    if (p.kind == Parameter::Kind::entry)
      for (const auto& name : catalogue(p.catalogue).names())
        if (p.catalogue != "methods" ||
            catalogue("methods").description(name).family == catalogue("methods").description(p.default_value).family)
          values.push_back(name);  // the other methods that truncated takes are in patterns_test.cpp
    for (const auto& value : values)
      if (value != start.text(p.name)) add_change(start, p, value, settled, variants);
  }
}

}  // namespace

TestHead gaussian_problem(Shape shape, double scale) {
  const auto rounded = [&](const Matrix<double>& X) { return (scale * X).cast<float>().cast<double>().eval(); };
  TestHead problem{
      shape,
      {rounded(normal(shape, "Q", shape.nq, shape.d)), rounded(normal(shape, "K", shape.nk, shape.d)),
       normal(shape, "V", shape.nk, shape.dv)},
      {rounded(normal(shape, "calibration Q", shape.nq, shape.d)),
       rounded(normal(shape, "calibration K", shape.nk, shape.d)), normal(shape, "calibration V", shape.nk, shape.dv)}};
  problem.head.extra = needed_by_any(shape);
  return problem;
}

TestHead problem_with_logits(Shape shape, double largest) {
  const auto plain = gaussian_problem(shape, 1);
  return gaussian_problem(shape, std::sqrt(largest / (plain.head.Q * plain.head.K.transpose()).cwiseAbs().maxCoeff()));
}

const std::vector<TestHead>& problems() {
  static const std::vector<TestHead> all = [] {
    std::vector<Shape> shapes{{.nq = 1, .nk = 1, .d = 4, .dv = 4},
                              {.nq = 7, .nk = 7, .d = 3, .dv = 5},
                              {.nq = 65, .nk = 65, .d = 16, .dv = 1},
                              {.nq = 20, .nk = 70, .d = 8, .dv = 8},
                              {.nq = 1, .nk = 130, .d = 8, .dv = 3}};
    if (sanitized) {  // the time of a gate; the edges of larger blocks are those of engines_test.cpp
      shapes.push_back({.nq = 70, .nk = 20, .d = 1, .dv = 6});
    } else {
      shapes.push_back({.nq = 65, .nk = 65, .d = 1, .dv = 4});
      shapes.push_back({.nq = 300, .nk = 300, .d = 8, .dv = 12});
      shapes.push_back({.nq = 150, .nk = 70, .d = 5, .dv = 6});
      shapes.push_back({.nq = 40, .nk = 2500, .d = 4, .dv = 3});
    }
    std::vector<TestHead> made;
    for (const Shape& shape : shapes) made.push_back(gaussian_problem(shape, 0.8));
    return made;
  }();
  return all;
}

std::vector<Mask> masks(const Shape& shape) {
  const Index behind = shape.nk - shape.nq, padded = (2 * shape.nk + 2) / 3;
  std::vector<Mask> all{{}, {.causal = true, .offset = behind}};
  if (shape.nk > 2000) {  // it costs as much as all others together and is here for the edges of tiles
    all.push_back({.causal = true, .offset = behind, .keys = padded});
    all.push_back({.causal = true});
    return all;
  }
  if (padded < shape.nk) {
    all.push_back({.keys = padded});
    all.push_back({.causal = true, .offset = behind, .keys = padded});
  }
  if (behind != 0 && padded < shape.nk) all.push_back({.offset = behind, .keys = padded});
  if (behind != 0) {
    all.push_back({.offset = behind});  // the pattern of a local method moves with it
    all.push_back({.causal = true});
  }
  if (shape.nq > 3) all.push_back({.causal = true, .offset = -3});
  return all;
}

std::vector<Params> variants(const std::string& method) {
  std::vector<Params> found{Params("methods", method)};
  add_variants(Params(found.front()), {}, found);
  std::vector<Params> distinct;
  std::set<std::string> specs;
  for (const Params& params : found)
    if (specs.insert(params.spec()).second) distinct.push_back(params);
  return distinct;
}

bool all_are_tested() { return std::getenv("ATTNBENCH_TEST_ONLY") == nullptr; }

std::vector<Params> all_variants() {
  const char* only = std::getenv("ATTNBENCH_TEST_ONLY");
  std::vector<Params> all;
  for (const auto& name : catalogue("methods").names())
    for (const Params& params : variants(name))
      if (!only || params.spec().find(only) != std::string::npos) all.push_back(params);
  return all;
}

Params with_small_budgets(const Params& params, const Shape& shape) {
  Params small = params;
  const Index unpadded = shape.mask.keys < 0 ? shape.nk : std::min(shape.mask.keys, shape.nk);
  const std::pair<const char*, Index> budgets[] = {{"m", 32},      {"r", std::min<Index>(16, unpadded)},
                                                   {"codes", 8},   {"window", 5},
                                                   {"sinks", 2},   {"heavy", 3},
                                                   {"recent", 4},  {"landmarks", 6},
                                                   {"stride", 4},  {"global", 2},
                                                   {"k", 5},       {"block", 4},
                                                   {"random", 1},  {"clusters", 4},
                                                   {"buckets", 4}, {"chunk", 8},
                                                   {"rounds", 2},  {"blocks", 5},
                                                   {"top", 6},     {"hidden", 6},
                                                   {"keep", 12},   {"s", 6},
                                                   {"c", 7},       {"page", 4},
                                                   {"local", 2},   {"vertical", 5},
                                                   {"slash", 6},   {"first", 2},
                                                   {"last", 3},    {"rows", 8},
                                                   {"refine", 9},  {"exact", 12},
                                                   {"steps", 3},   {"segment", 6},
                                                   {"memory", 4},  {"span", 5},
                                                   {"ramp", 4}};
  for (const auto& [name, value] : budgets)
    if (small.has(name)) small = small.with(name, std::to_string(value));
  if (small.has("projection") && small.has("m") && catalogue("projections").has(small.text("projection"))) {
    const EnsembleLaw law = find<ProjectionEntry>(small.text("projection")).law(small, shape.d);
    if (small.integer("m") < law.least_m) small = small.with("m", std::to_string(law.least_m));
  }
  for (const Parameter& p : params.declared()) {
    if (p.kind != Parameter::Kind::specs) continue;
    std::string specs;
    for (const Params& inner : params.all_nested(p.name))
      specs += (specs.empty() ? "[" : ",[") + with_small_budgets(inner, shape).spec() + "]";
    small = small.with(p.name, specs);
  }
  return small;
}

std::unique_ptr<Approximation<double>> drawn(const std::string& spec, const TestHead& problem, Mask mask,
                                             const Tensors* state, Index replicate) {
  Shape shape = problem.shape;
  shape.mask = mask;
  return draw_method<double>(Params("methods", spec), shape, problem, state, replicate);
}

std::string to_string(const Mask& mask) {
  return fmt::format("{}, offset {}, keys {}", mask.causal ? "causal" : "bidirectional", mask.offset, mask.keys);
}

std::string to_string(const Case& one) {
  return fmt::format("{} at nq={}, nk={}, d={}, dv={}, {}", one.params.spec(), one.shape.nq, one.shape.nk, one.shape.d,
                     one.shape.dv, to_string(one.shape.mask));
}

std::vector<double> row_conditions(const Case& one, const Approximation<double>& method) {
  std::vector<double> condition(static_cast<size_t>(one.shape.nq), 1);
  if (one.claims.non_negative) return condition;
  constexpr double change = 1e-9;
  Generator generator(test_seed);
  const auto changed = [&](Matrix<double> X) {
    for (Index i = 0; i < X.size(); ++i) X.data()[i] *= 1 + (generator() % 2 == 0 ? change : -change);
    return X;
  };
  const auto& head = one.problem.head;
  const Matrix<double> out = attend(method, head, one.shape.mask);
  const double unit = change * head.V.cwiseAbs().maxCoeff();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const HeadData<double> other{changed(head.Q), changed(head.K), changed(head.V), head.extra};
    const Matrix<double> moved = attend(method, other, one.shape.mask) - out;
    for (Index i = 0; i < out.rows(); ++i)
      condition[static_cast<size_t>(i)] =
          std::max(condition[static_cast<size_t>(i)], moved.row(i).cwiseAbs().maxCoeff() / unit);
  }
  return condition;
}

double worst_error(const Matrix<double>& got, const Matrix<double>& want, const std::vector<double>& condition,
                   double size) {
  double worst = 0;
  for (Index i = 0; i < want.rows(); ++i)
    for (Index j = 0; j < want.cols(); ++j) {
      // A quotient errs by what its denominator errs by, relative to itself: where that nearly cancels, rows are large.
      const double own_size = std::max(size, want.row(i).cwiseAbs().maxCoeff());
      const double error = std::abs(got(i, j) - want(i, j)) / (own_size * condition[static_cast<size_t>(i)]);
      if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
    }
  return worst;
}

}  // namespace attnbench
