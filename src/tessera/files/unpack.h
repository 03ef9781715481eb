#pragma once
/// Files packed by gzip or zstd, read as what they hold.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/files/file.h"

namespace tessera {

/// The path without .gz, .zst or .zstd at its end, in small or capital letters: what tells the
/// format of what it holds.
std::string_view unpacked_name(std::string_view path);

/// Whether a file that begins with these bytes is packed by gzip or zstd.
bool is_packed(std::string_view begin);

/// What packed bytes hold, piece by piece, in memory that does not depend on how much it is. Of
/// several packed pieces, one behind another, all.
class Unpacker {
 public:
  /// Fills what it is given with the bytes that follow, and says how many: fewer, there are no
  /// more.
  using Take = std::function<std::size_t(std::span<std::byte> into)>;
  /// `path` is for messages.
  Unpacker(std::string path, Take take);
  ~Unpacker();
  Unpacker(Unpacker&&) noexcept;

  /// Fills `out`; fewer bytes: it ends there. Errors: Fault::Data, with the path, and the line and
  /// the byte of what it holds: damage; an end before that of the packed bytes; others behind
  /// them; a dictionary or a window of more than 128 MiB.
  std::size_t read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A file from its beginning to its end, unpacked where it is packed.
class Contents {
 public:
  /// Errors: as of InputFile; Fault::Data: the name is that of a packed file, and it is none.
  explicit Contents(std::string path);
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  const std::string& path() const { return file_.path(); }
  bool packed() const { return unpacker_.has_value(); }
  /// On the disk: of the file, and those of which the contents are known by now.
  std::int64_t file_bytes() const { return file_.size(); }
  std::int64_t file_bytes_read() const { return taken_; }
  /// Of the byte that comes next, in what the file holds.
  std::int64_t offset() const { return offset_; }
  /// Fills `out`; fewer bytes: the file ends there. Errors: as of InputFile::read and Unpacker.
  std::size_t read(std::span<std::byte> out);
  /// Goes on with the byte at `offset`, which does not lie before the next one. A packed file is
  /// read up to there. Errors: as of read; Fault::Data: the file ends before.
  void skip_to(std::int64_t offset);

 private:
  std::size_t take(std::span<std::byte> out);

  InputFile file_;
  std::int64_t taken_ = 0, offset_ = 0;
  std::optional<Unpacker> unpacker_;  // none: it is not packed
};

/// Of a packed file as many bytes are held in memory at most, or so many times those of the file,
/// if these are more: what says that it holds more is mostly made to fill a memory.
inline constexpr std::int64_t kMostUnpacked = 1 << 30, kMostUnpackedTimes = 200;

/// All bytes of what a file holds. Errors: as of Contents; Fault::Data: it is packed and holds more
/// than `most` bytes and kMostUnpackedTimes as many as the file has.
std::string read_contents(const std::string& path, std::int64_t most = kMostUnpacked);

}  // namespace tessera
