#include "tessera/train/picture_data.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/data/dataset.h"
#include "tessera/data/images.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

/// The pictures of a file, which fit the model.
std::shared_ptr<const ImageSet> open_pictures(const std::vector<std::string>& paths,
                                              std::string_view field, const ModelConfig& model,
                                              bool may_lack_labels = false) {
  require(paths.size() == 1 && ImageSet::is_name(paths.front()), field, " is ", join(paths),
          "; pictures are one file of safetensors");
  auto out = std::make_shared<const ImageSet>(ImageSet::open(paths.front(), may_lack_labels));
  if (!reads_field(*model.family, "image-size")) return out;  // told as the wrong family
  require(out->height() == model.image_size && out->width() == model.image_size &&
              out->channels() == model.image_channels,
          field, " '", out->path(), "': pictures are ", out->channels(), " x ", out->height(),
          " x ", out->width(), " (channels, height, width), and image-channels ",
          model.image_channels, " with image-size ", model.image_size, " makes them ",
          model.image_channels, " x ", model.image_size, " x ", model.image_size,
          "; give the sizes of the file, or resize the pictures");
  require(model.classes == 0 || out->classes() <= model.classes, field, " '", out->path(),
          "': a picture is of class ", out->classes() - 1, ", but classes is ", model.classes,
          ", numbered from 0; give classes ", out->classes(), " or more, or 0");
  return out;
}

}  // namespace

bool trains_on_pictures(const RunConfig& config) {
  return !config.data.empty() && ImageSet::is_name(config.data.front());
}

Dataset load_pictures(const RunConfig& config, const KnownModel&) {
  constexpr std::string_view kWhat = "pictures", kInstead = "leave it out";
  refuse_given(config, {"vocabulary", "tokenizer", "tokenizer-type", "sample-order"}, kWhat,
               kInstead);
  refuse_given(config, data_fields(rows::kTokenFiles), kWhat, kInstead);
  auto train = open_pictures(config.data, "data", config.model);
  require(!train->of_one_class() || config.given.contains("classes"), "data '", train->path(),
          "': all pictures are of class ", train->label(0), ", so there is nothing to ",
          "classify; give pictures of other classes too, or --classes ", train->classes() + 1,
          " if others follow");
  if (config.valid_data.empty())
    return picture_dataset(Pictures::split(std::move(train), config.held_out));
  auto valid = open_pictures(config.valid_data, "valid-data", config.model);
  return picture_dataset(Pictures::of(std::move(train), std::move(valid)));
}

Dataset load_test_pictures(const RunConfig& config, const Dataset&, bool) {
  const auto all = open_pictures(config.test_data, "test-data", config.model,
                                 /*may_lack_labels=*/true);
  Dataset out = picture_dataset(Pictures::of(all, all));
  out.unlabelled = !all->labelled();
  return out;
}

void complete_from_pictures(RunConfig& config, const Dataset& data) {
  const auto& [train, valid] = *data.pictures();
  if (config.model.classes == 0)
    config.model.classes = std::max(train.set->classes(), valid.set->classes());
}

}  // namespace tessera
