// Sessions of timing: the cells that take turns in the same blocks. harness/workers/timing_session.hpp runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/experiment/cell.hpp"

namespace attnbench {

// Equal for cells that differ only in method and length. They form one session: if the machine slows down, it does so
// for all lengths, and nobody mistakes that for an exponent of the length.
std::string session_key(const Cell& cell);

// Exact softmax on the cell's input, which the cell is paired with.
Cell partner_of(const Cell& cell);
// Partners for the lengths at which the cells of a session do not measure softmax.
std::vector<Cell> partners_of(std::span<const Cell* const> cells);

// Bytes that the workers of these cells and of their partners need at once: all of them hold their data, and one works.
double session_bytes(std::span<const Cell* const> cells);
// Bytes that a session may take: nine tenths of the free memory.
double memory_of_a_session();

// Splits the cells of one session, given by their numbers, into sessions whose workers fit into that many bytes. A
// length is never split. The longest lengths come first and stay together, because exponents are fitted over them.
std::vector<std::vector<size_t>> sessions_that_fit(std::span<const Cell* const> cells, double bytes);

}  // namespace attnbench
