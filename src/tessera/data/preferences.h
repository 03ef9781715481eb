#pragma once
/// Preferences in JSON lines.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "tessera/data/dialogues.h"
#include "tessera/files/json_lines.h"

namespace tessera {

/// A prompt with an answer behind it.
struct AnsweredText {
  std::string text;
  std::size_t prompt = 0;  // its bytes
};

/// Two answers to a prompt: both texts, or both dialogues whose first messages are the prompt.
struct Preference {
  using Answered = std::variant<AnsweredText, Dialogue>;
  Answered chosen, rejected;
  bool same = false;  // the answers are
};

/// What a line holds: "chosen" and "rejected", two texts or two lists of messages, and "prompt", the
/// same. Without a prompt it is what both begin with: the same messages; of texts the same
/// characters, without a blank before the first that differs. A prompt that is a text, and answers
/// that are lists which have it themselves, are understood too. Messages are those of dialogue_of.
///
/// Errors: Fault::Data, with the place: as of dialogue_of; an answer that is empty.
Preference preference_of(std::string_view line, const LinePlace& place);

}  // namespace tessera
