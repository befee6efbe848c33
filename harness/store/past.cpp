#include "harness/store/past.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

#include "harness/store/database.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

std::vector<PastCell> past_cells(const std::filesystem::path& results, const std::string& experiment) {
  return explained(results, [&] {
    SQLite::Database database = open_for_reading(results);
    SQLite::Statement select(database,
                             "SELECT c.experiment, c.method, c.input, c.nq, c.n, c.d, c.dv, c.causal, c.mask_offset, "
                             "c.mask_keys, c.precision, c.heads, c.logit_scale, c.threads, avg(r.seconds) FROM cell c "
                             "JOIN replicate r ON r.cell = c.id WHERE r.ending = 'done' AND (c.experiment = ?1 OR "
                             "c.experiment LIKE ?1 || ':%') AND (c.threads = 0 OR c.machine = ?2) GROUP BY c.id");
    select.bind(1, experiment);
    select.bind(2, this_machine());
    std::vector<PastCell> past;
    while (select.executeStep()) {
      const auto size = [&](int column) { return Index{select.getColumn(column).getInt64()}; };
      past.push_back({.experiment = select.getColumn(0).getString(),
                      .method = select.getColumn(1).getString(),
                      .input = select.getColumn(2).getString(),
                      .shape = {.nq = size(3),
                                .nk = size(4),
                                .d = size(5),
                                .dv = size(6),
                                .mask = {.causal = size(7) != 0, .offset = size(8), .keys = size(9)},
                                .precision = precision_of(select.getColumn(10).getString()).value_or(Precision::f64)},
                      .heads = size(11),
                      .logit_scale = select.getColumn(12).getDouble(),
                      .threads = select.getColumn(13).getInt(),
                      .seconds = select.getColumn(14).getDouble()});
    }
    return past;
  });
}

}  // namespace attnbench
