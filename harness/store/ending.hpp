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
// Throws std::invalid_argument for any text that to_string does not return.
Ending::Kind ending_kind(std::string_view name);
// Done, skipped or invalid: another try would end the same way. The others (failed, crashed, timed out, out of memory)
// may be due to the machine, and a retry replaces them.
bool settled(Ending::Kind kind);

}  // namespace attnbench
