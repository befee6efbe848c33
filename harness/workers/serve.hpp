// The worker's side: runs the runner's requests one after the other in this process.
#pragma once

#include <functional>
#include <optional>

namespace attnbench {

// If a run started this program as `worker`, serves that run to its end and returns the exit code; otherwise returns
// nullopt. Every program whose workers must know its methods calls this in main(), including the tests.
std::optional<int> serve_if_worker(int argc, char** argv);
// Sets a check that runs after every request. It tells whether the request left something behind that only an
// interpreter can see, so that the next request should go to another worker.
void set_spoilt(std::function<bool()> ask);

}  // namespace attnbench
