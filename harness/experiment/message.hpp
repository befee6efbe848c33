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
  // Reads what has arrived, a megabyte at most; with `blocking`, waits until something arrives. Returns false once the
  // other side has closed.
  bool receive(int socket, bool blocking);
  // The next complete message, if there is one. Throws nlohmann::json::exception if it is malformed: its sender is
  // broken. A message nested deeper or with more values than any that this program sends is malformed as well.
  std::optional<Message> next();
  std::uint64_t received() const { return received_; }  // bytes, in all
  bool empty() const { return begin_ == bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  size_t begin_ = 0;  // those before it have been read
  std::uint64_t received_ = 0;
};

Message to_message(const Shape& shape);
Shape shape_of(const Message& message);

Message to_message(const Cell& cell);
// Parses the specs again, because a worker has its own registry: Params must stay cheap to make.
Cell cell_of(const Message& message);

Message to_message(const UnitOutcome& outcome);
UnitOutcome outcome_of(const Message& message);

}  // namespace attnbench
