// The runner's side of plugins: entries that stand for those of a plugin, which it has not loaded.
#pragma once

namespace attnbench {

// Has a worker load this process's plugins and registers, for each of their entries, one of the same name, text and
// parameters, whose functions ask that worker. What makes and runs methods throws std::logic_error: it belongs in a
// worker. Throws Misuse when the plugins cannot be loaded, and std::runtime_error where one dies of it.
void register_stand_ins();

}  // namespace attnbench
