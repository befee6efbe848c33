#include "harness/cli/printable_output.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>

#include "harness/cli/terminal.hpp"
#include "harness/errors/printable.hpp"

namespace attnbench {

namespace {

static_assert(bold_begins.size() == bold_ends.size());

// Commands print in bold, and bold harms no terminal.
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
    std::string shown;
    for (std::string_view rest(text, static_cast<size_t>(size)); !rest.empty();) {
      const size_t mark = std::min(rest.find(bold_begins), rest.find(bold_ends));
      shown += printable(rest.substr(0, mark));
      if (mark == rest.npos) break;
      shown += rest.substr(mark, bold_begins.size());
      rest.remove_prefix(mark + bold_begins.size());
    }
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
