#include "harness/store/merge.hpp"

#include <SQLiteCpp/Statement.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "harness/store/database.hpp"
#include "harness/store/unite.hpp"
#include "harness/store/verify.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;

// A unique path beside another; the destructor removes every file there.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& beside) : path_(beside.string() + suffix()) { remove(); }
  ~TemporaryFile() { remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  // Two machines that share a folder may have processes with the same id.
  static std::string suffix() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return fmt::format(".{}-{}.tmp", host.data(), getpid());
  }
  void remove() const {
    std::error_code absent;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(path_.string() + suffix, absent);
  }
  fs::path path_;
};

// Attaches a file that require_whole has read, under the name `part`.
class Attached {
 public:
  Attached(SQLite::Database& database, const fs::path& path) : database_(database) {
    SQLite::Statement attach(database_, "ATTACH ? AS part");
    attach.bind(1, name_for_reading(path));
    attach.exec();
  }
  ~Attached() { database_.tryExec("DETACH part"); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  SQLite::Database& database_;
};

void reach_the_disk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

// Gives the file its final name. Returns false if another file has that name by now. Some file systems have no links.
bool publish(const fs::path& file, const fs::path& out) {
  reach_the_disk(file);
  if (link(file.c_str(), out.c_str()) == 0 || (errno != EEXIST && rename(file.c_str(), out.c_str()) == 0)) {
    reach_the_disk(out.parent_path());
    return true;
  }
  if (errno == EEXIST) return false;
  throw Misuse(fmt::format("cannot write '{}' ({}); expected a folder that can be written; give another path",
                           out.string(), std::strerror(errno)));
}

bool is_the_same(const fs::path& a, const fs::path& b) {
  std::error_code absent;
  return fs::equivalent(a, b, absent);
}

}  // namespace

Merged merge(const fs::path& given, const std::vector<fs::path>& files) {
  if (given.empty()) throw Misuse("merge: the name of the file to write is empty; expected one such as all.db");
  const fs::path out = fs::absolute(fs::weakly_canonical(given));
  Merged merged;
  // First unite all other files in a temporary one that nobody sees. Writing to `out` is then a single transaction, for
  // any number of files.
  const TemporaryFile fresh(out);
  if (fs::is_regular_file(out) && !fs::is_empty(out)) require_whole(out);
  return explained(out, [&] {
    {
      SQLite::Database database = open_for_writing(fresh.path());
      database.exec("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
      for (const fs::path& path : files) {
        if (is_the_same(path, out)) continue;
        require_whole(path);
        const Attached part(database, path);
        unite(database, fmt::format("'{}' and the files before it", path.string()), merged);
      }
      count_all(database, merged);
      merged.added = merged.replicates;
    }
    if (!fs::exists(out) && publish(fresh.path(), out)) return merged;
    SQLite::Database database = open_for_writing(out);
    const Attached part(database, fresh.path());
    unite(database, fmt::format("'{}' and the other files", given.string()), merged);
    count_all(database, merged);
    return merged;
  });
}

}  // namespace attnbench
