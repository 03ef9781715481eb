/// Vocabularies, as checkpoints record them.

#include "tessera/tokenizers/vocabulary.h"
#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const Vocabulary vocabulary = Vocabulary::from_json(input, "input");
  then([&] {
    const std::string printed = vocabulary.to_json();
    check(Vocabulary::from_json(printed, "printed") == vocabulary, "reads back unequal: ", printed);
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) ids.push_back(id);
    const std::string all = vocabulary.decode(ids);
    check(vocabulary.decode(vocabulary.encode(all)) == all, "text changes in ids: ", printed);
    // Learned tokens may be spelled by others.
    check(vocabulary.kind() == VocabularyKind::Bpe || vocabulary.encode(all) == ids,
          "ids change in text: ", printed);
  });
}

}  // namespace

const Target kTarget = {16 << 20, 256, run};  // two tables of all code points take 9 MiB

}  // namespace tessera::fuzz
