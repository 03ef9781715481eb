#include "tessera/chat/jinja/value_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tessera/base/format.h"
#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/characters.h"

namespace tessera::jinja {

namespace {

void append_repr(Heap& heap, std::string& out, const Value& value);

void append_text_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos,
             has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const auto size = static_cast<std::size_t>(std::max(c.size, 1));
    if (c.value == static_cast<char32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printed(c.value)) {
      out += text.substr(at, size);
    } else {
      const auto code = static_cast<unsigned>(c.value);
      out += code < 0x100     ? format("\\x%02x", code)
             : code < 0x10000 ? format("\\u%04x", code)
                              : format("\\U%08x", code);
    }
    at += size;
  }
  out += quote;
}

void append_items_repr(Heap& heap, std::string& out, const ItemsValue& items) {
  const bool tuple = items.of == ItemsValue::Of::Tuple;
  out += tuple ? '(' : '[';
  bool first = true;
  for (const Value& item : items.items) {
    if (!first) out += ", ";
    first = false;
    append_repr(heap, out, item);
  }
  if (tuple && items.items.size() == 1) out += ',';
  out += tuple ? ')' : ']';
}

void append_repr(Heap& heap, std::string& out, const Value& value) {
  const Deeper deeper(heap);
  if (std::ssize(out) > heap.room()) bad("a text is too long");
  heap.spend(1);
  switch (value.kind) {
    case Kind::Undefined: out += "Undefined"; return;
    case Kind::Text:
      if (value.text->safe) bad("text marked safe in a list that is printed");
      return append_text_repr(out, value.text->bytes);
    case Kind::Items:
      if (value.items->of != ItemsValue::Of::List && value.items->of != ItemsValue::Of::Tuple)
        break;
      return append_items_repr(heap, out, *value.items);
    case Kind::Dict: {
      out += '{';
      bool first = true;
      for (const auto& [key, item] : value.dict->entries) {
        if (!first) out += ", ";
        first = false;
        append_repr(heap, out, key);
        out += ": ";
        append_repr(heap, out, item);
      }
      out += '}';
      return;
    }
    case Kind::None:
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float: return append_str(heap, out, value);
    default: break;
  }
  bad(kind_text(value), " is printed");
}

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonForm& form) : heap_(heap), form_(form) {}

  void value(const Value& value) {
    const Deeper deeper(heap_);
    if (std::ssize(out) > heap_.room()) bad("a text is too long");
    heap_.spend(1);
    switch (value.kind) {
      case Kind::None: out += "null"; return;
      case Kind::Bool: out += value.truth ? "true" : "false"; return;
      case Kind::Int: out += number_text(value.whole); return;
      case Kind::Float: out += real(value.real); return;
      case Kind::Text: return string(value.text->bytes);
      case Kind::Items:
        if (value.items->of == ItemsValue::Of::List || value.items->of == ItemsValue::Of::Tuple)
          return list(*value.items);
        break;
      case Kind::Dict: return dict(*value.dict);
      default: break;
    }
    bad("tojson: ", kind_text(value), " is nothing that JSON has");
  }

  std::string out;

 private:
  static std::string real(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return python_number(number);
  }

  void line() {
    if (!form_.indent) return;
    out += '\n';
    if (form_.indent->size() * static_cast<std::size_t>(level_) >
        static_cast<std::size_t>(heap_.room()))
      bad("a text is too long");
    for (int i = 0; i < level_; ++i) out += *form_.indent;
  }

  template <typename Items, typename Write>
  void nested(char open, const Items& items, char close, const Write& write) {
    out += open;
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out += form_.item_separator;
      first = false;
      line();
      write(item);
    }
    --level_;
    if (!first) line();
    out += close;
  }

  void list(const ItemsValue& items) {
    nested('[', items.items, ']', [&](const Value& item) { value(item); });
  }

  void dict(const DictValue& dict) {
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    if (form_.sorted)
      std::ranges::stable_sort(entries, [&](const auto& a, const auto& b) {
        return order_of(heap_, a.first, b.first) < 0;
      });
    nested('{', entries, '}', [&](const std::pair<Value, Value>& entry) {
      key(entry.first);
      out += form_.key_separator;
      value(entry.second);
    });
  }

  void key(const Value& key) {
    if (key.is(Kind::Text)) return string(key.text->bytes);
    if (!key.is_number() && !key.is(Kind::None))
      bad("tojson: ", kind_text(key), " as a key is nothing that JSON has");
    out += '"';
    value(key);
    out += '"';
  }

  void string(std::string_view text) {
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      const auto size = static_cast<std::size_t>(std::max(c.size, 1));
      character(c.value, text.substr(at, size));
      at += size;
    }
    out += '"';
  }

  void character(char32_t c, std::string_view bytes) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const auto code = static_cast<unsigned>(c);
    if (const std::size_t at = bytes.size() == 1 ? kEscaped.find(bytes[0]) : std::string::npos;
        at != std::string::npos) {
      out += '\\';
      out += kLetters[at];
    } else if (code < 0x20 || (form_.ascii && code >= 0x7F && code < 0x10000)) {
      out += format("\\u%04x", code);
    } else if (form_.ascii && code >= 0x10000) {
      out += format("\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                    0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      out += bytes;
    }
  }

  Heap& heap_;
  const JsonForm& form_;
  int level_ = 0;
};

}  // namespace

std::string python_number(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view shown(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = shown.find('e');
  int exponent = 0;
  std::from_chars(shown.data() + e + (shown[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shown);
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed)
          .ptr;
  std::string out(buffer.data(), static_cast<std::size_t>(fixed - buffer.data()));
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

void append_str(Heap& heap, std::string& out, const Value& value) {
  switch (value.kind) {
    case Kind::Undefined: return;
    case Kind::None: out += "None"; return;
    case Kind::Bool: out += value.truth ? "True" : "False"; return;
    case Kind::Int: out += number_text(value.whole); return;
    case Kind::Float: out += python_number(value.real); return;
    case Kind::Text:
      if (std::ssize(out) + std::ssize(value.text->bytes) > heap.room()) bad("a text is too long");
      out += value.text->bytes;
      return;
    default: return append_repr(heap, out, value);
  }
}

std::string str(Heap& heap, const Value& value) {
  std::string out;
  append_str(heap, out, value);
  return out;
}

std::string json_of(Heap& heap, const Value& value, const JsonForm& form) {
  JsonWriter writer(heap, form);
  writer.value(value);
  return std::move(writer.out);
}

}  // namespace tessera::jinja
