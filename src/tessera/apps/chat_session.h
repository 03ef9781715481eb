#pragma once
/// A dialogue with a model in the terminal.

#include <istream>
#include <optional>
#include <string>

#include "tessera/apps/sample_request.h"
#include "tessera/chat/template_files.h"
#include "tessera/launch/console.h"
#include "tessera/train/text_model.h"

namespace tessera {

/// How a dialogue is written: with the chat template of a tokenizer.
class ChatForm {
 public:
  /// Errors: Fault::Usage: a vocabulary that is no tokenizer's; as of ChatTemplates::of.
  explicit ChatForm(const Vocabulary& vocabulary);

  /// The text of these messages, ready for an answer, as tokens.
  Tokens tokens(const nlohmann::ordered_json& messages) const;
  /// The special token that the template writes behind an answer; none: it does not, or changes
  /// what stands before the answer.
  std::optional<std::int32_t> end() const;

 private:
  std::string render(const nlohmann::ordered_json& messages, bool prompt) const;
  const Tokenizer& tokenizer_;
  ChatTemplates templates_;
};

/// Answers each line of `in` until its end: a line is a message of the user, an answer goes on to
/// the token that ends it, or `request.options.tokens`. `asks`: a sign before each line.
void chat(TextModel& model, const Vocabulary& vocabulary, const SampleRequest& request,
          std::istream& in, bool asks, Console& console);

}  // namespace tessera
