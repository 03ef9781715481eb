#pragma once
/// Text from values: `text("hidden ", 12, " of ", shape)`. A type takes part by having
/// `to_text(const T&)`; a function without arguments is asked for its text when it is due: what a
/// message says is made when the message is.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tessera {

std::string number_text(std::int64_t value);
std::string number_text(std::uint64_t value);
/// The shortest decimal that reads back as the same number.
std::string number_text(double value);
std::string number_text(float value);

/// One part of a text: a value that outlives the call, and how it becomes text. What is done with
/// parts is compiled once, not once for each combination of types that a message has.
class TextPart {
 public:
  template <typename T>
  TextPart(const T& part) {  // NOLINT: a part is made of whatever is handed over
    if constexpr (std::is_same_v<T, bool>) {
      view_ = part ? "true" : "false";
    } else if constexpr (std::is_same_v<T, char>) {
      view_ = {&part, 1};
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      view_ = part;
    } else {
      value_ = &part;
      append_ = append<T>;
    }
  }
  void append_to(std::string& out) const {
    append_ == nullptr ? void(out += view_) : append_(out, value_);
  }

 private:
  template <typename T>
  static void append(std::string& out, const void* value) {
    const T& part = *static_cast<const T*>(value);
    if constexpr (std::is_floating_point_v<T>) {
      out += number_text(part);
    } else if constexpr (std::is_unsigned_v<T>) {
      out += number_text(static_cast<std::uint64_t>(part));
    } else if constexpr (std::is_integral_v<T>) {
      out += number_text(static_cast<std::int64_t>(part));
    } else if constexpr (std::is_invocable_v<const T&>) {
      TextPart(part()).append_to(out);
    } else {
      out += to_text(part);  // found beside the type
    }
  }

  std::string_view view_;
  const void* value_ = nullptr;
  void (*append_)(std::string&, const void*) = nullptr;
};

inline void append_text(std::string& out, const TextPart& part) { part.append_to(out); }

std::string text_of(std::initializer_list<TextPart> parts);

template <typename... Parts>
std::string text(const Parts&... parts) {
  return text_of({TextPart(parts)...});
}

/// "a, b, c"
template <typename Items>
std::string join(const Items& items, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    append_text(out, item);
  }
  return out;
}

std::vector<std::string> split(std::string_view line, char separator);
/// Whether a word is among others, with blanks between.
bool is_one_of(std::string_view words, std::string_view word);
std::string_view trim(std::string_view line);
bool starts_with(std::string_view line, std::string_view prefix);

/// 1234567 -> "1,234,567"
std::string grouped(std::int64_t value);
/// 1536 -> "1.50 KiB"
std::string bytes_text(std::int64_t bytes);

/// The known names nearest to `name` by edit distance, best first, at most `count`; far ones are
/// left out.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& known,
                                 int count = 3);

}  // namespace tessera
