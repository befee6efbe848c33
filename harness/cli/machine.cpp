// attnbench machine: measures the rates of this machine, which are the ceilings of timings.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/cli/command.hpp"
#include "harness/machine/rates.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench::machine_command {
namespace {

struct Row {
  std::string name, what, unit;
  double scale;  // of the printed unit
  std::function<double(Precision, int threads)> rate;
};

Row product(std::string name, std::string what, Product kind, Index rows, Index inner, Index columns) {
  return {std::move(name), std::move(what), "GFLOP/s", 1e9, [=](Precision precision, int threads) {
            return product_rate(precision, threads, kind, rows, inner, columns);
          }};
}

// Blocks of 256 rows at d = dv = 64 and 256 features, the sizes that the engines use.
std::vector<Row> all_rows() {
  return {{"fma_peak", "multiply-adds on registers", "GFLOP/s", 1e9,
           [](Precision precision, int threads) { return rates(precision, threads).fma_peak; }},
          product("gemm", "product 512 x 512 x 512", Product::multiply, 512, 512, 512),
          product("gemm_logits", "A B^T 256 x 64 x 512: logits of a tile", Product::multiply_transposed, 256, 64, 512),
          product("gemm_values", "C += A B 256 x 512 x 64: values of a tile", Product::multiply_add, 256, 512, 64),
          product("gemm_features", "A B^T 256 x 64 x 256: random features", Product::multiply_transposed, 256, 64, 256),
          product("gemm_state", "C += A^T B 256 x 256 x 64: sums over keys", Product::transposed_multiply_add, 256, 256,
                  64),
          {"exp_rate", "exponentials in cache", "10^9/s", 1e9,
           [](Precision precision, int threads) { return rates(precision, threads).exp_rate; }},
          {"bandwidth", "memory, read and written", "GB/s", 1e9,
           [](Precision precision, int threads) { return rates(precision, threads).bandwidth; }}};
}

int threads_of(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 || threads > 1024)
    throw Misuse("--threads " + text + ": expected an integer from 1 to 1024");
  return threads;
}

int run(const std::vector<std::string>& words) {
  options::options_description visible("options");
  std::string given;
  bool as_json = false;
  visible.add_options()("threads", options::value(&given)->value_name("N"),
                        "at most the cores of the allowed set [all of them]")(
      "json", options::bool_switch(&as_json), "every rate in FLOP/s, 1/s and B/s, as JSON");
  if (!parse_arguments("machine", visible, words, {})) return 0;
  const int threads = given.empty() ? allowed_cores() : threads_of(given);
  if (threads > allowed_cores())
    throw Misuse(
        fmt::format("--threads {}: this process may use {} core{}, and threads that share a core would each "
                    "report its best moments; expected at most {}",
                    threads, allowed_cores(), allowed_cores() == 1 ? "" : "s", allowed_cores()));
  nlohmann::json json{{"threads", threads}, {"instructions", Eigen::SimdInstructionSetsInUse()}};
  if (!as_json)
    std::cout << fmt::format(
        "{} threads together, built for {}; each rate is the best of several repetitions\n\n{:<46}{:>10}{:>10}\n",
        threads, Eigen::SimdInstructionSetsInUse(), "", "float", "double");
  for (const Row& row : all_rows()) {
    const double f32 = row.rate(Precision::f32, threads), f64 = row.rate(Precision::f64, threads);
    json["f32"][row.name] = f32;
    json["f64"][row.name] = f64;
    if (!as_json)
      std::cout << fmt::format("{:<46}{:>10.4g}{:>10.4g}  {}\n", row.what, f32 / row.scale, f64 / row.scale, row.unit)
                << std::flush;
  }
  if (as_json) std::cout << json.dump(2) << "\n";
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "machine",
                              .summary = "rates of this machine: multiply-adds, products, exponentials, memory",
                              .formula = "machine [--threads T] [--json]"},
                     .run = run,
                     .examples = {"machine", "machine --threads 1"}});

}  // namespace
}  // namespace attnbench::machine_command
