#pragma once
/// A dialogue with a model in the terminal.

#include <istream>
#include <string>
#include <vector>

#include "tessera/launch/console.h"
#include "tessera/tokenizers/vocabulary.h"
#include "tessera/train/generate.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/text_model.h"

namespace tessera {

struct ChatOptions {
  GenerateOptions generate;
  std::vector<std::string> stops;  // texts that end an answer
  std::string system;              // the first message; empty: none
  bool asks = false;               // a sign before each line, and Ctrl-C stops an answer
};

/// Answers each line of `in` until its end: a line is a message of the user, an answer goes on to
/// the token that ends it, or `generate.tokens`. Lines that are no messages: /clear and
/// /system TEXT begin the dialogue anew.
void chat(TextModel& model, RankGroup& group, const Vocabulary& vocabulary,
          const ChatOptions& options, std::istream& in, Console& console);

}  // namespace tessera
