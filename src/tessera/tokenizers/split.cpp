#include "tessera/tokenizers/split.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera::tokenizer {

namespace {

constexpr std::string_view kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                           "MergedWithNext", "Contiguous"};

/// A match joins what was before it in the order of the spans.
void join_matches(Spans& spans, bool at_the_end) {
  Spans out;
  bool before = false;  // the span before was a match
  for (const Span& span : spans) {
    if (span.match && !before && !out.empty()) {
      (at_the_end ? out.back().end : out.back().begin) = at_the_end ? span.end : span.begin;
    } else {
      out.push_back(span);
    }
    before = span.match;
  }
  spans = std::move(out);
}

}  // namespace

SplitBehavior behavior_of(const JsonPart& part, std::string_view missing) {
  const std::string name =
      missing.empty() ? part.text("behavior") : part.text("behavior", std::string(missing));
  const auto* const found = std::ranges::find(kBehaviors, name);
  if (found == std::end(kBehaviors))
    part.bad("behavior '", name.substr(0, 60), "' is none of ", join(kBehaviors),
             "; restore the file");
  return static_cast<SplitBehavior>(found - kBehaviors);
}

void split_at(const Piece& piece, Spans& spans, SplitBehavior behavior, PieceSink sink) {
  if (behavior == SplitBehavior::MergedWithPrevious) join_matches(spans, true);
  if (behavior == SplitBehavior::MergedWithNext) {
    std::ranges::reverse(spans);
    join_matches(spans, false);
    std::ranges::reverse(spans);
  }
  if (behavior == SplitBehavior::Contiguous) {
    Spans joined;
    for (const Span& span : spans) {
      if (!joined.empty() && joined.back().match == span.match) {
        joined.back().end = span.end;
      } else {
        joined.push_back(span);
      }
    }
    spans = std::move(joined);
  }
  const bool removes = behavior == SplitBehavior::Removed;
  for (const Span& span : spans) {
    if (!(removes && span.match)) hand_on(piece, span.begin, span.end, sink);
  }
}

}  // namespace tessera::tokenizer
