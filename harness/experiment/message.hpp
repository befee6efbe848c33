// Messages between the runner and its workers: CBOR objects over a socket, each preceded by its length. Arrays travel
// as raw bytes, so every double arrives unchanged.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "harness/experiment/unit.hpp"

namespace attnbench {

using Message = nlohmann::json;

// Sends the whole message. Throws std::system_error when the other side is gone.
void send(int socket, const Message& message);

// Reassembles the messages that arrive at a socket in pieces.
class Inbox {
 public:
  // Reads what has arrived; with `blocking`, waits until something arrives. Returns false once the other side has
  // closed.
  bool receive(int socket, bool blocking);
  // The next complete message, if there is one. Throws nlohmann::json::exception if it is malformed: its sender is
  // broken.
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
