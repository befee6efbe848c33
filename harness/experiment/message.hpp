// What the runner and its workers say to each other: CBOR objects behind their length, over a socket. Arrays travel as
// bytes, so that every double comes back as it was.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "harness/experiment/unit.hpp"

namespace attnbench {

using Message = nlohmann::json;

// Sends all of it. Throws std::system_error when the other side is gone.
void send(int socket, const Message& message);

// The messages that arrive at a socket, put together from their pieces.
class Inbox {
 public:
  // Takes in what has arrived; blocking: waits for something. False when the other side has closed.
  bool receive(int socket, bool blocking);
  // The next whole message. Throws nlohmann::json::exception when it is none: its sender is broken.
  std::optional<Message> next();

 private:
  std::vector<std::uint8_t> bytes_;
};

Message to_message(const Shape& shape);
Shape shape_of(const Message& message);

Message to_message(const Cell& cell);
Cell cell_of(const Message& message);

Message to_message(const UnitOutcome& outcome);
UnitOutcome outcome_of(const Message& message);

}  // namespace attnbench
