#include "tessera/models/sentence_files.h"

#include "tessera/token_files/sentence_dataset.h"

namespace tessera {

TokenSampleChoice sentence_choice(const ModelConfig& config, DataPart part,
                                  const SampleChoices& choices, std::int64_t context,
                                  std::int64_t written) {
  TokenSampleChoice out{.part = part,
                        .context = context,
                        .vocabulary = config.vocabulary,
                        .seed = static_cast<std::uint32_t>(choices.seed),
                        .written = written};
  if (choices.in_all > 0) out.samples = choices.in_all;
  return out;
}

TokenFileUse sentence_file_use(const ModelConfig& config, std::int64_t context,
                               std::int64_t written) {
  const auto choice = [config, context, written](const SampleChoices& choices) {
    return sentence_choice(config, DataPart::Train, choices, context, written);
  };
  return {[choice](const TokenFiles& files, const SampleChoices& choices) {
            return sentence_samples_in_epoch(files, choice(choices));
          },
          [choice](const TokenFiles& files, const SampleChoices& choices) {
            return sentence_sample_order(files, choice(choices));
          }};
}

}  // namespace tessera
