#include "tessera/train/program_data.h"

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"

namespace tessera {

Dataset load_program_data(const RunConfig& config, const KnownModel& model) {
  if (model.vocabulary != nullptr) return program_dataset(*model.vocabulary, config.program_data);
  if (const TokenizerChoice choice = tokenizer_choice(config); !choice.none())
    return program_dataset(Vocabulary::tokenizer(load_tokenizer(choice)), config.program_data);
  require(config.model.vocabulary > 0,
          "the samples are the program's own, and nothing says how many ids there are; give ",
          "vocab-size, or the tokenizer by tokenizer-name-or-path, or by tokenizer-type and its ",
          "files");
  return program_dataset(
      Vocabulary::ids(config.model.vocabulary - vocabulary_for(config.model.family, 0)),
      config.program_data);
}

Dataset refuse_test_of_program(const RunConfig& config, const Dataset&, bool) {
  fail(Fault::Usage, "test-data '", config.test_data.front(), "' does nothing where a program ",
       "makes the samples itself; leave it out");
}

}  // namespace tessera
