#pragma once
/// Data that its tokenizer does not know.

#include <string>

namespace tessera {

struct Dataset;

/// More than half of the tokens of the data stand for what the tokenizer does not know; empty:
/// they do not, or it has no such token.
std::string notice_of_unknown_tokens(const Dataset& data);

}  // namespace tessera
