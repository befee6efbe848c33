// A process of this program as a worker: started, watched and ended. Linux.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace attnbench {

// Bytes that a process and its children have resident: 0 for one that is gone.
double resident_bytes(pid_t process);
// Whether it has children that live.
bool has_children(pid_t process);
// Whether the kernel is taking it down, or has: a process that still closes its files does not go on.
bool is_ending(pid_t process);

// The worker's command (harness/plugins), started anew by exec (never a bare fork, which hangs behind OpenMP), in a
// process group of its own. Its input is empty, its output and its errors go to `output`, TMPDIR is `scratch`; nothing
// else is inherited but the other end of a socket, as descriptor 3. Its end is the group's end: whatever it started
// dies with it.
class Process {
 public:
  Process(const std::filesystem::path& output, const std::filesystem::path& scratch);
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  int socket() const { return socket_; }
  int handle() const { return handle_; }  // a descriptor that is readable once it has ended
  // Kills the group where it lives and says how its leader ended: "SIGSEGV", "exited with code 0".
  std::string end();

 private:
  pid_t id_ = -1;
  int socket_ = -1, handle_ = -1;
  std::string ended_;
};

}  // namespace attnbench
