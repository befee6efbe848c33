#include "harness/experiment/message.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

namespace attnbench {

void send(int socket, const Message& message) {
  std::vector<std::uint8_t> bytes(sizeof(std::uint64_t));
  nlohmann::json::to_cbor(message, bytes);
  const std::uint64_t length = bytes.size() - sizeof(length);
  std::memcpy(bytes.data(), &length, sizeof(length));
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "a message was not sent");
    if (count > 0) sent += static_cast<size_t>(count);
  }
}

bool Inbox::receive(int socket, bool blocking) {
  std::array<std::uint8_t, 1 << 16> piece;
  for (;;) {
    const ssize_t count = recv(socket, piece.data(), piece.size(), blocking ? 0 : MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) return false;
    bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + count);
    if (blocking) return true;
  }
}

std::optional<Message> Inbox::next() {
  std::uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) return std::nullopt;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (bytes_.size() - sizeof(length) < length) return std::nullopt;
  const auto first = bytes_.begin() + sizeof(length), last = first + static_cast<std::ptrdiff_t>(length);
  Message message = nlohmann::json::from_cbor(first, last);
  bytes_.erase(bytes_.begin(), last);
  if (bytes_.empty()) bytes_.shrink_to_fit();  // one large message must not keep its memory for the rest of the run
  return message;
}

Message to_message(const Shape& shape) {
  const auto& [nq, nk, d, dv, mask, precision] = shape;
  return {nq, nk, d, dv, mask.causal, mask.offset, mask.keys, static_cast<int>(precision)};
}

Shape shape_of(const Message& message) {
  return {.nq = message.at(0),
          .nk = message.at(1),
          .d = message.at(2),
          .dv = message.at(3),
          .mask = {.causal = message.at(4), .offset = message.at(5), .keys = message.at(6)},
          .precision = static_cast<Precision>(message.at(7).get<int>())};
}

Message to_message(const Cell& cell) {
  const auto& [shape, heads, logit_scale, rounding] = cell.problem;
  return {{"experiment", cell.experiment.spec()},
          {"method", cell.method.spec()},
          {"input", cell.input.spec()},
          {"shape", to_message(shape)},
          {"heads", heads},
          {"logit_scale", logit_scale},
          {"rounding", static_cast<int>(rounding)},
          {"seed", cell.seed},
          {"threads", cell.threads}};
}

Cell cell_of(const Message& message) {
  return {.experiment = Params("experiments", message.at("experiment").get<std::string>()),
          .method = Params("methods", message.at("method").get<std::string>()),
          .input = Params("inputs", message.at("input").get<std::string>()),
          .problem = {.shape = shape_of(message.at("shape")),
                      .heads = message.at("heads"),
                      .logit_scale = message.at("logit_scale"),
                      .rounding = static_cast<Rounding>(message.at("rounding").get<int>())},
          .seed = message.at("seed"),
          .threads = message.at("threads")};
}

Message to_message(const UnitOutcome& outcome) {
  auto measurements = Message::array();
  for (const auto& [metric, unit, shape, values] : outcome.measurements) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(double));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    measurements.push_back({metric, unit, shape, Message::binary(std::move(bytes))});
  }
  return {{"ending", static_cast<int>(outcome.ending.kind)},
          {"reason", outcome.ending.reason},
          {"measurements", std::move(measurements)},
          {"notes", outcome.notes}};
}

UnitOutcome outcome_of(const Message& message) {
  UnitOutcome outcome{.ending = {static_cast<Ending::Kind>(message.at("ending").get<int>()), message.at("reason")},
                      .notes = message.at("notes")};
  for (const auto& m : message.at("measurements")) {
    const auto& bytes = m.at(3).get_binary();
    std::vector<double> values(bytes.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    outcome.measurements.push_back({m.at(0), m.at(1), m.at(2), std::move(values)});
  }
  return outcome;
}

}  // namespace attnbench
