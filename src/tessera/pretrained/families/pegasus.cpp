/// PEGASUS as Hugging Face's folders have it: PegasusForConditionalGeneration.

#include "tessera/pretrained/families/bart.h"

namespace tessera {

extern const ModelFamily kPegasus;

namespace {

constexpr auto kPegasusNames = joined(kBartTable, kBartLastNorms, kBartLogitBias);

constexpr std::span<const HubKey> kPegasusBlocks[] = {kBartKeys,
                                                      kBartFormKeys<kPegasusForm, 50265>};

constexpr HubClass kPegasusClasses[] = {{TaskHead::Seq2SeqLm, "PegasusForConditionalGeneration"}};

}  // namespace

extern constinit const HubFamily kHubPegasus = bart_folders({
    .model_type = "pegasus",
    .classes = kPegasusClasses,
    .base_class = "PegasusModel",
    .family = &kPegasus,
    .names = kPegasusNames,
    .constants = kBartSines<true>,
    .keys = kPegasusBlocks,
    .read = read_bart_with_sines<0, 0, 1>,
    .write = write_bart_stacks,
});

}  // namespace tessera
