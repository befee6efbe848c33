// Rows of trained models that a test makes up, in a file that its process reads in place of the recorded ones.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/folder.hpp"

namespace attnbench {

struct RecordedRow {
  std::string attention;
  int seed = 1;
  std::string ending = "done";
  int redraw = 0;
  std::string numbers = R"("held_out_bits": 1.5, "curve": [3, 2.5, 1.5])";
  std::string task = "copying";
  std::string finished = "2026-11-25";
  bool causal = true;

  std::string line() const {
    return R"({"settings": {"task": ")" + task + R"(", "attention": ")" + attention + R"(", "redraw": )" +
           std::to_string(redraw) + R"(, "seed": )" + std::to_string(seed) +
           R"(, "context": 12, "head_size": 4, "causal": )" + (causal ? "true" : "false") + R"(}, "ending": ")" +
           ending + R"(", "reason": "the training loss is nan at step 3", "measured": {)" + numbers +
           R"(}, "finished": ")" + finished + R"(T16:00:00+00:00", "processor": "P", "torch": "2"})" + "\n";
  }
};

class RecordedRows {
 public:
  explicit RecordedRows(const std::string& lines) {
    std::ofstream(folder_ / "rows.jsonl") << lines;
    setenv("ATTNBENCH_TRAINED", (folder_ / "rows.jsonl").c_str(), 1);
  }
  RecordedRows(const RecordedRows&) = delete;
  RecordedRows& operator=(const RecordedRows&) = delete;
  ~RecordedRows() { unsetenv("ATTNBENCH_TRAINED"); }

 private:
  Folder folder_;
};

}  // namespace attnbench
