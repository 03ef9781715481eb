#include "tessera/files/unpack.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::string_view kGzip{"\x1F\x8B\x08", 3}, kZstd{"\x28\xB5\x2F\xFD", 4};
constexpr std::size_t kMagicBytes = 4, kPart = 1 << 20;  // read at a time
constexpr std::array<std::string_view, 3> kPackedEndings = {".gz", ".zst", ".zstd"};

/// A frame of zstd that holds nothing, as pzstd writes them before others.
bool is_skippable(std::string_view begin) {
  return begin.size() >= 4 && (static_cast<unsigned char>(begin[0]) & 0xF0) == 0x50 &&
         begin.substr(1, 3) == std::string_view("\x2A\x4D\x18", 3);
}
bool is_gzip(std::string_view begin) { return begin.starts_with(kGzip); }

/// One packed piece after another.
class Decoder {
 public:
  struct Done {
    std::size_t taken = 0, given = 0;
    bool ended = false;       // a piece
    std::string wrong = {};   // what is wrong with the bytes; empty: nothing
    std::string advice = {};  // what helps, if anything else than another copy does
  };
  virtual ~Decoder() = default;
  virtual Done step(std::span<std::byte> in, std::span<std::byte> out) = 0;
  /// Whether another piece begins with these bytes.
  virtual bool begins(std::string_view bytes) const = 0;
  virtual void begin_anew() = 0;
  virtual const char* name() const = 0;
};

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() {
    constexpr int kOnlyGzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kOnlyGzip) != Z_OK)
      fail(Fault::Resource, "no memory to unpack a file of gzip");
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  Done step(std::span<std::byte> in, std::span<std::byte> out) override {
    stream_.next_in = reinterpret_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    Done done{in.size() - stream_.avail_in, out.size() - stream_.avail_out, code == Z_STREAM_END};
    if (code == Z_MEM_ERROR) fail(Fault::Resource, "no memory to unpack a file of gzip");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      done.wrong = stream_.msg != nullptr ? stream_.msg : "unknown";
    return done;
  }
  bool begins(std::string_view bytes) const override { return is_gzip(bytes); }
  void begin_anew() override { inflateReset(&stream_); }
  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_ = {};
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) fail(Fault::Resource, "no memory to unpack a file of zstd");
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  Done step(std::span<std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t code = ZSTD_decompressStream(stream_, &to, &from);
    Done done{from.pos, to.pos, code == 0};
    if (ZSTD_isError(code) == 0) return done;
    done.wrong = ZSTD_getErrorName(code);
    const ZSTD_ErrorCode kind = ZSTD_getErrorCode(code);
    if (kind == ZSTD_error_memory_allocation)
      fail(Fault::Resource, "no memory to unpack a file of zstd");
    if (kind == ZSTD_error_frameParameter_windowTooLarge)
      done.advice = "pack it anew without --ultra and with --long=27 at most";
    if (kind == ZSTD_error_dictionary_wrong)
      done.advice = "it was packed with a dictionary; pack it without one";
    return done;
  }
  bool begins(std::string_view bytes) const override {
    return bytes.starts_with(kZstd) || is_skippable(bytes);
  }
  void begin_anew() override { ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only); }
  const char* name() const override { return "zstd"; }

 private:
  ZSTD_DStream* stream_;
};

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view unpacked_name(std::string_view path) {
  for (const std::string_view end : kPackedEndings) {
    if (path.size() <= end.size()) continue;
    const std::size_t size = path.size() - end.size();
    if (std::ranges::equal(path.substr(size), end, {},
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); }))
      return path.substr(0, size);
  }
  return path;
}

bool is_packed(std::string_view begin) {
  return is_gzip(begin) || begin.starts_with(kZstd) || is_skippable(begin);
}

struct Unpacker::State {
  std::string path;
  Take take;
  std::unique_ptr<Decoder> decoder;   // none: nothing was read yet
  std::array<std::byte, 1 << 16> in;  // [at, end) of it are to be unpacked
  std::size_t at = 0, end = 0;
  bool last = false;                  // nothing follows what is in `in`
  bool between = false;               // two pieces, or behind the last one
  std::int64_t bytes = 0, lines = 0;  // unpacked

  /// Bytes to unpack, `least` of them at least, if there are so many.
  std::span<std::byte> some(std::size_t least) {
    if (end - at < least && !last) {
      std::copy(in.data() + at, in.data() + end, in.data());
      end -= std::exchange(at, 0);
      const std::span<std::byte> room = std::span(in).subspan(end);
      const std::size_t got = take(room);
      last = got < room.size();
      end += got;
    }
    return std::span(in).subspan(at, end - at);
  }
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Fault::Data, "'", path, "' is packed by ", decoder->name(), " and ", parts...);
  }
  std::string place() const {
    return text("line ", lines + 1, ", byte ", bytes, " of what it holds");
  }
  /// Whether another piece follows.
  bool goes_on() {
    while (true) {
      const std::span<std::byte> next = some(kMagicBytes);
      if (next.empty()) return false;
      if (decoder->begins(chars(next))) return true;
      // Tapes and disks fill their blocks with zeros.
      if (next.front() != std::byte{0})
        refuse("has other bytes behind ", place(), "; delete them, or pack the text anew");
      const auto other = std::ranges::find_if(next, [](std::byte b) { return b != std::byte{0}; });
      at += static_cast<std::size_t>(other - next.begin());
      if (at < end) refuse("has other bytes behind ", place(), "; pack the text anew");
    }
  }
};

Unpacker::Unpacker(std::string path, Take take) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  state_->take = std::move(take);
}
Unpacker::~Unpacker() = default;
Unpacker::Unpacker(Unpacker&&) noexcept = default;

std::size_t Unpacker::read(std::span<std::byte> out) {
  State& s = *state_;
  if (!s.decoder) {
    if (is_gzip(chars(s.some(kMagicBytes))))
      s.decoder = std::make_unique<GzipDecoder>();
    else
      s.decoder = std::make_unique<ZstdDecoder>();
  }
  std::size_t given = 0;
  while (given < out.size()) {
    if (s.between) {
      if (!s.goes_on()) break;
      s.decoder->begin_anew();
      s.between = false;
    }
    const std::span<std::byte> in = s.some(1);
    const Decoder::Done done = s.decoder->step(in, out.subspan(given));
    s.at += done.taken;
    const std::string_view fresh = chars(out.subspan(given, done.given));
    given += done.given;
    s.bytes += std::ssize(fresh);
    s.lines += std::ranges::count(fresh, '\n');
    if (!done.wrong.empty())
      s.refuse(done.advice.empty() ? "damaged" : "cannot be read", " at ", s.place(), " (",
               done.wrong, "); ", done.advice.empty() ? "copy it again" : done.advice);
    s.between = done.ended;
    if (!done.ended && done.given == 0 && s.at == s.end && s.last)
      s.refuse("ends too early, at ", s.place(), "; it was cut short: copy it again");
  }
  return given;
}

Contents::Contents(std::string path) : file_(std::move(path)) {
  std::array<std::byte, kMagicBytes> begin = {};
  const auto got =
      static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(begin), file_.size()));
  file_.read(0, std::span(begin).first(got));
  if (is_packed(chars(std::span(begin).first(got)))) {
    unpacker_.emplace(file_.path(), [this](std::span<std::byte> into) { return take(into); });
  } else if (unpacked_name(file_.path()).size() < file_.path().size()) {
    fail(Fault::Data, "'", file_.path(), "' has the name of a packed file, but is ",
         got == 0 ? "empty" : "not packed by gzip or zstd", "; copy it again, or rename it");
  }
}

std::size_t Contents::take(std::span<std::byte> out) {
  const auto left = static_cast<std::size_t>(file_.size() - taken_);
  const std::span<std::byte> some = out.first(std::min(out.size(), left));
  file_.read(taken_, some);
  taken_ += std::ssize(some);
  return some.size();
}

std::size_t Contents::read(std::span<std::byte> out) {
  const std::size_t got = unpacker_ ? unpacker_->read(out) : take(out);
  offset_ += static_cast<std::int64_t>(got);
  return got;
}

void Contents::skip_to(std::int64_t offset) {
  check(offset >= offset_, "byte ", offset, " of '", path(), "' lies before byte ", offset_);
  if (!packed() && offset <= file_.size()) taken_ = offset_ = offset;
  std::vector<std::byte> passed(offset > offset_ ? kPart : 0);
  while (offset_ < offset) {
    const auto left = static_cast<std::size_t>(offset - offset_);
    if (read(std::span(passed).first(std::min(left, passed.size()))) == 0)
      fail(Fault::Data, "'", path(), "' holds ", offset_, " bytes, but byte ", offset,
           " was to be read; it was cut short or changed");
  }
}

std::string read_contents(const std::string& path, std::int64_t most) {
  Contents contents(path);
  if (!contents.packed()) return read_file(path);
  std::string out;
  most = std::max(most, contents.file_bytes() * kMostUnpackedTimes);
  while (true) {
    const std::size_t had = out.size();
    out.resize(had + kPart);
    const std::size_t got = contents.read(std::as_writable_bytes(std::span(out)).subspan(had));
    out.resize(had + got);
    if (got < kPart) return out;
    if (std::ssize(out) > most)
      fail(Fault::Data, "'", path, "' has ", bytes_text(contents.file_bytes()),
           " and holds more than ", bytes_text(most), ", which would all be held in memory; ",
           "unpack it, if that is meant, and give its contents");
  }
}

}  // namespace tessera
