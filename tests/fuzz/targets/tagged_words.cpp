/// Sentences of tagged words: CoNLL, or JSON lines where the input begins with a brace.

#include "tessera/data/tagged_words.h"
#include "fuzz/target.h"
#include "tessera/data/tag_scores.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const auto sentences =
      parse_tagged_words(input, input.starts_with('{') ? "input.jsonl" : "input.txt");
  then([&] {
    check(!sentences.empty(), "a file without a sentence");
    for (const TaggedSentence& sentence : sentences) {
      check(!sentence.words.empty(), "a sentence without a word");
      check(sentence.words.size() == sentence.tags.size(), "words and tags");
      std::int64_t before = -1;
      for (const Entity& entity : entities_of(sentence.tags)) {
        check(before < entity.first && entity.first <= entity.last, "entities in their order");
        before = entity.last;
      }
      check(before < std::ssize(sentence.words), "an entity behind the words");
    }
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
