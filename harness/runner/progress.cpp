#include "harness/runner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "harness/errors/printable.hpp"

namespace attnbench {

namespace {

constexpr double least_interval = 0.2;  // seconds between two prints
WholeProgress* whole = nullptr;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string minutes_and_seconds(double seconds) {
  const long rounded = std::lround(seconds);
  return fmt::format("{}:{:02}", rounded / 60, rounded % 60);
}

void replace_line(const std::string& text) { std::fputs(("\r\x1b[K" + text).c_str(), stderr); }

}  // namespace

Progress::Progress(size_t total) : total_(total), started_(now()), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::step(const std::string& what) {
  ++done_;
  print(static_cast<double>(done_), what);
}

void Progress::within(double units, const std::string& what) { print(static_cast<double>(done_) + units, what); }

void Progress::print(double done, const std::string& what) {
  if (whole) return whole->step(done, what);
  if (!terminal_ || (now() - printed_ < least_interval && done_ < total_)) return;
  printed_ = now();
  const double left = (printed_ - started_) / done * (static_cast<double>(total_) - done);
  replace_line(fmt::format("{}/{}  {} left  {:.60}", done_, total_, minutes_and_seconds(left), printable(what)));
}

Progress::~Progress() {
  if (whole)
    whole->finished_ += static_cast<double>(done_);
  else if (terminal_ && printed_ > 0)
    replace_line("");
}

WholeProgress::WholeProgress(std::vector<Part> parts)
    : parts_(std::move(parts)), started_(now()), terminal_(isatty(STDERR_FILENO) != 0) {
  for (const Part& part : parts_) expected_ += part.seconds;
  whole = this;
}

WholeProgress::~WholeProgress() {
  whole = nullptr;
  hide();
}

void WholeProgress::part_is_done() {
  behind_ += parts_.at(part_).seconds;
  ++part_;
  finished_ = 0;
  printed_ = 0;
}

void WholeProgress::hide() {
  if (terminal_) replace_line("");
}

std::string WholeProgress::line(double elapsed, double units, const std::string& what) const {
  const Part& part = parts_.at(part_);
  const double share = part.units > 0 ? std::min(1.0, (finished_ + units) / static_cast<double>(part.units)) : 0;
  const double behind = behind_ + share * part.seconds;
  // The estimate is corrected by what has been seen, as far as that is more than a few seconds.
  constexpr double trusted = 5;
  const double left = (expected_ - behind) * (elapsed + trusted) / (behind + trusted);
  constexpr int width = 20;
  const double filled = expected_ > 0 ? behind / expected_ : 1;
  const int marks = static_cast<int>(std::clamp(filled, 0.0, 1.0) * width);
  return fmt::format("[{}{}] {}/{} recipes  {} left  {}: {:.40}", std::string(static_cast<size_t>(marks), '#'),
                     std::string(static_cast<size_t>(width - marks), '.'), part_, parts_.size(),
                     minutes_and_seconds(std::max(0.0, left)), part.name, printable(what));
}

void WholeProgress::step(double units, const std::string& what) {
  if (!terminal_ || now() - printed_ < least_interval) return;
  printed_ = now();
  replace_line(line(printed_ - started_, units, what));
}

}  // namespace attnbench
