// The properties that a plugin must share with the program that loads it, as text that every object file contains. The
// loader reads it from the plugin's file before any of its code runs: with another layout of classes even registering
// could crash.
#pragma once

#include <Eigen/Core>

#define ATTNBENCH_TEXT_OF(value) #value
#define ATTNBENCH_TEXT(value) ATTNBENCH_TEXT_OF(value)

#if defined(__clang__)
#define ATTNBENCH_COMPILER "clang " ATTNBENCH_TEXT(__clang_major__)
#else
#define ATTNBENCH_COMPILER "gcc " ATTNBENCH_TEXT(__GNUC__)
#endif

// gcc defines a macro; clang has a feature test.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTNBENCH_SANITIZER "address"
#endif
#endif
#if !defined(ATTNBENCH_SANITIZER) && defined(__SANITIZE_ADDRESS__)
#define ATTNBENCH_SANITIZER "address"
#endif
#if !defined(ATTNBENCH_SANITIZER)
#define ATTNBENCH_SANITIZER "none"
#endif

// Set by the CMake target attnbench::plugin: a hash of the headers that it was installed with.
#if !defined(ATTNBENCH_HEADERS)
#define ATTNBENCH_HEADERS "not from attnbench::plugin"
#endif

#define ATTNBENCH_ABI_PREFIX "attnbench-abi:"
#define ATTNBENCH_ABI \
  "headers=" ATTNBENCH_HEADERS ";compiler=" ATTNBENCH_COMPILER ";scalar types=float, double;Eigen="          \
  ATTNBENCH_TEXT(EIGEN_WORLD_VERSION) "." ATTNBENCH_TEXT(EIGEN_MAJOR_VERSION) "." ATTNBENCH_TEXT(            \
      EIGEN_MINOR_VERSION) ";Eigen's alignment=" ATTNBENCH_TEXT(EIGEN_MAX_ALIGN_BYTES) ";sanitizer=" ATTNBENCH_SANITIZER

extern "C" {
// Weak: the linker keeps one of the many copies; gcc 12 keeps none if it is const. Used: no code refers to it.
[[gnu::weak, gnu::used]] char attnbench_abi[] = ATTNBENCH_ABI_PREFIX ATTNBENCH_ABI;
}
