// Models that scripts/train trained, one row each: what the model reached with which attention, and when and where.
// Training takes minutes to hours, so the rows are recorded: experiments/trained/rows.jsonl, or the file that the
// environment's ATTNBENCH_TRAINED names. scripts/train/collect.py writes such files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct TrainedRow {
  std::string task, method;  // method: its canonical spec
  Index redraw = 0;          // steps between draws of random features; 0: one draw
  Index seed = 1;
  Index n = 0, d = 0;  // tokens, and width of q and k
  bool causal = false;
  bool done = false;
  std::string reason;  // why it is not done
  std::string finished, processor, torch;
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> arrays;
};

std::filesystem::path trained_rows_file();
// The rows of that file. Throws Misuse with the line that cannot be read as one.
const std::vector<TrainedRow>& trained_rows();
// The seeds 1, 2, ... that every one of these has a row for: (method, redraw), methods in any spelling.
Index trained_seeds(const std::string& task, const std::vector<std::pair<std::string, Index>>& attentions);

}  // namespace attnbench
