#pragma once
/// How a dialogue with a model is written: with the chat template of its tokenizer.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tessera/chat/template_files.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// {"role": "user", "content": "Where is Ulm?"}
nlohmann::ordered_json chat_message(const std::string& role, const std::string& content);

/// A plain value that never changes; several threads may use it at a time. The vocabulary outlives
/// it.
class ChatForm {
 public:
  /// Errors: Fault::Usage: a vocabulary that is no tokenizer's; as of ChatTemplates::of.
  explicit ChatForm(const Vocabulary& vocabulary);

  /// The text of these messages, ready for an answer, as tokens. Errors: Fault::Data: what the
  /// template raises, or no text.
  std::vector<std::int32_t> tokens(const nlohmann::ordered_json& messages) const;
  /// The special token that the template writes behind an answer; none: it does not, or changes
  /// what stands before the answer.
  std::optional<std::int32_t> end() const;

 private:
  std::string render(const nlohmann::ordered_json& messages, bool prompt) const;
  const Tokenizer& tokenizer_;
  ChatTemplates templates_;
};

}  // namespace tessera
