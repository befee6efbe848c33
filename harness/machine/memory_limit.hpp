// Refuses everything that would not fit into memory, before anything is allocated.
#pragma once

#include <string>

namespace attnbench {

// "1.5 GB", "2.1 TB": three digits, decimal units.
std::string memory_size(double bytes);

// Throws Misuse "<what> would take X of memory and Y is available; <remedy>" when bytes exceed what is available.
void refuse_beyond_memory(double bytes, const std::string& what, const std::string& remedy);

}  // namespace attnbench
