#include "tessera/ir/attr.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "tessera/ir/graph.h"
#include "tessera/ir/print.h"

namespace tessera {

namespace {

template <typename T>
T parse_number(std::string_view line) {
  T value{};
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  require(error == std::errc() && end == line.data() + line.size(), "'", line, "' is not a number");
  return value;
}

template <typename T>
std::vector<T> parse_numbers(std::string_view line) {
  require(line.size() >= 2 && line.front() == '[' && line.back() == ']', "'", line,
          "' is not like [1,2]");
  std::vector<T> out;
  if (line.size() == 2) return out;
  for (const std::string& item : split(line.substr(1, line.size() - 2), ','))
    out.push_back(parse_number<T>(trim(item)));
  return out;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct Printer {
  std::string operator()(std::int64_t v) const { return number_text(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return quoted(v); }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    std::string out = "[";
    for (std::size_t i = 0; i < v.size(); ++i) out += text(i ? "," : "", number_text(v[i]));
    return out + "]";
  }
  std::string operator()(DType v) const { return std::string(to_text(v)); }
  std::string operator()(const std::shared_ptr<const Graph>& v) const {
    return "{\n" + to_text(*v) + "}";
  }
};

}  // namespace

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* number = std::get_if<double>(&a)) return same_bits(*number, std::get<double>(b));
  if (const auto* list = std::get_if<std::vector<double>>(&a)) {
    const auto& other = std::get<std::vector<double>>(b);
    return std::equal(list->begin(), list->end(), other.begin(), other.end(), same_bits);
  }
  const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&a);
  if (graph == nullptr) return a == b;
  const auto& other = std::get<std::shared_ptr<const Graph>>(b);
  return *graph == other || **graph == *other;
}

Attrs Attrs::with(std::size_t i, AttrValue value) const {
  if (i < size() && same_attr((*this)[i], value)) return *this;
  std::vector<AttrValue> values(begin(), end());
  if (i == values.size()) values.emplace_back();
  values[i] = std::move(value);
  return Attrs(std::move(values));
}

bool operator==(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_attr);
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
    case AttrKind::Ints: return parse_numbers<std::int64_t>(line);
    case AttrKind::Floats: return parse_numbers<double>(line);
    case AttrKind::DType: return parse_dtype(line);
    case AttrKind::Graph: break;
  }
  fail(Fault::Usage, "a graph as an attribute is read by parse_graph, not from '", line, "'");
}

std::string quoted(std::string_view line) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x", out += kDigits[byte >> 4], out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string unquoted(std::string_view line) {
  require(line.size() >= 2 && line.front() == '"' && line.back() == '"', "'", line,
          "' is not a quoted text");
  const std::string_view inside = line.substr(1, line.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    require(inside[i] != '"', "'", line, "' has a quote inside; write it \\\"");
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    const char kind = ++i < inside.size() ? inside[i] : ' ';
    unsigned byte = 0;
    const char *digits = inside.data() + i + 1, *end = inside.data() + inside.size();
    if (kind == '"' || kind == '\\') {
      out += kind;
    } else if (kind == 'n') {
      out += '\n';
    } else if (kind == 'x' && end - digits >= 2 &&
               std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte), i += 2;
    } else {
      fail(Fault::Usage, "'", line,
           "' has an unknown escape; known are \\\" \\\\ \\n and \\x with two digits");
    }
  }
  return out;
}

}  // namespace tessera
