// Structured orthogonal random features (SORF). Yu et al., arXiv:1610.09072. Blocks of D rows, the first d columns of
//   sqrt(D) H D_1 H D_2 H D_3,   H = Hadamard / sqrt(D),  D_i diagonal with independent random signs,
// D = d padded to a power of two: x has zeros beyond d. Padded rows are orthogonal, of norm sqrt(D).
// With one factor E exp(omega.z) = prod_l cosh(z_l) exactly. With three, a row is nearly uniform on its sphere, and
//   E exp(omega.z) ~ 0F1(; D/2; D |z|^2 / 4):  1.724680 for 1.725436 at d = 4, |z|^2 = 1.19            methods.md B
// exp(alpha |omega|^2) sees the first d coordinates alone, whose squared norm is D times a Beta(d/2, (D-d)/2) variate:
//   E exp(alpha |omega|^2 + omega.z) ~ e^(alpha D) sum_j (D |z|^2/4)^j / (j! (D/2)_j) 1F1((D-d)/2; D/2+j; -alpha D).
#include "approximations/linear/projections/hadamard.hpp"

#include "approximations/linear/projections/blocks.hpp"
#include "approximations/linear/projections/sphere.hpp"

namespace attnbench {

void walsh_hadamard(Matrix<double>& W) {
  for (Index half = 1; half < W.rows(); half *= 2)
    for (Index i = 0; i < W.rows(); ++i)
      if ((i & half) == 0) {
        W.row(i) += W.row(i + half);
        W.row(i + half) = W.row(i) - 2 * W.row(i + half);
      }
}

Matrix<double> hadamard_block(const Matrix<double>& signs) {
  const Index factors = signs.rows(), D = signs.cols();
  Matrix<double> W = Matrix<double>::Identity(D, D);
  for (Index f = factors - 1; f >= 0; --f) {
    W = signs.row(f).asDiagonal() * W;
    walsh_hadamard(W);
  }
  return W * std::pow(static_cast<double>(D), 0.5 - static_cast<double>(factors) / 2);
}

namespace {

Matrix<double> draw_block(const Params& params, Generator& generator, Index d) {
  Matrix<double> signs(params.integer("factors"), padded_to_power_of_two(d));
  for (Index i = 0; i < signs.size(); ++i) signs.data()[i] = generator() >> 63 ? 1 : -1;
  return hadamard_block(signs);
}

EnsembleLaw law(const Params&, Index d) {
  const Index D = padded_to_power_of_two(d);
  EnsembleLaw known{
      .moment = [=](double t,
                    double alpha) { return sphere_moment(static_cast<double>(d), static_cast<double>(D), t, alpha); },
      .exact = false,
      .gaussian = false};
  if (d == D) {
    known.block = D;
    known.cosine = 0;
    known.norm = std::sqrt(static_cast<double>(D));
  }
  return known;
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "hadamard",
             .printed = "Hadamard",
             .summary = "structured orthogonal features (SORF): Hadamard matrices and random signs, norms sqrt(d)",
             .formula = "blocks of D rows of sqrt(D) H D1 H D2 H D3, first d columns, D = d padded to a power of two",
             .reference = "Yu et al. 2016, arXiv:1610.09072",
             .cost = "O(m d log d) additions, once a draw; features are then computed as with any other W"},
    .parameters = {Parameter::integer("factors", 3, "number of factors H D", 1, 3)},
    .draw =
        [](const Draw& draw, Index m, Index d) {
          Generator generator = draw.streams.stream("projection", "hadamard", d, draw.head, draw.replicate);
          return stacked_blocks(m, d, padded_to_power_of_two(d), [&] { return draw_block(draw.params, generator, d); });
        },
    .law = law,
    .caveats =
        [](const Params&, Index, Index d) {
          std::vector<std::string> all{"hadamard rows have norm sqrt(d), not chi_d: the kernel is below exp(q.k)"};
          if (padded_to_power_of_two(d) != d)
            all.push_back("d = " + std::to_string(d) + " is padded to " + std::to_string(padded_to_power_of_two(d)) +
                          ": rows are orthogonal in the padded space only");
          return all;
        },
});

}  // namespace
}  // namespace attnbench
