#include "harness/machine/scratch_folder.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace attnbench {

namespace fs = std::filesystem;

namespace {

constexpr const char* prefix = "attnbench-scratch-";

// Locks the folder and returns the descriptor that holds the lock; -1 if another process holds it or the folder cannot
// be opened.
int locked(const fs::path& folder) {
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  close(lock);
  return -1;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / prefix).string() + "XXXXXX";
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder could be made: " + name);
  path = name;
  lock_ = locked(path);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (lock_ >= 0) close(lock_);
}

void remove_abandoned_folders() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(), ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    // A folder that is being created right now has no lock yet.
    if (fs::file_time_type::clock::now() - entry.last_write_time(ignored) < std::chrono::minutes(1)) continue;
    if (const int lock = locked(entry.path()); lock >= 0) {
      fs::remove_all(entry.path(), ignored);
      close(lock);
    }
  }
}

}  // namespace attnbench
