// A folder of one's own under the temporary one, gone with its owner.
#pragma once

#include <filesystem>

namespace attnbench {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path path;

 private:
  int lock_;  // held while the owner lives, so that others can tell
};

// Removes the folders of owners that were killed.
void remove_abandoned_folders();

}  // namespace attnbench
