// The instructions that this library was compiled for. An installation may hold several libraries, of which the loader
// takes the one that fits the processor (scripts/wheel.sh): times are of one of them, and rows of times name it.
#pragma once

namespace attnbench {

// As compilers name levels: x86-64-v3 (AVX2 and FMA), x86-64-v4 (AVX-512), with VNNI where products of integers use it.
const char* instruction_level();

}  // namespace attnbench
