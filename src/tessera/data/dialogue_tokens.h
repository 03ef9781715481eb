#pragma once
/// Dialogues as tokens, and which of them a model learns.

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/chat/template_files.h"
#include "tessera/data/dialogue_choices.h"
#include "tessera/data/dialogues.h"

namespace tessera {

class Tokenizer;

/// "2024-07-26" as a time, its midnight. Errors: Fault::Usage: no such day.
std::tm day_of(const std::string& date);

struct DialogueTokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> counts;  // of each: 1: it is learned
};

/// Spans of bytes of a text.
using ByteSpans = std::vector<std::pair<std::size_t, std::size_t>>;
/// A text as tokens, of which those with a part of a span count. Errors: Fault::Data: a token stands
/// on both sides of an end, and the tokenizer's tokens cannot be placed.
DialogueTokens tokens_of_spans(const Tokenizer& tokenizer, const std::string& text,
                               const ByteSpans& spans, DialogueLoss loss);

/// The variables of a template: the tokenizer's bos_token and so on, and what `dialogue` has.
nlohmann::ordered_json chat_variables(const Dialogue& dialogue, const Tokenizer& tokenizer);

/// A dialogue's tokens are those of its whole text, as the template writes it; special tokens in it
/// are theirs, and none is added. Answers are what {% generation %} blocks write; of a template
/// without them, what a message of the assistant adds to the text of those before it with
/// add_generation_prompt, but for what it writes behind the last message alone. A token with a part of an answer is one of the answer.
class DialogueEncoder {
 public:
  /// The tokenizer outlives it. Errors: as of ChatTemplates::of.
  DialogueEncoder(const Tokenizer& tokenizer, DialogueLoss loss, const std::tm& day);
  /// Errors: Fault::Data: what the template raises; answers that are not found so.
  DialogueTokens encode(const Dialogue& dialogue) const;

 private:
  ByteSpans answers(const Dialogue& dialogue, const RenderedChat& whole,
                    const std::vector<std::int32_t>& ids) const;
  std::string before_all(const Dialogue& dialogue) const;  // ready for an answer
  RenderedChat render(const Dialogue& dialogue, std::size_t messages, bool prompt) const;

  const Tokenizer& tokenizer_;
  ChatTemplates templates_;
  DialogueLoss loss_;
  std::tm day_;
};

}  // namespace tessera
