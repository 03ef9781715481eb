// In this order: each needs those before it, and the numbers of the last depend on macros.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <utility>

#include "tessera/files/pictures/decoders.h"

namespace tessera {

namespace {

constexpr std::string_view kExif{"Exif\0\0", 6};
constexpr int kMostScans = 500;  // of progressive files; photographs have about ten

/// libjpeg's state. It reports errors to functions that must not return: these jump back to step(),
/// in which nothing of C++ is alive that has to be destroyed.
class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) : bytes_(bytes) {
    c_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr c) { of(c).jump_back(c); };
    errors_.emit_message = [](j_common_ptr c, int level) {
      if (level < 0 && is_damage(c->err->msg_code)) of(c).jump_back(c);
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr c) {
      if (reinterpret_cast<j_decompress_ptr>(c)->input_scan_number <= kMostScans) return;
      std::snprintf(of(c).message_, sizeof(message_), "it has more than %d scans", kMostScans);
      std::longjmp(of(c).back_, 1);
    };
    c_.client_data = this;
  }
  ~JpegReader() { jpeg_destroy_decompress(&c_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// False: message() says what was wrong.
  bool read_header() {
    return step([this] {
      jpeg_create_decompress(&c_);
      c_.client_data = this;  // which that has cleared, as all else but `err`
      c_.progress = &progress_;
      jpeg_mem_src(&c_, reinterpret_cast<const unsigned char*>(bytes_.data()),
                   static_cast<unsigned long>(bytes_.size()));
      jpeg_save_markers(&c_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_read_header(&c_, TRUE);
    });
  }
  /// All lines, of three channels, or of CMYK four.
  bool read(std::uint8_t* to) {
    return step([this, to] {
      jpeg_start_decompress(&c_);
      const std::size_t line =
          std::size_t{c_.output_width} * static_cast<std::size_t>(c_.output_components);
      while (c_.output_scanline < c_.output_height) {
        JSAMPROW row = to + c_.output_scanline * line;
        jpeg_read_scanlines(&c_, &row, 1);
      }
    });
  }

  std::uint32_t height() const { return c_.image_height; }
  std::uint32_t width() const { return c_.image_width; }
  int components() const { return c_.num_components; }
  /// Whether it is of inks; tells libjpeg what to make of it.
  bool choose_colours() {
    const bool inks = c_.jpeg_color_space == JCS_CMYK || c_.jpeg_color_space == JCS_YCCK;
    c_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    return inks;
  }
  int orientation() const {
    for (jpeg_saved_marker_ptr marker = c_.marker_list; marker != nullptr; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (data.starts_with(kExif)) return exif_orientation(data.substr(kExif.size()));
    }
    return 1;
  }
  const char* message() const { return message_; }

 private:
  static JpegReader& of(j_common_ptr c) { return *static_cast<JpegReader*>(c->client_data); }

  /// libjpeg goes on after it, with pixels that are not the picture's. It warns of other things
  /// that do no harm, such as bytes between two parts.
  static bool is_damage(int code) {
    return code == JWRN_ARITH_BAD_CODE || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
           code == JWRN_JPEG_EOF || code == JWRN_MUST_RESYNC;
  }

  [[noreturn]] void jump_back(j_common_ptr c) {
    (*c->err->format_message)(c, message_);
    std::longjmp(back_, 1);
  }

  template <typename Work>
  bool step(const Work& work) {
    if (setjmp(back_) != 0) return false;
    work();
    return true;
  }

  std::string_view bytes_;
  jpeg_decompress_struct c_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_;
  char message_[JMSG_LENGTH_MAX] = {};
};

/// Inks as Adobe's programs write them, inverted, to colours, by Pillow's formula.
void cmyk_to_rgb(const std::vector<std::uint8_t>& inks, std::vector<std::uint8_t>& rgb) {
  for (std::size_t pixel = 0; pixel * 4 < inks.size(); ++pixel) {
    const int light = inks[pixel * 4 + 3];
    for (std::size_t i = 0; i < 3; ++i) {
      const int product = (255 - inks[pixel * 4 + i]) * light + 128,
                taken = ((product >> 8) + product) >> 8;
      rgb[pixel * 3 + i] = static_cast<std::uint8_t>(light > taken ? light - taken : 0);
    }
  }
}

}  // namespace

StoredPicture decode_jpeg(std::string_view bytes, const std::string& name,
                          std::int64_t most_pixels) {
  constexpr std::string_view kFormat = "JPEG";
  JpegReader reader(bytes);
  if (!reader.read_header()) refuse_damage(kFormat, reader.message(), name);
  refuse_size(reader.height(), reader.width(), name, most_pixels);
  if (reader.components() == 2 || reader.components() > 4)
    refuse_damage(kFormat, "it has neither one, three nor four channels", name);
  Picture out{reader.height(), reader.width(), 3, {}};
  const auto pixels = static_cast<std::size_t>(out.height * out.width);
  const bool inks = reader.choose_colours();
  out.pixels.resize(pixels * 3);
  std::vector<std::uint8_t> read(inks ? pixels * 4 : 0);
  if (!reader.read(inks ? read.data() : out.pixels.data()))
    refuse_damage(kFormat, reader.message(), name);
  if (inks) cmyk_to_rgb(read, out.pixels);
  return {std::move(out), reader.orientation()};
}

}  // namespace tessera
