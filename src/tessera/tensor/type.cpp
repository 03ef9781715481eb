#include "tessera/tensor/type.h"

#include <charconv>

#include "tessera/base/error.h"

namespace tessera {

namespace {

std::int64_t parse_size(std::string_view digits, std::string_view line) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  require(error == std::errc() && end == digits.data() + digits.size() && value >= 0, "tensor type '", line,
          "': '", digits, "' is not a size; write it like f32[4,256]");
  return value;
}

}  // namespace

std::string to_text(const TensorType& type) {
  std::string out = text(type.dtype, type.shape);
  if (!type.layout.plain()) out += text("@", type.layout.tag, ":", type.layout.bytes);
  return out;
}

TensorType parse_type(std::string_view line) {
  const std::size_t open = line.find('['), close = line.find(']');
  require(open != std::string_view::npos && close != std::string_view::npos && open < close, "tensor type '", line,
          "' is not like f32[4,256]");
  TensorType type;
  type.dtype = parse_dtype(line.substr(0, open));
  const std::string_view dims = line.substr(open + 1, close - open - 1);
  if (!dims.empty()) {
    for (const std::string& dim : split(dims, ',')) type.shape.push_back(parse_size(trim(dim), line));
  }
  if (close + 1 < line.size()) {
    const std::string_view layout = line.substr(close + 1);
    const std::size_t colon = layout.find(':');
    require(layout[0] == '@' && colon != std::string_view::npos && colon > 1, "tensor type '", line, "': a layout is like @tag:bytes");
    type.layout = {std::string(layout.substr(1, colon - 1)), parse_size(layout.substr(colon + 1), line)};
  }
  return type;
}

}  // namespace tessera
