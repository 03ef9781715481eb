#pragma once
/// The pieces that a text is split into before byte-pair encoding: no token goes beyond one.

#include <string_view>

namespace tessera {

/// Takes the next piece off the front of `utf8`, which is not empty.
///
/// A piece is a tab or a newline, each alone; or what GPT-2 takes for one between them: the ends of
/// English contractions ('s, 't, 're, 've, 'm, 'll, 'd); letters, numbers, or other characters,
/// each with the blank before them; a run of white space, but for the blank that belongs to the
/// piece behind it. A byte that is not UTF-8 is an other character. Joined, the pieces are the
/// text.
///
/// Source: the pattern of GPT-2's encoder (Radford et al. 2019); tabs and newlines are its runs of
/// white space there.
std::string_view take_piece(std::string_view& utf8);

}  // namespace tessera
