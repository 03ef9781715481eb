#pragma once
/// RoBERTa (Liu et al. 2019, arXiv 1907.11692) and what it is called where it learned other texts:
/// BERT that learns masked tokens alone. A sample is one part of the text, as long as there is
/// room; which tokens are masked is drawn anew each time.

#include "tessera/models/masked_lm.h"

namespace tessera {

/// Positions count from 2 in the files that its authors published: rows 0 and 1 of the table are
/// there and nothing reads them.
inline constexpr MaskedModel kRobertaModel = {
    .types = 1,
    .doubled_separator = true,
    .unread_positions = 2,
    .text_head = classifier_block([](Value x) { return tanh(x); }),
    .choice_head = FirstRowHead{.drops_as_layers = true},
};

constexpr ModelFamily roberta_family(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .reads = kMaskedReads,
          .tasks = kOnePartTasks<kRobertaModel>,
          .cuts = kMaskedCuts,
          .special_tokens = kSpecialTokens};
}

}  // namespace tessera
