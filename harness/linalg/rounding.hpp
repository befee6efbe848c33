// Emulates half precision: numbers are rounded to it and kept in the scalar type, so that overflow, underflow and lost
// keys show without an accelerator.
#pragma once

#include <string>

#include "harness/linalg/context.hpp"

namespace attnbench {

// Rounds every entry of X to that format: f16 has 11 significant bits and overflows beyond 65504, bf16 has 8 and
// float's range. none leaves X unchanged.
template <class T>
void round_to(Rounding rounding, Out<T> X);

// "none", "f16", "bf16". Any other text throws Misuse.
Rounding parse_rounding(const std::string& text);
std::string to_string(Rounding rounding);

}  // namespace attnbench
