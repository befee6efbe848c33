// The ways in which a replicate ends.
#pragma once

#include <string>
#include <string_view>

namespace attnbench {

struct Ending {
  enum class Kind { done, skipped, failed, crashed, timed_out, out_of_memory, invalid };
  Kind kind = Kind::done;
  std::string reason;  // empty when done
};
std::string to_string(Ending::Kind kind);
Ending::Kind ending_kind(std::string_view name);  // throws std::invalid_argument for what to_string does not give
// Done, skipped or invalid: the same again whenever it is tried. The others (failed, crashed, timed out, out of memory)
// may be the machine's doing, and are replaced by what comes of another try.
bool settled(Ending::Kind kind);

}  // namespace attnbench
