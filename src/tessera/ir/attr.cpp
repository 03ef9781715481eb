#include "tessera/ir/attr.h"

#include <charconv>

#include "tessera/ir/graph.h"
#include "tessera/ir/print.h"

namespace tessera {

namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string unquoted(std::string_view line) {
  require(line.size() >= 2 && line.front() == '"' && line.back() == '"', "'", line, "' is not a quoted text");
  std::string out;
  for (std::size_t i = 1; i + 1 < line.size(); ++i) {
    if (line[i] == '\\' && i + 2 < line.size()) ++i;
    out += line[i];
  }
  return out;
}

template <typename T>
T parse_number(std::string_view line) {
  T value{};
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  require(error == std::errc() && end == line.data() + line.size(), "'", line, "' is not a number");
  return value;
}

struct Printer {
  std::string operator()(std::int64_t v) const { return number_text(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(const std::vector<std::int64_t>& v) const {
    std::string out = "[";
    for (std::size_t i = 0; i < v.size(); ++i) out += text(i ? "," : "", v[i]);
    return out + "]";
  }
  std::string operator()(DType v) const { return std::string(to_text(v)); }
  std::string operator()(const std::shared_ptr<const Graph>& v) const { return "{" + body_text(*v) + "}"; }
};

}  // namespace

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&a);
  if (graph == nullptr) return a == b;
  const auto& other = std::get<std::shared_ptr<const Graph>>(b);
  return *graph == other || to_text(a) == to_text(b);
}

std::string to_text(const AttrValue& value) { return std::visit(Printer{}, value); }

AttrValue parse_attr(AttrKind kind, std::string_view line) {
  switch (kind) {
    case AttrKind::Int: return parse_number<std::int64_t>(line);
    case AttrKind::Float: return parse_number<double>(line);
    case AttrKind::Bool:
      require(line == "true" || line == "false", "'", line, "' is neither true nor false");
      return line == "true";
    case AttrKind::Text: return unquoted(line);
    case AttrKind::Ints: {
      require(line.size() >= 2 && line.front() == '[' && line.back() == ']', "'", line, "' is not like [1,2]");
      std::vector<std::int64_t> out;
      if (line.size() > 2) {
        for (const std::string& item : split(line.substr(1, line.size() - 2), ',')) {
          out.push_back(parse_number<std::int64_t>(trim(item)));
        }
      }
      return out;
    }
    case AttrKind::DType: return parse_dtype(line);
    case AttrKind::Graph: break;
  }
  fail(Fault::Usage, "a graph cannot be an attribute in text: '", line, "'");
}

}  // namespace tessera
