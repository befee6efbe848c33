// The worker's side of the stand-ins (stand_ins.hpp): has the entries, describes them, and calls their functions.
#pragma once

#include <span>

#include "harness/experiment/message.hpp"
#include "harness/plugins/plugins.hpp"

namespace attnbench {

// The plain data of entries: everything that `list` and the checks of specs need.
Message entries_message(std::span<const PluginEntry> entries);

// Calls a function of an entry and returns its result. The question is {"of": plural, "name", "what": the function, and
// its arguments}.
Message told(const Message& question);

}  // namespace attnbench
