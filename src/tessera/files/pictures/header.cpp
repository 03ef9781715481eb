#include <algorithm>

#include "tessera/files/file.h"
#include "tessera/files/pictures/decoders.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // a file is read whole

/// Some bytes of a file; fewer behind its end.
std::string bytes_at(const InputFile& file, std::int64_t at, std::int64_t count) {
  std::string out(static_cast<std::size_t>(std::clamp<std::int64_t>(file.size() - at, 0, count)),
                  '\0');
  file.read(at, std::as_writable_bytes(std::span(out)));
  return out;
}

/// Bytes of a file, read in pieces: damage may put millions of steps between two markers.
class Window {
 public:
  explicit Window(const InputFile& file) : file_(file) {}
  /// `count` bytes, fewer behind the end of the file; until the next call.
  std::string_view at(std::int64_t at, std::int64_t count) {
    constexpr std::int64_t kBytes = 1 << 16;
    if (at < first_ || at + count > first_ + std::ssize(bytes_)) {
      bytes_ = bytes_at(file_, at, kBytes);
      first_ = at;
    }
    const std::string_view all = bytes_;
    return all.substr(static_cast<std::size_t>(at - first_), static_cast<std::size_t>(count));
  }

 private:
  const InputFile& file_;
  std::int64_t first_ = 0;
  std::string bytes_;
};

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (const char byte : bytes) out = out << 8 | static_cast<unsigned char>(byte);
  return out;
}

void check_png(const InputFile& file) {
  const std::string begin = bytes_at(file, 8, 16);  // length and name of a chunk, width, height
  if (begin.size() < 16 || begin.substr(4, 4) != "IHDR")
    refuse_damage("PNG", "it has no header", file.path());
  const std::string_view sizes = std::string_view(begin).substr(8);
  refuse_size(big_endian(sizes.substr(4)), big_endian(sizes.substr(0, 4)), file.path());
}

/// Walks over markers up to the frame's: FF, a letter, and the length of what follows.
void check_jpeg(const InputFile& file) {
  Window window(file);
  for (std::int64_t at = 2; at < file.size();) {
    const std::string_view begin = window.at(at, 9);
    if (begin.size() < 9) break;
    const auto letter = static_cast<unsigned char>(begin[1]);
    if (begin[0] != '\xFF' || letter == 0xFF) {  // what stands between is passed over
      ++at;
      continue;
    }
    const bool table = letter == 0xC4 || letter == 0xC8 || letter == 0xCC;
    if (letter >= 0xC0 && letter <= 0xCF && !table) {
      const std::string_view sizes = begin.substr(5);
      return refuse_size(big_endian(sizes.substr(0, 2)), big_endian(sizes.substr(2)), file.path());
    }
    if (letter == 0xD9 || letter == 0xDA) break;  // the end, or a scan
    const bool alone = letter <= 0x01 || (letter >= 0xD0 && letter <= 0xD8);
    at += 2 + (alone ? 0 : static_cast<std::int64_t>(big_endian(begin.substr(2, 2))));
  }
  refuse_damage("JPEG", "it has no header", file.path());
}

}  // namespace

void check_picture(const std::string& path) {
  const InputFile file(path);
  if (file.size() > kMostBytes)
    fail(Fault::Data, "'", path, "' has ", file.size(), " bytes; a picture has at most ",
         kMostBytes, ": make it smaller, or take it away");
  const std::string begin = bytes_at(file, 0, 16);
  if (begin.starts_with(kPngBegin)) return check_png(file);
  if (begin.starts_with(kJpegBegin)) return check_jpeg(file);
  refuse_format(begin, path);
}

}  // namespace tessera
