#include "tessera/token_files/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "tessera/base/printable.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

namespace {

struct NpyName {
  NpyType type;
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<NpyName, 6> kNpyNames = {{{NpyType::I16, "<i2", 2},
                                               {NpyType::I32, "<i4", 4},
                                               {NpyType::I64, "<i8", 8},
                                               {NpyType::U16, "<u2", 2},
                                               {NpyType::U32, "<u4", 4},
                                               {NpyType::U64, "<u8", 8}}};
constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr std::size_t kNpyFixed = 10, kNpyAlign = 64;  // bytes before the text; of text and these
constexpr int kNpyGrowth = 21;  // NumPy leaves room for as many digits of the first dim

const NpyName& npy_name_of(NpyType type) {
  return *std::ranges::find(kNpyNames, type, &NpyName::type);
}

/// The Python literal of a header: "{'descr': '<i4', 'fortran_order': False, 'shape': (9, 2), }".
/// Keys may come in any order.
class NpyDictionary {
 public:
  NpyDictionary(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  NpyHeader read() {
    NpyHeader out;
    std::array<bool, 3> seen{};
    take("{");
    while (!next_is("}")) {
      const std::string_view key = quoted();
      take(":");
      if (key == "descr") {
        out.type = type();
        seen[0] = true;
      } else if (key == "fortran_order") {
        if (!next_is("False"))
          refuse("has its array in Fortran order; save it in C order, as numpy.ascontiguousarray");
        seen[1] = true;
      } else if (key == "shape") {
        out.shape = shape();
        seen[2] = true;
      } else {
        refuse(text("has a header with an unknown key '", printable(key), "'"));
      }
      if (!next_is(",")) {
        take("}");
        break;
      }
    }
    if (!(seen[0] && seen[1] && seen[2]))
      refuse("has a header without all of descr, fortran_order and shape");
    if (!trim(rest_).empty()) refuse("has text after its header");
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(Fault::Data, "'", path_, "' ", what, "; delete the file to rebuild it");
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool next_is(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void take(std::string_view token) {
    if (!next_is(token))
      refuse(text("has a header that is not a NumPy dictionary: '", token, "' is expected before '",
                  printable(rest_.substr(0, 20)), "'"));
  }
  std::string_view quoted() {
    skip();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    if (quote != '\'' && quote != '"') take("'");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) refuse("has a header with a quote that does not end");
    const std::string_view out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }
  NpyType type() {
    const std::string_view descr = quoted();
    const auto* const found = std::ranges::find(kNpyNames, descr, &NpyName::name);
    if (found == kNpyNames.end())
      refuse(text("has elements of type '", printable(descr), "' where one of ",
                  "<i2, <i4, <i8, <u2, <u4 and <u8 is expected"));
    return found->type;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> out;
    take("(");
    while (!next_is(")")) {
      skip();
      std::int64_t n = -1;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (error != std::errc() || n < 0 || n > kMaxSize)
        refuse(text("has a shape with '", printable(rest_.substr(0, 20)), "' for a number"));
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      out.push_back(n);
      if (out.size() > 2) refuse("has an array of more than two dims");
      if (!next_is(",")) {
        take(")");
        break;
      }
    }
    if (out.empty()) refuse("holds one number and no array");
    return out;
  }

  std::string_view rest_;
  const std::string& path_;
};

template <typename T>
void widen(std::span<const std::byte> from, std::span<std::int64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, from.data() + i * sizeof(T), sizeof(T));
    to[i] = static_cast<std::int64_t>(value);
  }
}

void widen(NpyType type, std::span<const std::byte> from, std::span<std::int64_t> to) {
  switch (type) {
    case NpyType::I16: return widen<std::int16_t>(from, to);
    case NpyType::I32: return widen<std::int32_t>(from, to);
    case NpyType::I64: return widen<std::int64_t>(from, to);
    case NpyType::U16: return widen<std::uint16_t>(from, to);
    case NpyType::U32: return widen<std::uint32_t>(from, to);
    case NpyType::U64: return widen<std::uint64_t>(from, to);
  }
}

}  // namespace

std::string_view to_text(NpyType type) { return npy_name_of(type).name; }
std::int64_t bytes_of(NpyType type) { return npy_name_of(type).bytes; }

std::int64_t NpyHeader::elements() const {
  std::int64_t out = 1;
  for (const std::int64_t n : shape) out *= n;
  return out;
}

std::string npy_header(NpyType type, std::span<const std::int64_t> shape) {
  const std::string dims =
      shape.size() == 1 ? text("(", shape[0], ",)") : text("(", join(shape), ")");
  std::string dictionary =
      text("{'descr': '", to_text(type), "', 'fortran_order': False, 'shape': ", dims, ", }");
  const int digits = static_cast<int>(number_text(shape[0]).size());
  dictionary.append(static_cast<std::size_t>(std::max(0, kNpyGrowth - digits)), ' ');
  const std::size_t used = kNpyFixed + dictionary.size() + 1;
  dictionary.append(kNpyAlign - used % kNpyAlign, ' ');
  dictionary += '\n';
  std::string out(kNpyMagic);
  out += '\1';
  out += '\0';
  const auto size = static_cast<std::uint16_t>(dictionary.size());
  out += static_cast<char>(size & 0xff);
  out += static_cast<char>(size >> 8);
  return out + dictionary;
}

NpyHeader parse_npy_header(std::string_view bytes, std::int64_t file_bytes,
                           const std::string& path) {
  const std::string advice = "; delete the file to rebuild it";
  if (bytes.size() < kNpyFixed || !bytes.starts_with(kNpyMagic))
    fail(Fault::Data, "'", path, "' is not a .npy file: it does not begin as one", advice);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (byte(6) != 1)
    fail(Fault::Data, "'", path, "' is a .npy file of version ", static_cast<int>(byte(6)),
         " where version 1 is expected", advice);
  const std::size_t size = byte(8) | static_cast<std::size_t>(byte(9)) << 8;
  if (kNpyFixed + size > bytes.size())
    fail(Fault::Data, "'", path, "' has a header of ", size, " bytes where at most ",
         bytes.size() - kNpyFixed, " are there or expected", advice);
  NpyHeader out = NpyDictionary(bytes.substr(kNpyFixed, size), path).read();
  out.begin = static_cast<std::int64_t>(kNpyFixed + size);
  std::int64_t wanted = bytes_of(out.type);
  for (const std::int64_t n : out.shape) {
    if (!size_product_fits(wanted, n))
      fail(Fault::Data, "'", path, "' has shape ", join(out.shape, " x "),
           ", more than any file holds", advice);
    wanted *= n;
  }
  if (file_bytes - out.begin != wanted)
    fail(Fault::Data, "'", path, "' has ", file_bytes - out.begin, " bytes of data, but its shape ",
         join(out.shape, " x "), " of ", to_text(out.type), " takes ", wanted, advice);
  return out;
}

IntegerArray::IntegerArray(std::span<const std::byte> values, NpyType type, std::int64_t columns)
    : memory_(std::make_shared<std::vector<std::byte>>(values.begin(), values.end())) {
  const std::int64_t count = std::ssize(values) / bytes_of(type);
  header_ = {type, {count}, 0};
  if (columns > 0) header_.shape = {count / columns, columns};
}

IntegerArray IntegerArray::open(const std::string& path) {
  IntegerArray out;
  out.file_ = std::make_shared<InputFile>(path);
  const std::int64_t size = out.file_->size();
  std::string begin(static_cast<std::size_t>(std::min(size, kNpyHeaderBytes)), '\0');
  out.file_->read(0, std::as_writable_bytes(std::span(begin)));
  out.header_ = parse_npy_header(begin, size, path);
  return out;
}

void IntegerArray::read(std::int64_t first, std::span<std::int64_t> out) const {
  const std::int64_t width = bytes_of(type()), count = std::ssize(out);
  check(first >= 0 && count <= elements() && first <= elements() - count, "elements ", first,
        " to ", first + count, " of ", elements());
  const auto bytes = static_cast<std::size_t>(count * width);
  if (memory_ != nullptr)
    return widen(type(),
                 std::span(*memory_).subspan(static_cast<std::size_t>(first * width), bytes), out);
  // Read into the end of `out`: widening from the front never overtakes it.
  const std::span<std::byte> raw = std::as_writable_bytes(out).last(bytes);
  file_->read(header_.begin + first * width, raw);
  widen(type(), raw, out);
}

std::int64_t IntegerArray::at(std::int64_t i) const {
  std::int64_t out = 0;
  read(i, {&out, 1});
  return out;
}

void IntegerArray::save(const std::string& path) const {
  AtomicFile file(path);
  file.write(npy_header(type(), shape()));
  if (memory_ != nullptr) {
    file.write(*memory_);
  } else {
    std::vector<std::byte> block(std::size_t{1} << 20);
    const std::int64_t all = elements() * bytes_of(type());
    for (std::int64_t done = 0; done < all;) {
      const std::int64_t part = std::min(all - done, std::ssize(block));
      const std::span<std::byte> bytes = std::span(block).first(static_cast<std::size_t>(part));
      file_->read(header_.begin + done, bytes);
      file.write(bytes);
      done += part;
    }
  }
  file.commit();
}

}  // namespace tessera
