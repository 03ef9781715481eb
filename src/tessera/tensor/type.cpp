#include "tessera/tensor/type.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/tensor/type_fits.h"

namespace tessera {

namespace {

std::int64_t parse_size(std::string_view digits, std::string_view line) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  require(error == std::errc() && end == digits.data() + digits.size() && value >= 0,
          "tensor type '", line, "': '", digits, "' is not a size; write it like f32[4,256]");
  return value;
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && std::all_of(tag.begin(), tag.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

}  // namespace

bool fits(const TensorType& type) {
  std::int64_t bytes = size_of(type.dtype);
  for (const std::int64_t dim : type.shape) {
    if (dim < 0 || !size_product_fits(bytes, dim)) return false;
    bytes *= std::max<std::int64_t>(dim, 1);
  }
  return type.layout.bytes >= 0 && type.layout.bytes <= kMaxSize;
}

std::string to_text(const TensorType& type) {
  std::string out = text(type.dtype, type.shape);
  if (!type.layout.plain()) out += text("@", type.layout.tag, ":", type.layout.bytes);
  return out;
}

TensorType parse_type(std::string_view line) {
  const std::size_t open = line.find('['), close = line.find(']');
  require(open != std::string_view::npos && close != std::string_view::npos && open < close,
          "tensor type '", line, "' is not like f32[4,256]");
  TensorType type;
  type.dtype = parse_dtype(line.substr(0, open));
  const std::string_view dims = line.substr(open + 1, close - open - 1);
  if (!dims.empty()) {
    for (const std::string& dim : split(dims, ','))
      type.shape.push_back(parse_size(trim(dim), line));
  }
  if (close + 1 < line.size()) {
    const std::string_view layout = line.substr(close + 1);
    const std::size_t colon = layout.find(':');
    require(
        layout[0] == '@' && colon != std::string_view::npos && is_tag(layout.substr(1, colon - 1)),
        "tensor type '", line,
        "': a layout is like @tag:bytes, its tag of letters, digits and _ . -");
    type.layout = {std::string(layout.substr(1, colon - 1)),
                   parse_size(layout.substr(colon + 1), line)};
  }
  require(fits(type), "tensor type '", line, "': it has more than 2^62 bytes");
  return type;
}

}  // namespace tessera
