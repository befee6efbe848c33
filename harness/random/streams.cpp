#include "harness/random/streams.hpp"

#include <Eigen/QR>
#include <boost/random/chi_squared_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

namespace attnbench {

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

Matrix<double> standard_normal(Generator& generator, Index rows, Index columns) {
  boost::random::normal_distribution<double> normal;
  Matrix<double> x(rows, columns);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = normal(generator);
  return x;
}

std::vector<double> chi(Generator& generator, Index count, Index d) {
  boost::random::chi_squared_distribution<double> squared(static_cast<double>(d));
  std::vector<double> norms(static_cast<size_t>(count));
  for (double& norm : norms) norm = std::sqrt(squared(generator));
  return norms;
}

Matrix<double> haar_factor(const Matrix<double>& gaussian) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd q = qr.householderQ();
  for (Index j = 0; j < q.cols(); ++j)
    if (qr.matrixQR()(j, j) < 0) q.col(j) = -q.col(j);
  return q;
}

Matrix<double> raw_qr_factor(const Matrix<double>& gaussian) {
  return Eigen::MatrixXd(Eigen::HouseholderQR<Eigen::MatrixXd>(gaussian).householderQ());
}

Matrix<double> haar_orthogonal(Generator& generator, Index d) {
  Matrix<double> Q = Matrix<double>::Identity(d, d);
  const Matrix<double> normal = standard_normal(generator, 1, d * (d + 1) / 2);
  const double* next = normal.data();
  if (*next++ < 0) Q(d - 1, d - 1) = -1;
  Eigen::RowVectorXd product(d);
  for (Index size = 2; size <= d; ++size) {
    Eigen::VectorXd v = Eigen::Map<const Eigen::VectorXd>(next, size);
    next += size;
    const double sign = v[0] < 0 ? -1 : 1;
    v[0] += sign * v.norm();
    auto corner = Q.bottomRightCorner(size, size);
    product.head(size).noalias() = v.transpose() * corner;
    corner.noalias() -= (2 / v.squaredNorm() * v) * product.head(size);
    corner.col(0) *= -sign;  // the reflection takes e1 to -sign x / |x|, whose first coordinate is never positive
  }
  return Q;
}

}  // namespace attnbench
