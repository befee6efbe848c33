// Progress on a terminal: what is done, and the time left.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// Of one call of `execute`. Prints on stderr if that is a terminal, at most a few times a second. While a WholeProgress
// lives it reports to that instead.
class Progress {
 public:
  explicit Progress(size_t total);
  void step(const std::string& what);  // one more unit is done
  // The units under way amount to this many finished units.
  void within(double units, const std::string& what);
  ~Progress();

 private:
  void print(double done, const std::string& what);

  size_t total_, done_ = 0;
  double started_, printed_ = 0;
  bool terminal_;
};

// Of many calls of `execute` in several parts, such as the recipes of a reproduction: one bar over all of them. At most
// one may exist.
class WholeProgress {
 public:
  // A part with what the estimate says: seconds, and units that will run.
  struct Part {
    std::string name;
    double seconds = 0;
    size_t units = 0;
  };
  explicit WholeProgress(std::vector<Part> parts);
  WholeProgress(const WholeProgress&) = delete;
  WholeProgress& operator=(const WholeProgress&) = delete;
  ~WholeProgress();

  void part_is_done();
  // Removes the bar, so that a line can be printed. The next step prints it again.
  void hide();
  // "[#####...............] 3/12 recipes  1:20 left  rank: performer n=1024"; elapsed: seconds since the start, units:
  // of this part that are done. Public for tests.
  std::string line(double elapsed, double units, const std::string& what) const;

 private:
  friend class Progress;
  void step(double units, const std::string& what);

  std::vector<Part> parts_;
  size_t part_ = 0;                   // the one that runs
  double finished_ = 0;               // units of this part, of calls that ended
  double expected_ = 0, behind_ = 0;  // seconds of all parts, and of those that are done, by the estimate
  double started_, printed_ = 0;
  bool terminal_;
};

}  // namespace attnbench
