// Sessions of timing: which cells have their turns in the same blocks. harness/workers/timing_session.hpp runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/experiment/cell.hpp"

namespace attnbench {

// The same for cells that differ in their methods and lengths alone. They form one session, so that a machine that
// becomes slower meanwhile does so for all lengths, and is not read as an exponent of the length.
std::string session_key(const Cell& cell);

// Exact softmax on the cell's input: what the cell is paired with.
Cell partner_of(const Cell& cell);
// Of the cells of one session: partners of the lengths at which they measure no softmax.
std::vector<Cell> partners_of(std::span<const Cell* const> cells);

// Bytes that the workers of these cells and of their partners have at once: all of them wait with what they hold, and
// one works.
double session_bytes(std::span<const Cell* const> cells);
// Bytes that a session may take: nine tenths of what is free.
double memory_of_a_session();

// The cells of one session, by their numbers, cut into sessions whose workers fit into so many bytes. A length is
// never cut. The longest ones come first and stay together, because exponents are fitted over them.
std::vector<std::vector<size_t>> sessions_that_fit(std::span<const Cell* const> cells, double bytes);

}  // namespace attnbench
