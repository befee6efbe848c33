#include "harness/random/streams.hpp"

#include <Eigen/QR>

#include "harness/linalg/reflections.hpp"

namespace attnbench {

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
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
  const Matrix<double> normal = standard_normal(generator, 1, d * (d + 1) / 2);
  return product_of_reflections({normal.data(), static_cast<size_t>(normal.size())}, d);
}

}  // namespace attnbench
