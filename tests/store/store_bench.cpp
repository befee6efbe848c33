// Seconds that a results file of 100,000 cells and 10^6 rows takes. Hidden: run by scripts/bench/store.sh.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>

#include "harness/store/merge.hpp"
#include "harness/store/store.hpp"
#include "harness/store/verify.hpp"
#include "tests/catch.hpp"
#include "tests/store/results_file.hpp"

using namespace attnbench;

namespace {

// Wall and processor time: on a machine that does other work, the second is nearer to what a quiet one takes.
template <class Action>
void timed(const char* what, Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  action();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << fmt::format("{:<36}{:>8.2f} s wall{:>8.2f} s processor\n", what, seconds.count(),
                           static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC)
            << std::flush;
}

// One replicate a cell: 8 scalars and an array of 2, so 10 rows of the export.
void record_cells(const std::filesystem::path& path, Index cells) {
  Store store(path);
  const auto run = store.begin_run("bench", "{}");
  std::vector<Measurement> measurements{{"pairs", "1", {2}, {1.5, 2.5}}};
  for (int i = 0; i < 8; ++i) measurements.push_back(scalar("metric" + std::to_string(i), 1.0 / (i + 3)));
  for (Index i = 0; i < cells; ++i) {
    CellRow row = cell(fmt::format("performer:m={}", i));
    row.key = fmt::format("{:032x}", static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u);
    row.parameters = fmt::format(R"({{"features":"positive","m":{},"projection":"orthogonal","scale":1}})", i);
    store.record(run, row, 0, {}, 0.01, measurements);
  }
}

}  // namespace

TEST_CASE("a results file of 100,000 cells and a million rows", "[.][bench]") {
  const char* given = std::getenv("ATTNBENCH_BENCH_FILE");
  const std::filesystem::path path = given ? given : "bench.db", out = path.string() + ".out";
  if (!std::filesystem::exists(path)) timed("record 100,000 replicates", [&] { record_cells(path, 100'000); });
  std::cout << fmt::format("{:<36}{:>8.1f} MB\n", "size", static_cast<double>(std::filesystem::file_size(path)) / 1e6);
  timed("open", [&] { const Store store(path); });
  const Store store(path);
  size_t cells = 0;
  timed("what has ended", [&] { cells = store.ended().size(); });
  CHECK(cells == 100'000);
  for (const bool json : {false, true})
    timed(json ? "export of 10^6 rows as JSON" : "export of 10^6 rows as CSV", [&] {
      std::ofstream file(out);
      store.export_table(
          file,
          {.format = json ? ExportRequest::Format::json : ExportRequest::Format::csv, .arrays = true, .clock = true});
    });
  std::filesystem::remove(out);
  timed("verify", [&] { CHECK(verify(path).problems.empty()); });
  timed("merge into a new file", [&] { merge(out, {path}); });
  timed("merge again", [&] { CHECK(merge(out, {path}).added == 0); });
  std::filesystem::remove(out);
}
