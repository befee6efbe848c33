// A private folder inside the temporary one. It is removed with its owner.
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
  int lock_;  // held while the owner lives, so that other processes see it is in use
};

// Removes the folders of owners that were killed.
void remove_abandoned_folders();

}  // namespace attnbench
