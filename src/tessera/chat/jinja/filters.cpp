#include "tessera/chat/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/characters.h"
#include "tessera/chat/jinja/value_text.h"

namespace tessera::jinja {

namespace {

Value trim(const FilterCall& c) {
  const Bound bound = c.bind(";chars");
  return c.heap.text(std::string(stripped(c.text(), Ends::Both, bound.some_text(0))));
}

/// Jinja's: words begin behind blanks, hyphens and opening brackets.
Value title(const FilterCall& c) {
  c.bind("");
  const std::string text = c.text();
  std::string out;
  bool first = true;
  for (const std::string_view bytes : characters_of(text)) {
    const char32_t value = code_point_at(bytes, 0).value;
    const bool parts =
        is_space(value) || std::string_view("-({[<").find(bytes) != std::string::npos;
    out += parts ? std::string(bytes) : first ? upper(bytes) : lower(bytes);
    first = parts;
  }
  return c.heap.text(std::move(out));
}

Value replace(const FilterCall& c) {
  const Bound bound = c.bind("old new;count");
  const bool all = bound.get(2) == nullptr || bound.get(2)->is(Kind::None);
  return c.heap.text(replaced(c.text(), str(c.heap, *bound.get(0)), str(c.heap, *bound.get(1)),
                              all ? -1 : bound.whole(2, -1), c.heap.room()));
}

Value indent(const FilterCall& c) {
  const Bound bound = c.bind(";width first blank");
  if (!c.value.is(Kind::Text)) bad("indent of ", kind_text(c.value), "; a text is due");
  std::string indention(4, ' ');
  if (bound.get(0) != nullptr && bound.get(0)->is(Kind::Text)) {
    indention = bound.get(0)->text->bytes;
  } else if (bound.get(0) != nullptr) {
    const std::int64_t width = bound.whole(0, 4);
    if (width > 10'000) bad("indent by ", width);
    indention.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  const std::string text = c.text() + "\n";
  const bool blank = bound.truth(2, false);
  std::string out;
  bool begins = true;
  for (const std::string_view line : lines_of(text)) {
    if (!begins) out += '\n';
    if (begins ? bound.truth(1, false) : blank || !line.empty()) out += indention;
    begins = false;
    out += line;
    if (std::ssize(out) > c.heap.room()) bad("a text is too long");
  }
  return c.heap.text(std::move(out));
}

Value tojson(const FilterCall& c) {
  const Bound bound = c.bind(";ensure_ascii indent separators sort_keys");
  JsonForm form;
  form.ascii = bound.truth(0, false);
  form.sorted = bound.truth(3, false);
  const Value* const indent = bound.get(1);
  if (indent != nullptr && indent->is(Kind::Text)) {
    form.indent = indent->text->bytes;
  } else if (indent != nullptr && !indent->is(Kind::None)) {
    const std::int64_t width = bound.whole(1, 0);
    if (width > 1000) bad("tojson with indent ", width);
    form.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (form.indent) form.item_separator = ",";
  if (const Value* const given = bound.get(2); given != nullptr && !given->is(Kind::None)) {
    const bool two = given->is(Kind::Items) && given->items->items.size() == 2 &&
                     given->items->items[0].is(Kind::Text) && given->items->items[1].is(Kind::Text);
    if (!two) bad("tojson: separators are two texts");
    form.item_separator = given->items->items[0].text->bytes;
    form.key_separator = given->items->items[1].text->bytes;
  }
  return c.heap.text(json_of(c.heap, c.value, form));
}

/// A number that a text spells as Python reads it, in base 10; nothing: none.
template <typename Number>
std::optional<Number> spelled(std::string_view text) {
  text = stripped(text, Ends::Both);
  if (text.find('_') != std::string_view::npos) bad("a number with _ is not supported");
  const bool sign = text.starts_with('+');
  if (sign) text.remove_prefix(1);
  Number out = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  if (error == std::errc::result_out_of_range) bad("the number ", text, " is not supported");
  if (error != std::errc() || at != end || text.empty() || (sign && text[0] == '-'))
    return std::nullopt;
  return out;
}

std::int64_t whole_part(double real) {
  if (!(std::abs(real) < 9e18)) bad("the number ", python_number(real), " has no whole part");
  return static_cast<std::int64_t>(real);
}

Value to_int(const FilterCall& c) {
  const Bound bound = c.bind(";default base");
  if (bound.whole(1, 10) != 10) bad("int with another base than 10 is not supported");
  if (c.value.is(Kind::Undefined)) bad("int of ", kind_text(c.value));
  const Value otherwise = bound.get(0) != nullptr ? *bound.get(0) : value_of(std::int64_t{0});
  if (c.value.is_whole()) return value_of(c.value.as_whole());
  if (c.value.is(Kind::Float)) return value_of(whole_part(c.value.real));
  if (!c.value.is(Kind::Text)) return otherwise;
  if (const auto whole = spelled<std::int64_t>(c.value.text->bytes)) return value_of(*whole);
  if (const auto real = spelled<double>(c.value.text->bytes)) return value_of(whole_part(*real));
  return otherwise;
}

Value to_float(const FilterCall& c) {
  const Bound bound = c.bind(";default");
  if (c.value.is(Kind::Undefined)) bad("float of ", kind_text(c.value));
  if (c.value.is_number()) return value_of(c.value.as_real());
  if (c.value.is(Kind::Text)) {
    if (const auto real = spelled<double>(c.value.text->bytes)) return value_of(*real);
  }
  return bound.get(0) != nullptr ? *bound.get(0) : value_of(0.0);
}

Value to_default(const FilterCall& c) {
  const Bound bound = c.bind(";default_value boolean");
  const bool otherwise =
      c.value.is(Kind::Undefined) || (bound.truth(1, false) && !is_true(c.value));
  if (!otherwise) return c.value;
  return bound.get(0) != nullptr ? *bound.get(0) : c.heap.text("");
}

Value to_length(const FilterCall& c) {
  c.bind("");
  if (c.value.is(Kind::Text)) c.heap.spend(std::ssize(c.value.text->bytes) / 64);
  return value_of(length_of(c.value));
}

Value absolute(const FilterCall& c) {
  c.bind("");
  if (!c.value.is_number()) bad("abs of ", kind_text(c.value));
  if (c.value.is(Kind::Float)) return value_of(std::abs(c.value.real));
  const std::int64_t whole = c.value.as_whole();
  if (whole == std::numeric_limits<std::int64_t>::min()) bad("abs of a number too large");
  return value_of(whole < 0 ? -whole : whole);
}

constexpr FilterRow kFilters[] = {
    {"trim", trim},
    {"length", to_length},
    {"count", to_length},
    {"default", to_default},
    {"d", to_default},
    {"upper", [](const FilterCall& c) { return c.bind(""), c.heap.text(upper(c.text())); }},
    {"lower", [](const FilterCall& c) { return c.bind(""), c.heap.text(lower(c.text())); }},
    {"capitalize",
     [](const FilterCall& c) { return c.bind(""), c.heap.text(capitalized(c.text())); }},
    {"title", title},
    {"replace", replace},
    {"indent", indent},
    {"tojson", tojson},
    {"string",
     [](const FilterCall& c) {
       c.bind("");
       return c.value.is(Kind::Text) ? c.value : c.heap.text(c.text());
     }},
    {"safe",
     [](const FilterCall& c) { return c.bind(""), c.heap.text(str(c.heap, c.value), true); }},
    {"int", to_int},
    {"float", to_float},
    {"abs", absolute},
};

const FilterRow* find_filter(std::string_view name) {
  const auto at = std::ranges::find(kFilters, name, &FilterRow::name);
  return at == std::end(kFilters) ? find_item_filter(name) : at;
}

}  // namespace

std::string FilterCall::text() const {
  if (value.is(Kind::Text) && value.text->safe)
    bad(name, " of a text marked safe is not supported");
  std::string out = str(heap, value);
  heap.spend(1 + std::ssize(out) / 64);
  return out;
}

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(Heap& heap, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  heap.spend(1);
  const Deeper deeper(heap);  // map() applies filters
  const FilterRow* const row = find_filter(name);
  if (row == nullptr) bad("the filter '", name, "' is not supported");
  return row->apply({heap, name, value, arguments});
}

}  // namespace tessera::jinja
