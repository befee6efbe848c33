// Gauss-Hermite projection vectors: draws from the nodes of a product rule. Dao, De Sa and Re 2017, arXiv:1709.02605;
// Spectraformer, arXiv:2405.15310.
//   omega_il independent, equal to x_j with probability w_j:  the nodes and weights of the rule with `points` points,
//   sum_j w_j f(x_j) = E f(N(0, 1)) for polynomials f of degree up to 2 points - 1.
// The mean over draws is the product rule itself, with all points^d nodes:                            methods.md B10
//   E exp(omega.z) = prod_l sum_j w_j cosh(x_j z_l)  <  exp(|z|^2/2),   E cos(omega.z) = prod_l sum_j w_j cos(x_j z_l)
// below by the share p! z_l^(2p) / (2p)! of each coordinate, to first order. points = 2 has the nodes 1 and -1.
//
// The rule's weights are used as probabilities, because projection vectors have no weights of their own here, and
// positive features admit none below 0: a whole grid has 4^64 nodes at d = 64, and Smolyak's sparse grid of 2 d + 1
// nodes the weight 1 - d/3 at the origin. A draw of nodes works for every m and d.
#include <Eigen/Eigenvalues>
#include <cmath>

#include "harness/core/projection.hpp"

namespace attnbench::gauss_hermite_projection {
namespace {

struct Rule {
  Eigen::VectorXd nodes, weights;
};

// Golub and Welsch 1969: the recurrence of Hermite polynomials as a tridiagonal matrix.
Rule rule_of(Index points) {
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(points, points);
  for (Index k = 1; k < points; ++k) J(k, k - 1) = J(k - 1, k) = std::sqrt(static_cast<double>(k));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solved(J);
  Rule rule{solved.eigenvalues(), solved.eigenvectors().row(0).array().square().matrix()};
  rule.nodes = (rule.nodes - rule.nodes.reverse()).eval() / 2;  // symmetric to the last bit
  rule.weights = (rule.weights + rule.weights.reverse()).eval() / 2;
  return rule;
}

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  const Rule rule = rule_of(draw.params.integer("points"));
  auto generator = draw.streams.stream("projection", "gauss-hermite", d, draw.head, draw.replicate);
  Matrix<double> W(m, d);
  for (Index i = 0; i < m; ++i)
    for (Index l = 0; l < d; ++l) {
      double left = static_cast<double>(generator() >> 11) * 0x1p-53;
      Index j = 0;
      while (j + 1 < rule.nodes.size() && left >= rule.weights[j]) left -= rule.weights[j++];
      W(i, l) = rule.nodes[j];
    }
  return W;
}

EnsembleLaw law(const Params& params, Index) {
  return {.directed_moment =
              [rule = rule_of(params.integer("points"))](std::span<const double> z, int sign, double alpha) {
                double product = 1;
                for (const double zl : z) {
                  const Eigen::ArrayXd u = zl * rule.nodes.array();
                  const Eigen::ArrayXd even = sign > 0 ? Eigen::ArrayXd(u.cosh()) : Eigen::ArrayXd(u.cos());
                  product *= (rule.weights.array() * (alpha * rule.nodes.array().square()).exp() * even).sum();
                }
                return product;
              },
          .gaussian = false,
          .dependent_pairs = [](Index) { return 0.0; }};
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "gauss-hermite",
             .printed = "Gauss-Hermite",
             .summary = "draws from the nodes of a Gauss-Hermite product rule: estimates a kernel below exp(q.k)",
             .formula = "omega_il = x_j with probability w_j, the nodes and weights of the rule, independent",
             .reference = "Dao, De Sa and Re 2017, arXiv:1709.02605; Nguyen et al. 2024, arXiv:2405.15310",
             .cost = "m d uniform variates",
             .departure = "the papers also take the whole grid, or Smolyak's sparse grid, with weights; vectors have "
                          "none here, so the weights are probabilities"},
    // Seven points and more tell little from normal entries: six err by 2e-6 of a coordinate's factor at z_l = 1.
    .parameters = {Parameter::integer("points", 4, "nodes of the rule in each coordinate", 2, 6)},
    .draw = draw_rows,
    .law = law,
    .caveats =
        [](const Params& params, Index, Index) {
          return std::vector<std::string>{"gauss-hermite rows estimate the product rule of " + params.text("points") +
                                          " points, which is below exp(q.k)"};
        },
});

}  // namespace
}  // namespace attnbench::gauss_hermite_projection
