#include "harness/experiment/message.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace attnbench {

namespace {

constexpr size_t deepest = 32, most_values = 200'000;  // of one message
constexpr size_t read_at_once = 1 << 20;               // bytes

// Reads a message without keeping it. Foreign code in a worker may write to the socket: a megabyte of brackets would
// overflow the stack of the runner, and a value of one byte takes 16 bytes there.
class Bounds final : public nlohmann::json_sax<Message> {
 public:
  bool null() override { return one(); }
  bool boolean(bool) override { return one(); }
  bool number_integer(number_integer_t) override { return one(); }
  bool number_unsigned(number_unsigned_t) override { return one(); }
  bool number_float(number_float_t, const string_t&) override { return one(); }
  bool string(string_t&) override { return one(); }
  bool binary(binary_t&) override { return one(); }
  bool key(string_t&) override { return one(); }
  bool start_object(std::size_t) override { return ++depth_ <= deepest && one(); }
  bool start_array(std::size_t) override { return ++depth_ <= deepest && one(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool one() { return ++values_ <= most_values; }
  size_t depth_ = 0, values_ = 0;
};

}  // namespace

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
  for (size_t read = 0;;) {
    const ssize_t count = recv(socket, piece.data(), piece.size(), blocking ? 0 : MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) return false;
    if (begin_ > 0)
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin_, 0)));
    bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + count);
    received_ += static_cast<std::uint64_t>(count);
    read += static_cast<size_t>(count);
    if (blocking || read >= read_at_once) return true;
  }
}

std::optional<Message> Inbox::next() {
  std::uint64_t length = 0;
  const size_t unread = bytes_.size() - begin_;
  if (unread < sizeof(length)) return std::nullopt;
  std::memcpy(&length, bytes_.data() + begin_, sizeof(length));
  if (unread - sizeof(length) < length) return std::nullopt;
  const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + sizeof(length)),
             last = first + static_cast<std::ptrdiff_t>(length);
  Bounds bounds;
  if (!Message::sax_parse(first, last, &bounds, Message::input_format_t::cbor))
    throw Message::other_error::create(500, "a malformed message", nullptr);
  Message message = Message::from_cbor(first, last);
  begin_ += sizeof(length) + length;
  if (empty()) {
    begin_ = 0;
    bytes_.clear();
    bytes_.shrink_to_fit();  // one large message must not keep its memory for the rest of the run
  }
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
  const int kind = message.at("ending");
  if (kind < 0 || kind > static_cast<int>(Ending::Kind::invalid))
    throw Message::other_error::create(500, "an unknown ending", nullptr);
  UnitOutcome outcome{.ending = {static_cast<Ending::Kind>(kind), message.at("reason")}, .notes = message.at("notes")};
  for (const auto& m : message.at("measurements")) {
    const auto& bytes = m.at(3).get_binary();
    std::vector<double> values(bytes.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    outcome.measurements.push_back({m.at(0), m.at(1), m.at(2), std::move(values)});
  }
  return outcome;
}

}  // namespace attnbench
