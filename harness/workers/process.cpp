#include "harness/workers/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <system_error>
#include <vector>

#include "harness/linalg/lapack.hpp"

namespace attnbench {

namespace fs = std::filesystem;

namespace {

void require(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

void for_children(pid_t process, const std::function<void(pid_t)>& visit) {
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) visit(child);
  }
}

// The environment of this process as "NAME=value", with TMPDIR and the plugins replaced.
std::vector<std::string> environment_with(const fs::path& scratch, const PluginFiles& plugins) {
  std::vector<std::string> variables = missing_lapack_variables();  // Python lacks them, the program has them
  variables.insert(variables.end(), {"TMPDIR=" + scratch.string(), worker_variable(plugins)});
  const auto replaced = [own = variables](std::string_view variable) {
    return std::any_of(own.begin(), own.end(), [&](const std::string& mine) {
      return variable.starts_with(std::string_view(mine).substr(0, mine.find('=') + 1));
    });
  };
  for (char** variable = environ; *variable; ++variable)
    if (!replaced(*variable)) variables.emplace_back(*variable);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(int socket, const fs::path& output, const fs::path& scratch, const PluginFiles& plugins) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  require(posix_spawn_file_actions_init(&files), "no process can be described");
  const std::unique_ptr<posix_spawn_file_actions_t, int (*)(posix_spawn_file_actions_t*)> files_owner(
      &files, posix_spawn_file_actions_destroy);
  require(posix_spawnattr_init(&attributes), "no process can be described");
  const std::unique_ptr<posix_spawnattr_t, int (*)(posix_spawnattr_t*)> attributes_owner(&attributes,
                                                                                         posix_spawnattr_destroy);
  posix_spawn_file_actions_adddup2(&files, socket, 3);  // first, because the socket may be 0, 1 or 2 itself
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, 4);
  sigset_t none, changed;
  sigemptyset(&none);
  sigemptyset(&changed);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) sigaddset(&changed, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &changed);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = worker_command(plugins), variables = environment_with(scratch, plugins);
  const std::string program = words[0];
  pid_t id = -1;
  require(posix_spawn(&id, program.c_str(), &files, &attributes, pointers(words).data(), pointers(variables).data()),
          "no worker could be started");
  return id;
}

}  // namespace

double resident_bytes(pid_t process) {
  std::ifstream statm(fmt::format("/proc/{}/statm", process));
  double all = 0, resident = 0;
  if (!(statm >> all >> resident)) return 0;
  double bytes = resident * static_cast<double>(sysconf(_SC_PAGESIZE));
  for_children(process, [&](pid_t child) { bytes += resident_bytes(child); });
  return bytes;
}

bool has_children(pid_t process) {
  bool any = false;
  for_children(process, [&](pid_t) { any = true; });
  return any;
}

bool is_ending(pid_t process) {
  constexpr unsigned exiting = 4;  // PF_EXITING of the kernel's include/linux/sched.h; proc(5)
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  // The name, in brackets, may hold anything.
  std::istringstream behind_name(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string word;
  for (int field = 3; field < 9; ++field) behind_name >> word;
  unsigned flags = 0;
  return !(behind_name >> flags) || (flags & exiting) != 0;
}

Process::Process(const fs::path& output, const fs::path& scratch, const PluginFiles& plugins) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) require(errno, "no socket for a worker");
  socket_ = ends[0];
  try {
    id_ = start(ends[1], output, scratch, plugins);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
  handle_ = static_cast<int>(syscall(SYS_pidfd_open, id_, 0));  // glibc 2.36 declares its wrapper for C only
}

Process::~Process() {
  end();
  close(socket_);
  if (handle_ >= 0) close(handle_);
}

std::string Process::end() {
  if (id_ < 0) return ended_;
  kill(-id_, SIGKILL);  // safe if the leader has ended already: it is not reaped yet, so its id is not reused
  int status = 0;
  while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    ended_ = name ? fmt::format("SIG{}", name) : fmt::format("signal {}", WTERMSIG(status));
  } else {
    ended_ = fmt::format("exited with code {}", WEXITSTATUS(status));
  }
  return ended_;
}

}  // namespace attnbench
