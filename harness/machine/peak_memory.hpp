// Peak memory of one call.
#pragma once

#include <functional>
#include <optional>

namespace attnbench {

// Under the address sanitizer, shadow memory and memory that is kept after it was freed count as the program's.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

// Resident bytes at the peak of the call minus those before it. The caller must have touched the memory that the call
// writes. The kernel counts in pages, and each core in batches of pages, so the result is exact to some hundred KB per
// core. nullopt if the kernel does not allow resetting the peak (/proc/self/clear_refs).
std::optional<double> peak_bytes(const std::function<void()>& call);

// Bytes that this process has allocated and not freed.
double allocated_bytes();

}  // namespace attnbench
