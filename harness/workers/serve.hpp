// The worker's side: what the runner asks for is done one after the other, in this process.
#pragma once

#include <functional>
#include <optional>

namespace attnbench {

// A program that was started as `worker` by a run serves it to the end and returns its exit code; any other start gives
// nothing. To be called by main() of every program whose workers shall know its methods, its tests' as well.
std::optional<int> serve_if_worker(int argc, char** argv);
// Asked after every request: whether what was done has left something behind that only an interpreter knows of, so that
// the next request is better made to another worker.
void set_spoilt(std::function<bool()> ask);

}  // namespace attnbench
