// NumPy's .npz (numpy.lib.format): a zip archive of .npy files, each consisting of
//   "\x93NUMPY", version (1.0, 2.0 or 3.0), header length (2 bytes in version 1, else 4), header, numbers.
// Archives are untrusted: we compare the sizes that an entry declares with its bytes before we allocate memory.
#include "harness/inputs/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <set>

#include "harness/errors/error.hpp"
#include "harness/inputs/npy_header.hpp"

namespace attnbench {

namespace {

constexpr std::uint64_t largest_entry = std::uint64_t{64} << 30;  // bytes, decompressed
constexpr std::uint64_t most_expansion = 1032;                    // of deflate: 258 bytes from 2 bits
constexpr size_t longest_header = size_t{1} << 16;                // NumPy's own reader stops at 10,000

struct Archive {
  std::string file;
  std::unique_ptr<zip_t, decltype(&zip_discard)> zip{nullptr, &zip_discard};
};

struct Entry {
  zip_uint64_t index = 0;
  std::uint64_t size = 0;  // decompressed, as declared
};

Archive open_archive(const std::filesystem::path& path) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw Misuse(
        fmt::format("{}: no readable zip archive: {}; expected what numpy.savez writes", path.string(), reason));
  }
  return {path.string(), {zip, &zip_discard}};
}

// torch.save writes a zip archive with an entry NAME/data.pkl.
bool of_pytorch(const Archive& archive) {
  const zip_int64_t count = zip_get_num_entries(archive.zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive.zip.get(), static_cast<zip_uint64_t>(i), 0);
    if (name && std::string_view(name).ends_with("data.pkl")) return true;
  }
  return false;
}

// The .npy files of the archive by tensor name. Other files in it are ignored.
std::map<std::string, Entry> npy_entries(const Archive& archive, std::uint64_t file_size) {
  std::map<std::string, Entry> entries;
  std::uint64_t compressed_total = 0;
  const auto count = static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive.zip.get(), 0)));
  for (zip_uint64_t i = 0; i < count; ++i) {
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    zip_stat_t stat;
    if (zip_stat_index(archive.zip.get(), i, 0, &stat) != 0 || (stat.valid & needed) != needed)
      throw Misuse(fmt::format("{}: entry {} of the archive cannot be read; write the file again", archive.file, i));
    std::string name = stat.name;
    if (!name.ends_with(".npy")) continue;
    name.resize(name.size() - 4);
    const auto refuse = [&](const std::string& found, const char* expected) {
      throw Misuse(fmt::format("{}: entry '{}' {}; expected {}", archive.file, shown(stat.name), found, expected));
    };
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      refuse(fmt::format("is compressed by method {}", stat.comp_method), "none or deflate, as numpy.savez writes");
    const std::uint64_t expansion = stat.comp_method == ZIP_CM_STORE ? 1 : most_expansion;
    if ((compressed_total += std::min(stat.comp_size, file_size + 1)) > file_size)
      refuse(fmt::format("and those before it have {} bytes in a file of {}", compressed_total, file_size),
             "entries that lie side by side");
    if (stat.size > largest_entry || stat.size > stat.comp_size * expansion)
      refuse(fmt::format("declares {} bytes out of {} stored", stat.size, stat.comp_size),
             "at most 64 GiB, and no more than its compression can expand to");
    if (!entries.emplace(std::move(name), Entry{i, stat.size}).second) refuse("is there twice", "each array once");
  }
  if (entries.empty() && of_pytorch(archive)) refuse_file_of_pytorch(archive.file);
  if (entries.empty())
    throw Misuse(
        fmt::format("{}: a zip archive without arrays; expected .npy files, as numpy.savez writes", archive.file));
  return entries;
}

// Reads one entry from beginning to end.
class EntryReader {
 public:
  EntryReader(const Archive& archive, const Entry& entry, const std::string& where)
      : where_(where), left_(entry.size), file_(zip_fopen_index(archive.zip.get(), entry.index, 0), &zip_fclose) {
    if (!file_)
      throw Misuse(fmt::format("{} cannot be opened: {}; write the file again without encryption", where,
                               zip_strerror(archive.zip.get())));
  }

  std::uint64_t left() const { return left_; }
  void read(std::span<unsigned char> bytes) {
    size_t done = 0;
    while (bytes.size() <= left_ && done < bytes.size()) {
      const zip_int64_t got = zip_fread(file_.get(), bytes.data() + done, bytes.size() - done);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    if (done < bytes.size()) throw Misuse(fmt::format("{} is cut short or damaged; write the file again", where_));
    left_ -= bytes.size();
  }
  // Reaching the end also checks the checksum.
  void expect_end() {
    unsigned char beyond = 0;
    if (left_ != 0 || zip_fread(file_.get(), &beyond, 1) != 0)
      throw Misuse(fmt::format("{} is damaged (its length or checksum is wrong); write the file again", where_));
  }

 private:
  const std::string& where_;
  std::uint64_t left_;
  std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file_;
};

NpyHeader read_npy_header(EntryReader& reader, const std::string& where) {
  unsigned char start[8];
  reader.read(start);
  const std::string_view magic(reinterpret_cast<const char*>(start), 6);
  const int major = start[6], minor = start[7];
  if (magic != "\x93NUMPY" || major < 1 || major > 3 || minor != 0)
    throw Misuse(fmt::format("{} is not an npy array of version 1.0, 2.0 or 3.0; write it with numpy.savez", where));
  unsigned char bytes[4] = {};
  reader.read(std::span(bytes).first(major == 1 ? 2 : 4));
  size_t length = 0;
  for (size_t b = 4; b-- > 0;) length = (length << 8) | bytes[b];
  if (length > longest_header || length > reader.left())
    throw Misuse(fmt::format("{} has an npy header of {} bytes; expected at most {}", where, length,
                             std::min<std::uint64_t>(longest_header, reader.left())));
  std::string text(length, '\0');
  reader.read({reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return parse_npy_header(text, where);
}

// Converts values from column-major order (the first axis runs fastest) to row-major order.
std::vector<double> row_major(const std::vector<double>& column_major, const std::vector<Index>& shape) {
  std::vector<double> values;
  values.reserve(column_major.size());
  std::vector<Index> place(shape.size(), 0), stride(shape.size(), 1);
  for (size_t axis = 1; axis < shape.size(); ++axis) stride[axis] = stride[axis - 1] * shape[axis - 1];
  Index source = 0;
  while (values.size() < column_major.size()) {
    values.push_back(column_major[static_cast<size_t>(source)]);
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += stride[axis];
      if (++place[axis] < shape[axis]) break;
      source -= stride[axis] * shape[axis];
      place[axis] = 0;
    }
  }
  return values;
}

Tensor read_npy(const Archive& archive, const Entry& entry, const std::string& where) {
  EntryReader reader(archive, entry, where);
  const NpyHeader header = read_npy_header(reader, where);
  const auto count = number_count(header.shape);
  Index bytes = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<Index>(bytes_of(header.format)), &bytes) ||
      static_cast<std::uint64_t>(bytes) != reader.left())
    throw Misuse(fmt::format("{} has the shape {} and {} bytes of numbers; expected the product of the sizes times {}",
                             where, shown(header.shape), reader.left(), bytes_of(header.format)));
  Tensor tensor{header.shape, decoded(*count, header.format, header.order, where,
                                      [&](std::span<unsigned char> chunk) { reader.read(chunk); })};
  reader.expect_end();
  if (header.fortran_order && header.shape.size() > 1) tensor.values = row_major(tensor.values, header.shape);
  return tensor;
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& path, const std::vector<std::string>& only,
                      const std::vector<std::string>& if_there, std::vector<std::string>* left_out) {
  const std::uint64_t file_size = size_of_regular_file(path);
  const Archive archive = open_archive(path);
  const auto entries = npy_entries(archive, file_size);
  std::vector<std::string> present;
  for (const auto& [name, entry] : entries) present.push_back(name);
  NamedTensors tensors;
  for (const auto& name : names_to_read(path, only, if_there, present, left_out))
    tensors[name] = read_npy(archive, entries.at(name), fmt::format("{}: array '{}'", path.string(), shown(name)));
  return tensors;
}

}  // namespace attnbench
