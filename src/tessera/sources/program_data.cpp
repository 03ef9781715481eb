#include "tessera/sources/program_data.h"

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"

namespace tessera {

Dataset load_program_data(const RunConfig& config, const KnownModel& model) {
  if (model.vocabulary != nullptr) return program_dataset(*model.vocabulary, config.program_data);
  if (const TokenizerChoice choice = tokenizer_choice(config); !choice.none())
    return program_dataset(Vocabulary::tokenizer(load_tokenizer(choice)), config.program_data);
  require(
      config.model.vocabulary > 0,
      "the program makes the samples, so the number of ids is unknown; give ",
      "vocab-size, or the tokenizer with tokenizer-name-or-path, or with tokenizer-type and its ",
      "files");
  return program_dataset(Vocabulary::ids(config.model.vocabulary - vocabulary_for(config.model, 0)),
                         config.program_data);
}

Dataset refuse_test_of_program(const RunConfig& config, const Dataset&, bool) {
  fail(Fault::Usage, "test-data '", config.test_data.front(), "' does nothing if the program ",
       "makes the samples; leave it out");
}

}  // namespace tessera
