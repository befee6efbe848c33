// A child process that runs this program as a worker: starts, watches and ends it. Linux.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "harness/plugins/plugins.hpp"

namespace attnbench {

// Resident bytes of a process and its descendants; 0 if the process is gone.
double resident_bytes(pid_t process);
// Whether the process has live children.
bool has_children(pid_t process);
// Whether the kernel is taking it down, or has: a process that still closes its files does not go on.
bool is_ending(pid_t process);

// Runs the command of a worker that loads those plugins (harness/plugins) in its own process group, by posix_spawn: a
// bare fork without exec hangs after OpenMP has been used. Standard input is empty, output and errors go to `output`,
// TMPDIR is `scratch`. The process inherits nothing else except the other end of a socket, as descriptor 3. Ending it
// kills its whole group, and so everything that it started.
class Process {
 public:
  Process(const std::filesystem::path& output, const std::filesystem::path& scratch, const PluginFiles& plugins);
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  int socket() const { return socket_; }
  int handle() const { return handle_; }  // a descriptor that is readable once the process has ended
  // Kills the group if it is alive and returns how its leader ended: "SIGSEGV", "exited with code 0".
  std::string end();

 private:
  pid_t id_ = -1;
  int socket_ = -1, handle_ = -1;
  std::string ended_;
};

}  // namespace attnbench
