// k-means: k-means++ seeding and Lloyd's sweeps, or moving averages of them. methods.md D.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/context.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

struct Clustering {
  Matrix<double> centres;       // min(codes, n) x d
  std::vector<double> inertia;  // sum of squared distances to the nearest centre before each sweep
};

// How centres move in a sweep. With n_y rows on code y and s_y their sum,
//   N <- decay N + (1 - decay) n,   Sigma <- decay Sigma + (1 - decay) s,   c = Sigma / N
// as codebooks are learnt while a model trains (van den Oord et al. 2017, arXiv:1711.00937, appendix A.1). decay = 0 is
// Lloyd's sweep, which never increases the inertia.
struct Sweeps {
  Index most;
  double decay = 0;
};

// k-means++ (Arthur and Vassilvitskii 2007). Each uniform number u in [0, 1) selects one row of X: the row where the
// cumulative squared distance to the earlier seeds reaches u of the total. At most n seeds. O(n c d) time.
Matrix<double> seed_centres(Context& context, const In<double>& X, std::span<const double> uniforms);
// Runs at most sweeps.most sweeps over the rows of X (n x d) from the given seeds. With decay 0 it stops as soon as no
// assignment changes, because the centres no longer move. A centre without rows stays. O(n c d) time a sweep.
Clustering kmeans(Context& context, const In<double>& X, Matrix<double> seeds, Sweeps sweeps);
// Seeds with drawn numbers, then sweeps. Gives the same bits for any number of threads.
Clustering kmeans(Context& context, const In<double>& X, Index codes, Sweeps sweeps, Generator& generator);

}  // namespace attnbench
