// The worker's side of the stand-ins (stand_ins.hpp): it has the entries, and says what they are and what their
// functions give.
#pragma once

#include <span>

#include "harness/experiment/message.hpp"
#include "harness/plugins/plugins.hpp"

namespace attnbench {

// The plain data of entries: all that `list` shows and spec checking needs.
Message entries_message(std::span<const PluginEntry> entries);

// What a function of an entry gives: {"of": plural, "name", "what": the function, and its arguments}.
Message told(const Message& question);

}  // namespace attnbench
