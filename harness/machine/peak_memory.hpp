// Peak memory of one call.
#pragma once

#include <functional>
#include <optional>

namespace attnbench {

// Bytes that the process has resident at the peak of the call beyond those before it; what the call writes must have
// been touched before. Counted by the kernel in pages, and by each core in batches of pages: exact to some hundred KB
// for each. Nothing where the kernel does not let the peak be set back (/proc/self/clear_refs).
std::optional<double> peak_bytes(const std::function<void()>& call);

}  // namespace attnbench
