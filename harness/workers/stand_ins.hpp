// The runner's side of plugins: stand-ins for the entries of plugins, which the runner itself does not load.
#pragma once

namespace attnbench {

// Makes a worker load this process's plugins and registers a stand-in for each of their entries, with the same name,
// text and parameters. The functions of a stand-in ask that worker. Functions that make or run methods throw
// std::logic_error: only workers may call them. Throws Misuse when the plugins cannot be loaded, and std::runtime_error
// when a plugin kills the worker.
void register_stand_ins();

}  // namespace attnbench
