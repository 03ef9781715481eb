#include "tessera/chat/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <string>

#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/characters.h"

namespace tessera::jinja {

namespace {

std::string with_plain_newlines(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += source.substr(i + 1).starts_with('\n');
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char32_t c) {
  if (c < 0x80) return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return kind_of(c) == CharacterKind::Letter;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    add(TokenKind::End, "", at_);
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  Place place_of(std::size_t at) {
    if (at < counted_) counted_ = line_begin_ = 0, line_ = 1;
    for (; counted_ < at; ++counted_) {
      if (source_[counted_] != '\n') continue;
      ++line_;
      line_begin_ = counted_ + 1;
    }
    return {line_, static_cast<int>(at - line_begin_) + 1};
  }

  void add(TokenKind kind, std::string text, std::size_t at) {
    out_.push_back({kind, std::move(text), place_of(at)});
  }

  /// Text up to the next tag, and the tag.
  void data() {
    std::size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 == source_.size()) {
        add(TokenKind::Data, source_.substr(at_), at_);
        at_ = source_.size();
        return;
      }
      if (std::string_view("%{#").find(source_[tag + 1]) != std::string_view::npos) break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    const std::size_t begin = at_;
    at_ = tag + 2;
    const char sign = at_ < source_.size() ? source_[at_] : ' ';
    if (sign == '-' || sign == '+') ++at_;
    add_data(begin, tag, sign, kind == '{');
    if (kind == '#') return comment(tag);
    if (kind == '%' && raw(tag)) return;
    add(kind == '{' ? TokenKind::OutputBegin : TokenKind::BlockBegin, "", tag);
    inside(kind == '{', tag);
  }

  /// Text before a tag, without what the tag takes away of it.
  void add_data(std::size_t begin, std::size_t end, char sign, bool is_output) {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      text = stripped(text, Ends::Right);
    } else if (sign != '+' && !is_output) {
      const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const bool starts = begin == 0 || source_[begin - 1] == '\n';
      if ((line > 0 || starts) && stripped(text.substr(line), Ends::Left).empty())
        text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::Data, std::string(text), begin);
  }

  void skip_space() { at_ = source_.size() - stripped(rest(), Ends::Left).size(); }

  /// Whether a tag ends here, as "%}": then what it takes away behind it is passed, too.
  bool ends(std::string_view tag) {
    const char sign = rest().empty() ? ' ' : rest().front();
    const bool signed_end =
        (sign == '-' || (sign == '+' && tag != "}}")) && rest().substr(1).starts_with(tag);
    if (!signed_end && !rest().starts_with(tag)) return false;
    at_ += tag.size() + signed_end;
    if (signed_end && sign == '-') {
      skip_space();
    } else if (!signed_end && tag != "}}" && rest().starts_with('\n')) {
      ++at_;  // trim_blocks
    }
    return true;
  }

  void comment(std::size_t tag) {
    const Place place = place_of(tag);
    for (; at_ < source_.size(); ++at_) {
      if (ends("#}")) return;
    }
    bad_at(place, "the comment has no end '#}'");
  }

  /// {% raw %}: what is in it is text.
  bool raw(std::size_t tag) {
    const std::size_t begin = at_;
    skip_space();
    if (!rest().starts_with("raw")) return at_ = begin, false;
    at_ += 3;
    skip_space();
    const bool strips = rest().starts_with("-%}");
    if (!strips && !rest().starts_with("%}")) return at_ = begin, false;
    at_ += strips ? 3 : 2;
    if (strips) skip_space();
    const std::size_t first = at_;
    for (; at_ < source_.size(); ++at_) {
      if (!rest().starts_with("{%")) continue;
      const std::size_t end = at_;
      at_ += 2;
      const char sign = rest().empty() ? ' ' : rest().front();
      if (sign == '-' || sign == '+') ++at_;
      skip_space();
      if (rest().starts_with("endraw")) {
        at_ += 6;
        skip_space();
        if (ends("%}")) return add_data(first, end, sign, false), true;
      }
      at_ = end;
    }
    bad_at(place_of(tag), "{% raw %} has no {% endraw %}");
  }

  /// The tokens of a tag, up to its end.
  void inside(bool is_output, std::size_t tag) {
    std::string open;  // brackets
    while (true) {
      skip_space();
      if (at_ >= source_.size())
        bad_at(place_of(tag), "the tag has no end '", is_output ? "}}" : "%}", "'");
      const std::size_t at = at_;
      if (open.empty() && ends(is_output ? "}}" : "%}"))
        return add(is_output ? TokenKind::OutputEnd : TokenKind::BlockEnd, "", at);
      const char c = source_[at_];
      if (is_digit(c)) {
        number();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else if (begins_name(code_point_at(source_, at_).value)) {
        name();
      } else {
        operator_(open);
      }
    }
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < source_.size()) {
      const CodePoint c = code_point_at(source_, at_);
      const bool belongs = begins_name(c.value) || is_digit(source_[at_]);
      if (!belongs) break;
      at_ += static_cast<std::size_t>(c.size);
    }
    add(TokenKind::Name, source_.substr(begin, at_ - begin), begin);
  }

  void digits() {
    while (at_ < source_.size() &&
           (is_digit(source_[at_]) ||
            (source_[at_] == '_' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]))))
      ++at_;
  }

  void number() {
    const std::size_t begin = at_;
    bool real = false;
    digits();
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    if (!after_dot && rest().size() > 1 && rest()[0] == '.' && is_digit(rest()[1])) {
      real = true;
      ++at_;
      digits();
    }
    const std::string_view next = rest();
    const std::size_t sign = next.size() > 1 && (next[1] == '+' || next[1] == '-') ? 2 : 1;
    if (!after_dot && next.size() > sign && (next[0] == 'e' || next[0] == 'E') &&
        is_digit(next[sign])) {
      real = true;
      at_ += sign;
      digits();
    }
    std::string text = source_.substr(begin, at_ - begin);
    std::erase(text, '_');
    const bool zeros = text.find_first_not_of('0') == std::string::npos;
    if (!real && text.size() > 1 && text[0] == '0' && !zeros)
      bad_at(place_of(begin), "a number that begins with 0: ", text);
    if (at_ < source_.size() && begins_name(code_point_at(source_, at_).value))
      bad_at(place_of(begin), "the number ", text, " is followed by a letter; it is not supported");
    add(real ? TokenKind::Float : TokenKind::Int, std::move(text), begin);
  }

  void string(char quote) {
    const std::size_t begin = at_++;
    std::string out;
    while (true) {
      if (at_ >= source_.size()) bad_at(place_of(begin), "the string has no end ", quote);
      const char c = source_[at_++];
      if (c == quote) break;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= source_.size()) bad_at(place_of(begin), "the string has no end ", quote);
      escape(out, begin);
    }
    add(TokenKind::String, std::move(out), begin);
  }

  /// What a backslash stands for, in Python's way.
  void escape(std::string& out, std::size_t begin) {
    const char c = source_[at_++];
    constexpr std::string_view kNames = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t at = kNames.find(c); at != std::string_view::npos) {
      out += kMeanings[at];
    } else if (c == '\n') {  // the line goes on
    } else if (c == 'x') {
      code(out, 2, begin);
    } else if (c == 'u') {
      code(out, 4, begin);
    } else if (c == 'U') {
      code(out, 8, begin);
    } else if (c == 'N' || is_digit(c)) {
      bad_at(place_of(begin), "the escape \\", c, " in a string is not supported");
    } else {
      out += '\\';
      out += c;
    }
  }

  void code(std::string& out, std::size_t count, std::size_t begin) {
    const std::string_view hex = rest().substr(0, count);
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (hex.size() < count || hex.find_first_not_of(kHex) != std::string_view::npos)
      bad_at(place_of(begin), "an escape in the string lacks some of its ", count, " digits");
    const unsigned long value = std::stoul(std::string(hex), nullptr, 16);
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      bad_at(place_of(begin), "an escape in the string is no character: ", hex);
    append_utf8(out, static_cast<char32_t>(value));
    at_ += count;
  }

  void operator_(std::string& open) {
    static constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
    const std::size_t begin = at_;
    std::string_view found = rest().substr(0, 2);
    if (std::ranges::find(kLong, found) == kLong.end()) found = found.substr(0, 1);
    if (found.size() == 1 && kShort.find(found) == std::string_view::npos) {
      const CodePoint c = code_point_at(source_, at_);
      bad_at(place_of(at_), "'", rest().substr(0, static_cast<std::size_t>(std::max(c.size, 1))),
             "' begins nothing that a template has");
    }
    if (found == "(" || found == "[" || found == "{") {
      open += found == "(" ? ')' : found == "[" ? ']' : '}';
    } else if (found == ")" || found == "]" || found == "}") {
      if (open.empty() || open.back() != found[0])
        bad_at(place_of(begin), "'", found, "' closes nothing that is open",
               open.empty() ? "" : text("; '", open.back(), "' is due"));
      open.pop_back();
    }
    at_ += found.size();
    add(TokenKind::Operator, std::string(found), begin);
  }

  std::string source_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0, line_begin_ = 0;  // of place_of
  int line_ = 1;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace tessera::jinja
