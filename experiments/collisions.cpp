// How often LSH makes two tokens x and y, with no others around, candidates of each other. methods.md F6.
//   Kitaev et al., arXiv:2001.04451, section 2: h(x) = argmax [x R, -x R], R d x b/2 standard normal. At an angle theta
//   P(h(x) = h(y)) = 1 - theta/pi for b = 2 buckets and (1 - theta/pi)^2 for b = 4; with c rounds, 1 - (1 - P)^c.
//   Lengths do not matter. For b = 4 the rotations u = (R_1 + R_2) / 2^1/2 and v = (R_1 - R_2) / 2^1/2 are independent,
//   and h is the pair of the signs of x.u and x.v.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/experiment/experiment.hpp"

namespace attnbench::collisions_experiment {
namespace {

double angle(const Matrix<double>& two) {
  const double cosine = two.row(0).dot(two.row(1)) / (two.row(0).norm() * two.row(1).norm());
  return std::acos(std::clamp(cosine, -1.0, 1.0));
}

// The collision probability of one pair; empty if no closed form is known.
std::optional<double> probability(const Params& method, double theta) {
  const Index buckets = method.integer("buckets");
  if (buckets > 4) return std::nullopt;
  const double half_space = 1 - theta / std::numbers::pi,
               one_round = buckets == 2 ? half_space : half_space * half_space;
  return 1 - std::pow(1 - one_round, static_cast<double>(method.integer("rounds")));
}

void refuse_what_does_not_hash(const Cell& cell) {
  if (!cell.method.has("buckets") || !cell.method.has("rounds"))
    throw Misuse("collisions: " + cell.method.spec() +
                 " does not hash tokens into buckets, in rounds; expected a method that does, such as reformer");
}

void measure(const Task& task, Recorder& record) {
  const Cell& cell = task.cell;
  const Index draws = cell.experiment.integer("draws");
  const auto head = draw_cell_head(cell, task.replicate, 0, Purpose::measured);
  const Index pairs = std::min({cell.experiment.integer("pairs"), head.Q.rows(), head.K.rows()});
  const MethodDraws draw(cell, task.replicate, 0);
  const Matrix<double> values = Matrix<double>::Zero(2, 1);
  double found = 0, expected = 0, angles = 0;
  bool known = true;
  for (Index p = 0; p < pairs; ++p) {
    Matrix<double> two(2, head.Q.cols());
    two << head.Q.row(p), head.K.row(p);
    const double theta = angle(two);
    angles += theta;
    if (const auto P = probability(cell.method, theta))
      expected += *P;
    else
      known = false;
    for (Index t = 0; t < draws; ++t) {
      // Every replicate and pair has its own draws, so that errors are independent.
      const auto method = draw((task.replicate * pairs + p) * (Index{1} << 32) + t);
      std::vector<std::vector<Index>> keys(1);
      method->pattern()->keys_of_rows({two, two, values}, {}, 0, task.context, keys);
      found += static_cast<double>(std::count(keys[0].begin(), keys[0].end(), Index{1}));
    }
  }
  const auto count = static_cast<double>(pairs);
  record.scalar("collision_rate", "1", found / (count * static_cast<double>(draws)));
  if (known) record.scalar("collision_rate_theory", "1", expected / count);
  record.scalar("angle", "rad", angles / count);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "collisions",
             .summary = "how often hashing puts q and k of a pair into one bucket, against the angle between them",
             .formula = "P(h(q) = h(k)) over draws of the hash; 1 - theta/pi for 2 buckets, (1 - theta/pi)^2 for 4",
             .reference = "Kitaev et al. 2020, arXiv:2001.04451, section 2",
             .cost = "draws x pairs x (one construction + two tokens)"},
    .parameters = {Parameter::integer("draws", 4096, "draws of the hash for each pair", 1),
                   Parameter::integer("pairs", 1, "pairs (q_i, k_i): the first rows of the head", 1, 4096)},
    .metrics = {{"collision_rate",
                 "1",
                 "share of draws in which q and k find each other in some round",
                 {},
                 "P(they find each other)"},
                {"collision_rate_theory", "1", "its closed form, for 2 and 4 buckets"},
                {"angle", "rad", "between q and k, mean over pairs"}},
    .headline = {.metric = "collision_rate", .label = "P(q and k share a bucket)", .theory = "collision_rate_theory"},
    .check = refuse_what_does_not_hash,
    .work =
        [](const Cell& cell) {
          return work_of_draws(cell, cell.experiment.integer("draws"), cell.experiment.integer("pairs"));
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::collisions_experiment
