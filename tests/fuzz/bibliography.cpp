// BibTeX files beside plugins.
#include "harness/core/bibliography.hpp"

#include "harness/errors/error.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound((size_t{1} << 20) + 64 * size);
  const std::string_view text = text_of(data, size);
  try {
    for (const BibliographyEntry& entry : parse_bibliography(text, "mine.bib")) {
      require(!entry.key.empty(), "an entry has a key");
      require(text.find(entry.text) != text.npos, "an entry's text is a part of the file");
    }
  } catch (const Misuse&) {
  }
  return 0;
}
