#include "experiments/trained_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/core/installed.hpp"
#include "harness/core/parameters.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/last_read.hpp"

namespace attnbench {

namespace {

TrainedRow row_of(const nlohmann::json& line) {
  const auto& settings = line.at("settings");
  TrainedRow row{.task = settings.at("task"),
                 .method = Params("methods", settings.at("attention").get<std::string>()).spec(),
                 .redraw = settings.at("redraw"),
                 .seed = settings.at("seed"),
                 .n = settings.at("context"),
                 .d = settings.value("key_size", settings.at("head_size").get<Index>()),
                 .causal = settings.at("causal"),
                 .done = line.at("ending") == "done",
                 .reason = line.at("reason"),
                 .finished = line.at("finished"),
                 .processor = line.at("processor"),
                 .torch = line.at("torch"),
                 .numbers = {},
                 .arrays = {}};
  for (const auto& [metric, value] : line.at("measured").items())
    if (value.is_array())
      row.arrays[metric] = value.get<std::vector<double>>();
    else
      row.numbers[metric] = value.get<double>();
  return row;
}

std::vector<TrainedRow> read_rows(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<TrainedRow> rows;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) try {
      rows.push_back(row_of(nlohmann::json::parse(line)));
    } catch (const nlohmann::json::exception& e) {
      throw Misuse(
          fmt::format("{}, line {}: expected the row of a trained model ({}); write the file again: "
                      "scripts/train/collect.py FOLDER -o {}",
                      path.string(), number, e.what(), path.parent_path().string()));
    }
  return rows;
}

}  // namespace

std::filesystem::path trained_rows_file() {
  const char* chosen = std::getenv("ATTNBENCH_TRAINED");
  return chosen && *chosen ? std::filesystem::path(chosen) : source_tree() / "experiments/trained/rows.jsonl";
}

const std::vector<TrainedRow>& trained_rows() {
  static LastRead<std::shared_ptr<const std::vector<TrainedRow>>, 2> read;
  const auto path = trained_rows_file();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Misuse(
        fmt::format("there is no file {} with trained models; expected the rows that scripts/train/collect.py writes: "
                    "restore it, or set ATTNBENCH_TRAINED to such a file",
                    path.string()));
  return *read.get(path.string() + version_of(path),
                   [&] { return std::make_shared<const std::vector<TrainedRow>>(read_rows(path)); });
}

Index trained_seeds(const std::string& task, const std::vector<std::pair<std::string, Index>>& attentions) {
  const auto has = [&](const std::pair<std::string, Index>& attention, Index seed) {
    const std::string method = Params("methods", attention.first).spec();
    return std::ranges::any_of(trained_rows(), [&](const TrainedRow& row) {
      return row.task == task && row.method == method && row.redraw == attention.second && row.seed == seed;
    });
  };
  Index seeds = 0;
  while (std::ranges::all_of(attentions, [&](const auto& attention) { return has(attention, seeds + 1); })) ++seeds;
  return seeds;
}

}  // namespace attnbench
