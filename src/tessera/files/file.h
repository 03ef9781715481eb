#pragma once
/// The room `files`: bytes on disk: files and folders that survive kills, safetensors, JSON lines,
/// tables.
/// For: formats that know no model and no tokenizer, read as strictly as bytes of a stranger must
/// be.
/// Not for: checkpoints (checkpoint), Megatron-LM's token files (token_files).
/// Rejected: mapped files. Their pages count as memory of the process, and a file that another
/// process cuts short ends it by a signal; a read says what is wrong.
///
/// Files: read with clear errors, written so that a reader sees the old bytes or the new ones and
/// nothing between.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

/// A regular file open for reading at any offset. Several threads may read at once.
///
/// Errors: missing (suggests near names of the folder), a folder, a pipe or device, unreadable: all
/// with `fault`, but for Fault::Resource where the system refuses (permissions, too many files).
class InputFile {
 public:
  explicit InputFile(std::string path, Fault fault = Fault::Data);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// Size in bytes when it was opened.
  std::int64_t size() const { return size_; }
  /// Fills `out` with the bytes from `offset`. Errors: the file ends before, or cannot be read.
  void read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  Fault fault_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// What lies in a folder, by name. Where `error` is set afterwards, some of it may be missing.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                              std::error_code& error);

/// All bytes of a file; an empty file gives "".
std::string read_file(const std::string& path, Fault fault = Fault::Data);

/// A file that appears under its name only when it is complete: bytes go to a temporary file of the
/// same folder, and commit() flushes it to disk, renames it over `path` and flushes the folder.
/// Without commit() nothing stays; what a killed process left is taken over by the next one that
/// writes `path`: as long as a process has a temporary file, it holds the file's lock. Of several
/// files that belong together, flush() all first: a full disk is noticed there.
///
/// Errors: Fault::Resource, naming the path and what the system said; the old file is untouched.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  /// Flushes the bytes to disk; nothing more is written then.
  void flush();
  void commit();
  /// The path of the temporary file; empty after commit().
  const std::string& temporary() const { return temporary_; }

  /// Commits two files of one folder that belong together: no kill of this process comes between.
  static void commit_both(AtomicFile& first, AtomicFile& second);

 private:
  void rename_into_place();
  void release();

  std::string path_, temporary_;
  int descriptor_ = -1;
  bool flushed_ = false;
};

/// Removes the temporary files that killed processes left of `path`. Nobody may be writing it.
void remove_unfinished(const std::string& path);

void write_atomically(const std::string& path, std::string_view bytes);

/// Makes the renames and new names in a folder survive a power cut.
void sync_folder(const std::string& folder);

/// Whether `path`, which need not be there, is `folder` or lies in it; links are followed.
bool lies_within(const std::string& path, const std::string& folder);

/// "; near names in 'data': input.txt, output.txt", or what else explains that `path` does not
/// exist.
std::string near_files(const std::string& path);

}  // namespace tessera
