/// Token files as a dataset with features.

#include <utility>

#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/sources/token_data.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/train/prepare.h"
#include "tessera/user_code/map_dataset.h"

namespace tessera {

namespace {

class TextSamples final : public MapDataset {
 public:
  TextSamples(std::shared_ptr<const TokenFiles> files, const TokenSampleChoice& choice)
      : files_(std::move(files)),
        context_(choice.context),
        samples_(*files_, choice, notices_),
        size_(choice.samples.value_or(samples_.size())) {}

  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(context_) + 1);
    const auto [dataset, number] = samples_.at(i);
    dataset.read(number, tokens);
    return {{"text", std::move(tokens)}};
  }

 private:
  std::shared_ptr<const TokenFiles> files_;
  std::int64_t context_;
  std::vector<std::string> notices_;
  TokenSamples samples_;
  std::int64_t size_;
};

}  // namespace

NumSamples num_samples(const RunConfig& args) {
  const std::int64_t one_pass = 0;  // epochs are counted in passes
  return {args.epochs > 0 ? one_pass : sample_choices(args).in_all, valid_choices(args).most};
}

Datasets build_train_valid_test_datasets(const RunConfig& args, const NumSamples& wanted) {
  require(!args.data.empty(),
          "data-path is missing; give the prefix of token files, as preprocess_data makes them");
  require(trains_on_token_files(args), "data-path '", args.data.front(),
          "' is not a prefix of token files (PREFIX.bin and PREFIX.idx); make them with ",
          "preprocess_data");
  const Dataset data = load_token_files(args);
  const auto files = std::get<std::shared_ptr<const TokenFiles>>(data.content);
  const std::int64_t ids =
      args.model.vocabulary > 0 ? args.model.vocabulary : data.vocabulary.size();
  const auto part = [&](DataPart which, std::int64_t samples) -> std::shared_ptr<MapDataset> {
    if (!files->has(which)) return nullptr;
    TokenSampleChoice choice{
        which, args.model.context, ids, {}, static_cast<std::uint32_t>(args.seed)};
    if (samples > 0) choice.samples = samples;  // else one pass
    return std::make_shared<TextSamples>(files, choice);
  };
  return {part(DataPart::Train, wanted.train), part(DataPart::Valid, wanted.valid)};
}

}  // namespace tessera
