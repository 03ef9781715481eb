#pragma once
/// A file that a run adds to while it goes on, each record written at once.

#include <string>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_calls.h"

namespace tessera {

/// What a full disk does not take is kept in memory and written with the next record.
class AppendedFile {
 public:
  /// Opens it to append, and makes it where it is missing, or with `fresh` only then: false from
  /// is_open() where it exists. Errors: Fault::Resource.
  enum class Fresh { No, Yes };
  AppendedFile(std::string path, FileCalls calls, Fresh fresh = Fresh::No);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  bool is_open() const { return file_ >= 0; }

  /// Makes a record of `parts` and writes it. Its memory is used again: a step allocates nothing.
  template <typename... Parts>
  void write(const Parts&... parts) {
    (append_text(kept_, parts), ...);
    flush();  // who saves or ends the run asks whether all is written
  }
  /// Writes what was kept. Returns what keeps records from the file; empty where all are in it.
  std::string flush();
  /// The same; records are then on disk, and a power cut loses none of them.
  std::string sync();
  /// What to tell of records that cannot be written, once until all are; else empty.
  std::string late_notice();
  /// What became of the file where it is no longer the one that the path names; empty where it is.
  std::string removed() const;

 private:
  std::string path_;
  FileCalls calls_;
  int file_ = -1;
  std::string kept_;    // not written yet
  bool named_ = false;  // the file's name is on disk
  bool late_ = false;   // late_notice() found records that wait
};

}  // namespace tessera
