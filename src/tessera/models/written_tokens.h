#pragma once
/// The tokens that a task's texts begin with, may have and end with.

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/models/task.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

using Tokens = std::vector<std::int32_t>;

/// What a text is written from.
struct Beginning {
  Tokens source;  // with the end token; empty where the model writes from none
  Tokens prompt;  // the first tokens; not empty
};

/// How a user's text begins: as the source of what is written, where the task has sources; else as
/// its first tokens, a new line where there are none.
Beginning beginning_of(const TextWriting& writing, const Vocabulary& vocabulary, Tokens text);

/// What may be written, counted from 0: the tokens of the vocabulary, then the end where there is
/// one. A model's own vocabulary may be wider.
struct WrittenTokens {
  std::int32_t vocabulary;
  std::optional<std::int32_t> end;
  Tokens never;  // tokens of the vocabulary that no text of the task has

  WrittenTokens(const Vocabulary& of, const TextWriting& writing);
  std::int64_t count() const { return vocabulary + (end ? 1 : 0); }
  bool ends(std::int32_t choice) const { return choice == vocabulary; }
  /// The logits of these, from those of all ids.
  std::vector<double> choices(std::vector<double> logits) const;
};

}  // namespace tessera
