// The messages between runner and workers, and which worker takes which unit.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/experiment/cell_row.hpp"
#include "harness/experiment/message.hpp"
#include "harness/machine/scratch_folder.hpp"
#include "harness/random/streams.hpp"
#include "harness/runner/plan.hpp"
#include "harness/workers/process.hpp"
#include "harness/workers/unit_queue.hpp"
#include "tests/catch.hpp"

namespace attnbench::workers_test {

namespace {

// The ends of a socket, closed at the end.
struct Connection {
  Connection() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0); }
  ~Connection() {
    for (const int end : ends) close(end);
  }
  std::array<int, 2> ends{};
};

// The queue's units in the order in which workers that are asked in turn get them.
std::vector<std::vector<size_t>> shared_out(const std::vector<UnitQueue::Group>& groups, size_t workers) {
  UnitQueue queue(groups, workers);
  std::vector<std::vector<size_t>> all(workers);
  for (bool any = true; any;) {
    any = false;
    for (size_t worker = 0; worker < workers; ++worker)
      if (const auto next = queue.next(worker)) {
        all[worker].push_back(next->unit);
        any = true;
      }
  }
  return all;
}

}  // namespace

TEST_CASE("measurements come back bit for bit", "[unit]") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  UnitOutcome sent{.ending = {Ending::Kind::timed_out, "limit 1 s"},
                   .measurements = {{"a", "1", {}, {-0.0}},
                                    {"b", "s", {2, 3}, {infinite, -infinite, 5e-324, 0.1, 1e308, -1}},
                                    {"none", "1", {0}, {}}},
                   .notes = {"one", "two"}};
  const Connection connection;
  send(connection.ends[0], to_message(sent));
  Inbox inbox;
  REQUIRE(inbox.receive(connection.ends[1], true));
  const auto message = inbox.next();
  REQUIRE(message);
  const UnitOutcome got = outcome_of(*message);
  CHECK((got.ending.kind == sent.ending.kind && got.ending.reason == sent.ending.reason && got.notes == sent.notes));
  REQUIRE(got.measurements.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto &a = sent.measurements[i], &b = got.measurements[i];
    CHECK((a.metric == b.metric && a.unit == b.unit && a.shape == b.shape));
    REQUIRE(a.values.size() == b.values.size());
    CHECK((a.values.empty() || std::memcmp(a.values.data(), b.values.data(), 8 * a.values.size()) == 0));
  }
}

TEST_CASE("messages larger than a socket's memory arrive whole, in order", "[unit]") {
  const Connection connection;
  const std::vector<size_t> sizes{1, 3'000'000, 0, 70'000};
  std::jthread sender([&] {
    for (const size_t size : sizes) send(connection.ends[0], {{"text", std::string(size, 'x')}});
    shutdown(connection.ends[0], SHUT_WR);
  });
  Inbox inbox;
  std::vector<size_t> got;
  while (inbox.receive(connection.ends[1], true))
    while (const auto message = inbox.next()) got.push_back(message->at("text").get<std::string>().size());
  CHECK(got == sizes);
}

// Foreign code in a worker can write to the socket.
TEST_CASE("messages that would fill the runner's stack or memory are malformed, and small ones are read at once",
          "[unit]") {
  const auto inbox_of = [](const std::string& body) {
    const Connection connection;
    std::string bytes(sizeof(std::uint64_t), '\0');
    const std::uint64_t length = body.size();
    std::memcpy(bytes.data(), &length, sizeof(length));
    bytes += body;
    std::jthread sender([&] {
      for (size_t sent = 0; sent < bytes.size();)
        sent += static_cast<size_t>(write(connection.ends[0], bytes.data() + sent, bytes.size() - sent));
      shutdown(connection.ends[0], SHUT_WR);
    });
    Inbox inbox;
    while (inbox.receive(connection.ends[1], true)) {
    }
    CHECK(inbox.received() == bytes.size());
    return inbox;
  };
  const auto nested = [](size_t deep) { return std::string(deep, '\x81') + '\xf6'; };
  const auto nulls = [](std::uint32_t count) {
    std::string text = "\x9a";
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(count >> shift);
    return text + std::string(count, '\xf6');
  };
  CHECK(inbox_of(nested(32)).next());
  CHECK_THROWS_AS(inbox_of(nested(33)).next(), nlohmann::json::exception);
  CHECK_THROWS_AS(inbox_of(nested(1 << 22)).next(), nlohmann::json::exception);
  CHECK(inbox_of(nulls(100'000)).next());
  CHECK_THROWS_AS(inbox_of(nulls(1 << 21)).next(), nlohmann::json::exception);
  CHECK_THROWS_AS(inbox_of("\xff").next(), nlohmann::json::exception);

  // At most a megabyte is taken at once, so that the limits are looked at between.
  const Connection connection;
  std::jthread sender([&] {
    for (int i = 0; i < 300; ++i) send(connection.ends[0], {{"text", std::string(10'000, 'x')}});
    shutdown(connection.ends[0], SHUT_WR);
  });
  Inbox inbox;
  size_t got = 0;
  for (bool open = true; open;) {
    const std::uint64_t before = inbox.received();
    open = inbox.receive(connection.ends[1], false);
    CHECK(inbox.received() - before <= (1 << 20) + (1 << 16));
    while (inbox.next()) ++got;
  }
  CHECK(got == 300);
  CHECK(inbox.empty());
}

TEST_CASE("an answer of an unknown ending is malformed", "[unit]") {
  Message message = to_message(UnitOutcome{.ending = {Ending::Kind::invalid, "NaN"}});
  CHECK(outcome_of(message).ending.kind == Ending::Kind::invalid);
  message["ending"] = static_cast<int>(Ending::Kind::invalid) + 1;
  CHECK_THROWS_AS(outcome_of(message), nlohmann::json::exception);
}

// The units of each worker in the order in which it gets them.
TEST_CASE("units of the same plugins follow each other", "[unit]") {
  // Replicates 0 and 1 of a built-in method (units 0, 2) and of a plugin's (1, 3), all of one input a replicate.
  const std::vector<UnitQueue::Group> groups{{"a 0", 0, 0}, {"a 0", 0, 1}, {"a 1", 1, 0}, {"a 1", 1, 1}};
  CHECK(shared_out(groups, 1)[0] == std::vector<size_t>{0, 2, 1, 3});
  const auto two = shared_out(groups, 2);
  CHECK(two[0] == std::vector<size_t>{0, 1});
  CHECK(two[1] == std::vector<size_t>{2, 3});
}

TEST_CASE("a cell is the same cell on the other side", "[unit]") {
  RunRequest request{.experiment = "kernel-error:draws=4096",
                     .methods = {"performer:m=8,epsilon=1e-4", "per-head:[local:window=8],[performer]", "vq"},
                     .inputs = {"gaussian:scale=0.3", "clustered"},
                     .n = {16, 48},
                     .d = {3},
                     .dv = 5,
                     .causal = true,
                     .precision = Precision::f32,
                     .sweep = {{"logit_scale", {"0.1", "7"}}, {"round", {"none", "f16"}}},
                     .seed = std::numeric_limits<std::uint64_t>::max(),
                     .threads = 3};
  const auto cells = expand(request);
  CHECK(cells.size() == 3 * 2 * 2 * 2 * 2);
  for (const Cell& cell : cells) {
    const Connection connection;
    send(connection.ends[0], to_message(cell));
    Inbox inbox;
    REQUIRE(inbox.receive(connection.ends[1], true));
    const Cell got = cell_of(inbox.next().value());
    CHECK(row_of(got, true).key == row_of(cell, true).key);
  }
}

TEST_CASE("a worker keeps to one input, and takes from the back of another's when none is left", "[unit]") {
  // Inputs a (units 0, 2, 4), b (1, 3) and c (5), for two workers asked in turn.
  const auto units = shared_out({{"a"}, {"b"}, {"a"}, {"b"}, {"a"}, {"c"}}, 2);
  CHECK(units[0] == std::vector<size_t>{0, 2, 4});
  CHECK(units[1] == std::vector<size_t>{1, 3, 5});
  const auto one_input = shared_out({{"a"}, {"a"}, {"a"}, {"a"}, {"a"}}, 2);
  CHECK(one_input[0] == std::vector<size_t>{0, 1, 2});
  CHECK(one_input[1] == std::vector<size_t>{4, 3});
}

TEST_CASE("a worker keeps to one replicate, whose inputs may be made of one text", "[unit]") {
  // Two heads a and b on texts 0, 1 and 2: units in the order in which a run makes them, head after head.
  const auto units = shared_out({{"a 0", 0}, {"a 1", 1}, {"a 2", 2}, {"b 0", 0}, {"b 1", 1}, {"b 2", 2}}, 2);
  CHECK(units[0] == std::vector<size_t>{0, 3, 2});  // text 0, then head a on text 2
  CHECK(units[1] == std::vector<size_t>{1, 4, 5});  // text 1, then head b on text 2, which the other has begun
  const auto alone = shared_out({{"a 0", 0}, {"a 1", 1}, {"b 0", 0}, {"b 1", 1}}, 1);
  CHECK(alone[0] == std::vector<size_t>{0, 2, 1, 3});
}

TEST_CASE("every unit is done once, whatever the inputs and the workers", "[unit]") {
  Generator generator = Streams(3).stream("queue");
  for (size_t round = 0; round < 200; ++round) {
    const size_t workers = 1 + round % 5;
    std::vector<UnitQueue::Group> groups(generator() % 40);
    for (auto& [input, replicate, plugins] : groups) {
      plugins = generator() % 3;
      replicate = static_cast<long>(generator() % 3);
      input = std::to_string(generator() % 7) + " " + std::to_string(replicate);
    }
    UnitQueue queue(groups, workers);
    std::vector<size_t> done(groups.size());
    for (size_t asked = 0; asked < 1000; ++asked)  // workers end their units in any order
      if (const auto next = queue.next(generator() % workers)) ++done[next->unit];
    CHECK(done == std::vector<size_t>(groups.size(), 1));
  }
}

TEST_CASE("a process that is taken down is told from one that lives", "[unit]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    for (;;) pause();
  CHECK_FALSE(is_ending(child));
  CHECK_FALSE(is_ending(getpid()));
  kill(child, SIGKILL);
  siginfo_t ended{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(is_ending(child));  // it has ended, and nobody has asked how
  waitpid(child, nullptr, 0);
  CHECK(is_ending(child));
}

TEST_CASE("folders of owners that were killed are removed, and those of the living are not", "[unit]") {
  const auto age = [](const std::filesystem::path& folder) {
    std::filesystem::last_write_time(folder, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  };
  const ScratchFolder living;
  const std::filesystem::path abandoned = living.path.string() + "-abandoned", fresh = living.path.string() + "-fresh";
  std::filesystem::create_directories(abandoned / "inner");
  std::filesystem::create_directory(fresh);
  age(living.path);
  age(abandoned);
  remove_abandoned_folders();
  CHECK(std::filesystem::exists(living.path));
  CHECK_FALSE(std::filesystem::exists(abandoned));
  CHECK(std::filesystem::exists(fresh));  // it may be about to be locked
  std::filesystem::remove(fresh);
}

}  // namespace attnbench::workers_test
