#pragma once
/// Texts that a called model writes.

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/apps/sample_request.h"
#include "tessera/models/written_tokens.h"
#include "tessera/user_code/called_model.h"

namespace tessera {

/// What a text is written from: words, or the ids of tokens as they are.
using GivenPrompt = std::variant<std::string, Tokens>;

struct WrittenText {
  std::string text;  // empty where the model has no tokenizer
  Tokens ids;        // without the prompt and the end
};

/// What a program hears while texts are written; both may be null.
struct TextListener {
  /// A piece of UTF-8 of a text, by its number.
  std::function<void(std::size_t text, std::string_view piece)> on_piece = nullptr;
  /// Asked after each token: true ends all texts.
  std::function<bool()> ends = nullptr;
};

/// `request.samples` texts behind each prompt, prompt after prompt, as `tessera sample` writes them.
/// `request.command` is not looked at. Errors: as of fit_to_task and beginnings_of; Fault::Usage: no
/// prompts; a model that writes no text; words for a model without a tokenizer; an id that the model
/// lacks, or none.
std::vector<WrittenText> write_texts(CalledModel& model, const std::vector<GivenPrompt>& prompts,
                                     SampleRequest request, const TextListener& listener = {});

}  // namespace tessera
