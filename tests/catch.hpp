// One name for Catch2 2.13 (Debian 12) and 3.x.
#pragma once

// Checks are compiled faster without a handler of exceptions each: an exception ends its test, which fails all the same.
#define CATCH_CONFIG_FAST_COMPILE
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif
