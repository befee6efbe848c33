// Soft vector quantisation in the limits where it is vq or the mean of V, and the gradient of its feature map.
// methods.md D, J 30.
#include <cmath>

#include "approximations/codebook/soft_codes.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"

namespace attnbench::soft_vq_test {

namespace {

Matrix<double> out_of(const std::string& spec, const TestHead& problem, const Tensors* state = nullptr) {
  const auto method = draw_method<double>(Params("methods", spec), problem.shape, problem, state);
  return attend(*method, problem.head, {});
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian() { return gaussian_problem({.nq = 60, .nk = 90, .d = 4, .dv = 3}, 0.8); }

}  // namespace

TEST_CASE("soft-vq with a narrow mixture is vq, with a wide one the mean of V", "[methods]") {
  const TestHead problem = gaussian();
  const Matrix<double> hard = out_of("vq:codes=16", problem);
  // No key is within 1e-3 of halfway between two codes: then p(y|k) is 0 or 1 to rounding at sigma = 1e-3.
  CHECK(distance(out_of("soft-vq:codes=16,sigma=0.001", problem), hard) < 1e-12);
  CHECK(distance(out_of("soft-vq:codes=16,sigma=0.1", problem), hard) > 1e-6);
  // p(y|k) = pi_y (1 + O(|k - c|^2 / sigma^2)).
  CHECK(distance(out_of("soft-vq:codes=16,sigma=1e6", problem), out_of("uniform", problem)) < 1e-9);
  CHECK(distance(out_of("soft-vq:codes=16", problem), out_of("uniform", problem)) > 1e-2);
}

TEST_CASE("soft-vq with the keys for a codebook and a narrow mixture is softmax", "[methods]") {
  const TestHead problem = gaussian();
  const Tensors keys{{"codebook", problem.head.K}};
  const Matrix<double> exact = out_of("softmax", problem);
  CHECK(distance(out_of("soft-vq:sigma=0.001", problem, &keys), exact) < 1e-12);
  CHECK(distance(out_of("soft-vq:sigma=1", problem, &keys), exact) > 1e-3);
}

// The sum over a lattice of spacing h is the integral of exp(q.w) N(w; k, 1) up to 2 exp(-2 pi^2 / h^2), 1e-34 at
// h = 0.5 and 3e-4 at 1.5; the lattice reaches 8.5 standard deviations beyond every k and k + q.
TEST_CASE("soft-vq on a fine lattice is softmax in one dimension", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 50, .d = 1, .dv = 3}, 0.8);
  const double reach = problem.head.Q.cwiseAbs().maxCoeff() + problem.head.K.cwiseAbs().maxCoeff() + 8.5;
  const auto lattice = [&](double h) {
    const Index half = static_cast<Index>(std::ceil(reach / h));
    Matrix<double> codebook(2 * half + 1, 1);
    for (Index y = 0; y < codebook.rows(); ++y) codebook(y, 0) = h * static_cast<double>(y - half);
    return Tensors{{"codebook", codebook}};
  };
  const Matrix<double> exact = out_of("softmax", problem);
  const Tensors fine = lattice(0.5), coarse = lattice(1.5);
  CHECK(distance(out_of("soft-vq", problem, &fine), exact) < 1e-12);
  CHECK(distance(out_of("soft-vq", problem, &coarse), exact) > 1e-6);
}

TEST_CASE("weights of a mixture are the shares of the keys, and uniform for a codebook alone", "[methods]") {
  const TestHead problem = gaussian();
  const auto fitted = draw_method<double>(Params("methods", "soft-vq:codes=16"), problem.shape, problem);
  Tensors state = fitted->state();
  CHECK(state.at("counts").sum() == static_cast<double>(problem.calibration.K.rows()));
  const Matrix<double> learnt = out_of("soft-vq:codes=16", problem, &state);
  state.at("counts") *= 3;  // only their proportions count
  CHECK(distance(out_of("soft-vq:codes=16", problem, &state), learnt) < 1e-12);
  state.at("counts").setOnes();
  const Matrix<double> equal = out_of("soft-vq:codes=16", problem, &state);
  CHECK(distance(equal, learnt) > 1e-4);
  state.erase("counts");
  CHECK(distance(out_of("soft-vq:codes=16", problem, &state), equal) < 1e-15);
}

// Central differences with step h err by h^2 times a third derivative (a few hundred here, in units of 1 / sigma^3) and
// by eps / h times the exponents: 1e-8 at h = 1e-5 with exponents up to 20.
TEST_CASE("the gradient of the soft codes is that of their exponents", "[methods]") {
  const TestHead problem = gaussian();
  const std::pair<double, CodeWeights> kinds[] = {{0.5, CodeWeights::posterior},
                                                  {1.0, CodeWeights::posterior},
                                                  {3.0, CodeWeights::posterior},
                                                  {0.7, CodeWeights::joint}};
  for (const auto& [sigma, kind] : kinds) {
    const Matrix<double> codebook = problem.calibration.K.topRows(12), counts = Matrix<double>::Ones(12, 1) * 2;
    const SoftCodes<double> codes(codebook, &counts, sigma, kind);
    for (const Side side : {Side::query, Side::key}) {
      Context context;
      const Matrix<double> X = problem.head.K.topRows(5), weights = problem.head.Q.topRows(12).leftCols(1).transpose();
      const Matrix<double> d_block = Eigen::VectorXd::LinSpaced(5, -1, 2) * weights;
      Matrix<double> block(5, 12), dX(5, 4);
      std::vector<double> log_scale(5), d_log_scale(5, 0.7);
      const auto loss = [&](const Matrix<double>& at) {
        codes.map(context, at, side, 0, block, log_scale);
        double sum = (d_block.array() * block.array()).sum();
        for (size_t i = 0; i < 5; ++i) sum += d_log_scale[i] * log_scale[i];
        return sum;
      };
      codes.pullback(context, X, side, 0, block, d_block, d_log_scale, dX);
      const double h = 1e-5;
      for (Index i = 0; i < X.rows(); ++i)
        for (Index l = 0; l < X.cols(); ++l) {
          Matrix<double> up = X, down = X;
          up(i, l) += h;
          down(i, l) -= h;
          CHECK(std::abs((loss(up) - loss(down)) / (2 * h) - dX(i, l)) < 1e-7);
        }
    }
  }
}

}  // namespace attnbench::soft_vq_test
