#pragma once
/// Templates as tokens, with the white space around tags taken away.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/chat/jinja/place.h"

namespace tessera::jinja {

enum class TokenKind {
  Data,
  OutputBegin,
  OutputEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Int,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;  // of a string its characters; of a number its digits, without _
  Place place;

  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  bool is_operator(std::string_view t) const { return is(TokenKind::Operator, t); }
  bool is_name(std::string_view t) const { return is(TokenKind::Name, t); }
};

/// The tokens of a template, End behind them; lstrip_blocks and trim_blocks are on, a new line at
/// the end of the template is left out, \r\n is \n. `source` is UTF-8. Errors: PlacedProblem: a
/// character that begins no token; a tag, string or comment without its end.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace tessera::jinja
