#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include <utility>

#include "tessera/files/pictures/decoders.h"

namespace tessera {

namespace {

constexpr std::size_t kMostOfChunk = 8'000'000;  // bytes of a colour profile or a text, unpacked
constexpr int kMostChunks = 1000;                // of those

/// libpng's state; errors jump back, as in JpegReader.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : bytes_(bytes) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header() {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp what) {
          auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
          std::strncpy(self.message_, what, sizeof(message_) - 1);
          std::longjmp(self.back_, 1);
        },
        [](png_structp, png_const_charp) {});
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    return step([this] {
      png_set_chunk_malloc_max(png_, kMostOfChunk);
      png_set_chunk_cache_max(png_, kMostChunks);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // refuse_size says it
      png_set_read_fn(png_, this, [](png_structp png, png_bytep to, png_size_t size) {
        auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
        if (size > self.bytes_.size()) png_error(png, "it ends too early");
        std::memcpy(to, self.bytes_.data(), size);
        self.bytes_.remove_prefix(size);
      });
      png_read_info(png_, info_);
    });
  }
  /// Three channels of 8 bits.
  bool choose_colours() {
    return step([this] {
      png_set_expand(png_);  // palettes, and grey of fewer bits
      png_set_strip_16(png_);
      png_set_strip_alpha(png_);
      png_set_gray_to_rgb(png_);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
  }
  bool read(std::uint8_t** lines) {
    return step([this, lines] { png_read_image(png_, lines); });
  }

  std::uint32_t height() const { return png_get_image_height(png_, info_); }
  std::uint32_t width() const { return png_get_image_width(png_, info_); }
  std::size_t line_bytes() const { return png_get_rowbytes(png_, info_); }
  int orientation() {
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png_, info_, &size, &exif) == 0) return 1;
    return exif_orientation({reinterpret_cast<const char*>(exif), size});
  }
  const char* message() const { return message_; }

 private:
  template <typename Work>
  bool step(const Work& work) {
    if (setjmp(back_) != 0) return false;
    work();
    return true;
  }

  std::string_view bytes_;  // that are left
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_;
  char message_[128] = "out of memory";
};

}  // namespace

StoredPicture decode_png(std::string_view bytes, const std::string& name,
                         std::int64_t most_pixels) {
  constexpr std::string_view kFormat = "PNG";
  PngReader reader(bytes);
  if (!reader.read_header()) refuse_damage(kFormat, reader.message(), name);
  refuse_size(reader.height(), reader.width(), name, most_pixels);
  Picture out{reader.height(), reader.width(), 3, {}};
  const auto line = static_cast<std::size_t>(out.width * 3);
  if (!reader.choose_colours() || reader.line_bytes() != line)
    refuse_damage(kFormat, reader.message(), name);
  out.pixels.resize(line * static_cast<std::size_t>(out.height));
  std::vector<std::uint8_t*> lines(static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < lines.size(); ++y) lines[y] = out.pixels.data() + y * line;
  if (!reader.read(lines.data())) refuse_damage(kFormat, reader.message(), name);
  return {std::move(out), reader.orientation()};
}

}  // namespace tessera
