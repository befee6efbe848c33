#include "harness/workers/worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>

#include "harness/machine/interrupts.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

constexpr double tick = 0.02;               // seconds between two checks of the limits
constexpr double to_load = 300;             // seconds until a worker must be ready: an interpreter may import a library
constexpr double to_die = 0.5;              // seconds in which a worker must exit once its socket is closed
constexpr std::uintmax_t output = 1 << 26;  // bytes of output kept: a method must not fill the disk by printing

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code none;
  const auto size = std::filesystem::file_size(file, none);
  return none ? 0 : size;
}

}  // namespace

Worker::Worker(double bytes, const PluginFiles& plugins, const std::vector<int>& cores)
    : process_(scratch_.path / "output", scratch_.path, plugins) {
  try {
    send(process_.socket(), {{"runner", getpid()}, {"bytes", bytes}, {"cores", cores}});
  } catch (const std::system_error&) {  // the worker is dead already; the first request finds out how it died
  }
}

void Worker::ask(Message request, Allowance allowance, std::string doing) {
  allowance_ = allowance;
  doing_ = std::move(doing);
  said_before_ = size_of(scratch_.path / "output");
  busy_ = true;
  started_ = looked_ = now();
  peak_ = 0;
  received_before_ = inbox_.received();
  std::random_device random;
  number_ = (std::uint64_t{random()} << 32) | random();
  request["request"] = number_;
  try {
    send(process_.socket(), request);
  } catch (const std::system_error&) {  // the worker is dead, and look() will say how it died
  }
}

bool Worker::fit() const {
  pollfd sources[] = {{process_.handle(), POLLIN, 0}, {process_.socket(), POLLIN, 0}};
  return open_ && !spent_ && inbox_.empty() && poll(sources, 2, 0) == 0 && !has_children(process_.id());
}

// The last line that the request printed, after a semicolon; empty if it printed nothing.
std::string Worker::last_words() const {
  std::ifstream file(scratch_.path / "output");
  const std::uintmax_t size = size_of(scratch_.path / "output");
  if (size <= said_before_) return "";
  file.seekg(static_cast<std::streamoff>(std::max(said_before_, size - std::min<std::uintmax_t>(size, 4096))));
  std::string line, last;
  while (std::getline(file, line))
    if (const size_t first = line.find_first_not_of(" \t\r"); first != std::string::npos) last = line.substr(first);
  for (char& c : last)
    if (c < ' ' || c > '~') c = '?';
  return last.empty() ? "" : fmt::format("; its last output: {:.160}", last);
}

Ending Worker::ended(Ending::Kind kind, std::string reason) {
  process_.end();
  busy_ = open_ = false;
  seconds_ = now() - started_;
  return {kind, std::move(reason)};
}

Ending Worker::broken(std::string_view what) {
  return ended(Ending::Kind::crashed, fmt::format("{} while {}", what, doing_));
}

// The reply among the messages that have arrived. Takes note of the others.
std::optional<Message> Worker::next_reply() {
  while (auto message = inbox_.next()) {
    if (!ready_) {  // starting up does not count towards the request's time and memory
      at_start_ = message->at("ready");
      ready_ = true;
      started_ = looked_ = now();
      continue;
    }
    if (message->at("request") != number_) throw Message::other_error::create(500, "of another request", nullptr);
    if (message->contains("doing"))
      doing_ = message->at("doing").get<std::string>();
    else
      return message;
  }
  return std::nullopt;
}

std::optional<Worker::Reply> Worker::look() {
  pollfd handle{process_.handle(), POLLIN, 0};
  const bool dead = poll(&handle, 1, 0) == 1;  // checked first, so that everything it sent is read below
  do {
    if (open_) open_ = inbox_.receive(process_.socket(), false);
    if (static_cast<double>(inbox_.received() - received_before_) > allowance_.sent)
      return broken(fmt::format("sent more than {} to the runner", memory_size(allowance_.sent)));
    try {
      if (auto message = next_reply()) {
        busy_ = false;
        seconds_ = now() - started_;
        spent_ = message->contains("spent");
        return message;
      }
    } catch (const nlohmann::json::exception&) {
      return broken("sent a message that answers no request");
    }
  } while (dead && open_);
  if (dead) {
    const std::string how = process_.end();
    return ended(Ending::Kind::crashed, fmt::format("{} while {}{}", how, doing_, last_words()));
  }
  const double time = now();
  if (!open_) {
    if (closed_ == 0) closed_ = time;
    if (time - closed_ > to_die && !is_ending(process_.id()))  // else it is known in a moment what ended it
      return ended(Ending::Kind::crashed, fmt::format("closed its connection to the runner while {}", doing_));
  }
  if (!ready_ && time - started_ > to_load)
    return ended(Ending::Kind::timed_out, fmt::format("it was not ready within {:g} s", to_load));
  if (ready_ && time - started_ > allowance_.seconds)
    return ended(Ending::Kind::timed_out, fmt::format("limit {:g} s, while {}", allowance_.seconds, doing_));
  if (!ready_ || time - looked_ < tick) return std::nullopt;
  looked_ = time;
  const double bytes = resident() - at_start_;
  peak_ = std::max(peak_, bytes);
  if (bytes > allowance_.bytes)
    return ended(Ending::Kind::out_of_memory,
                 fmt::format("limit {}, peak {}, while {}", memory_size(allowance_.bytes), memory_size(peak_), doing_));
  if (size_of(scratch_.path / "output") > output) {
    std::error_code ignored;
    std::filesystem::resize_file(scratch_.path / "output", 0, ignored);  // it appends, so it continues at 0
    said_before_ = 0;
  }
  return std::nullopt;
}

UnitOutcome Worker::outcome(Reply reply) {
  if (auto* ending = std::get_if<Ending>(&reply)) return {std::move(*ending)};
  UnitOutcome outcome;
  try {
    outcome = outcome_of(std::get<Message>(reply));
  } catch (const nlohmann::json::exception&) {
    return {broken("sent an answer that cannot be read")};
  }
  auto& [kind, reason] = outcome.ending;
  if (kind == Ending::Kind::failed) reason += last_words();
  if (kind == Ending::Kind::out_of_memory)
    reason += fmt::format(" (limit {}, peak {})", memory_size(allowance_.bytes),
                          memory_size(std::max(peak_, resident() - at_start_)));
  return outcome;
}

void wait_for(std::span<Worker* const> workers) {
  std::vector<pollfd> waited;
  for (const Worker* worker : workers) {
    if (worker->open_) waited.push_back({worker->process_.socket(), POLLIN, 0});
    waited.push_back({worker->process_.handle(), POLLIN, 0});
  }
  poll(waited.data(), waited.size(), static_cast<int>(1000 * tick));
}

std::optional<Worker::Reply> answer(Worker& worker, const Message& request, Allowance allowance, std::string doing) {
  worker.ask(request, allowance, std::move(doing));
  Worker* const alone[] = {&worker};
  while (!Interrupts::asked()) {
    wait_for(alone);
    if (auto reply = worker.look()) return reply;
  }
  return std::nullopt;
}

}  // namespace attnbench
