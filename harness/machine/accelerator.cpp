#include "harness/machine/accelerator.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "harness/machine/system_files.hpp"

namespace attnbench {

namespace fs = std::filesystem;

std::string accelerator_name(const std::string& device) {
  std::vector<fs::path> places;
  std::error_code none;
  for (const auto& place : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) places.push_back(place.path());
  std::sort(places.begin(), places.end());
  const size_t colon = device.find(':');
  const size_t number = colon == std::string::npos ? 0 : std::strtoul(device.c_str() + colon + 1, nullptr, 10);
  if (number >= places.size()) return device;
  const std::string model = line_after(places[number] / "information", "Model");
  return model.empty() ? device : model;
}

}  // namespace attnbench
