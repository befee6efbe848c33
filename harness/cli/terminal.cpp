#include "harness/cli/terminal.hpp"

#include <ostream>

#include "harness/errors/printable.hpp"

namespace attnbench {

namespace {

class Filter final : public std::streambuf {
 public:
  explicit Filter(std::streambuf& sink) : sink_(sink) {}

 private:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::string shown = printable({text, static_cast<size_t>(size)});
    const auto length = static_cast<std::streamsize>(shown.size());
    return sink_.sputn(shown.data(), length) == length ? size : 0;
  }
  int sync() override { return sink_.pubsync(); }

  std::streambuf& sink_;
};

}  // namespace

PrintableOutput::PrintableOutput(std::ostream& stream)
    : stream_(stream), own_(stream.rdbuf()), filter_(std::make_unique<Filter>(*own_)) {
  stream_.rdbuf(filter_.get());
}

PrintableOutput::~PrintableOutput() { stream_.rdbuf(own_); }

}  // namespace attnbench
