#include "tessera/sources/picture_data.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/data/dataset.h"
#include "tessera/data/images.h"
#include "tessera/data/picture_folder.h"
#include "tessera/data/row_labels.h"
#include "tessera/models/family.h"
#include "tessera/models/task_kind.h"

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

bool in_files(const RunConfig& config, const std::vector<std::string>& paths) {
  return !paths.empty() && !ImageSet::is_name(paths.front()) &&
         has_task(config.model, kImageClassification) && may_hold_pictures(paths.front());
}

/// How files become what the model reads.
ImageProcessor processor_of(const RunConfig& config) {
  const ModelConfig& model = config.model;
  constexpr std::string_view kField = "image-processor";
  try {
    const ImageProcessor out = parse_image_processor(config.image_processor, model.image_size);
    require(out.out_height() == model.image_size && out.out_width() == model.image_size, kField,
            " makes pictures of ", out.out_height(), " x ", out.out_width(), ", and image-size is ",
            model.image_size, "; give ", kField, " with another size or crop_size");
    require(model.image_channels == 1 || model.image_channels == 3, "image-channels is ",
            model.image_channels, "; pictures in files have 3, or in grey 1");
    for (const auto* const numbers : {&out.mean, &out.std})
      require(numbers->size() == 1 || std::ssize(*numbers) == model.image_channels, kField, " has ",
              numbers->size(), " numbers in image_mean or image_std, and image-channels is ",
              model.image_channels, "; give as many, or one");
    return out;
  } catch (const Error& error) {
    throw error.with(text("in ", kField, " ", config.image_processor));
  }
}

std::shared_ptr<const PictureFolder> open_files(const RunConfig& config,
                                                const std::vector<std::string>& paths,
                                                PictureList list, std::vector<std::string> names,
                                                bool mixed) {
  return std::make_shared<const PictureFolder>(
      paths.front(), std::move(list),
      PictureFolderOptions{processor_of(config), config.model.image_channels, std::move(names),
                           mixed, config.skip_bad_rows});
}

void require_several_classes(const PictureSet& train, const std::string& name,
                             const RunConfig& config) {
  require(!train.of_one_class() || config.given.contains("classes"), "data '", train.path(),
          "': all pictures are of class ", name, ", so there is nothing to ",
          "classify; give pictures of other classes too, or --classes ", train.classes() + 1,
          " if others follow");
}

/// Weights whose folder or run does not say how pictures were made for them. Empty: it is not so.
std::string notice_of_unknown_processor(const RunConfig& config, const std::string& model) {
  if (!config.image_processor.empty() || model.empty()) return "";
  return text(model, " does not say how pictures are made for it, as preprocessor_config.json ",
              "does; they are read by image-processor ", to_text(processor_of(config)));
}

/// Two notices, of which some may be empty.
std::string both(std::string first, const std::string& second) {
  if (!first.empty() && !second.empty()) first += "; ";
  return first + second;
}

Dataset load_picture_files(const RunConfig& config, const KnownModel& model) {
  PictureParts parts =
      config.data.size() == 1 ? picture_parts(config.data.front()) : PictureParts{};
  const std::vector<std::string> paths =
      parts.train.empty() ? config.data : std::vector{parts.train};
  std::vector<std::string> valid_paths = config.valid_data;
  if (valid_paths.empty() && !parts.valid.empty()) valid_paths = {parts.valid};
  PictureList list = list_pictures(paths);
  std::vector<std::string> labels;
  for (const ListedPicture& picture : list.pictures) {
    if (picture.label.empty())
      fail(Fault::Data, "'", picture.path, "' has no class; put pictures into a folder for each ",
           "class, as FOLDER/cat/1.jpg, or write FOLDER/metadata.csv with columns file_name and ",
           "label");
    labels.push_back(picture.label);
  }
  const std::vector<std::string> names =
      chosen_label_names(labels, model.labels, model.keeps_labels).names;
  require(config.model.classes == 0 || std::ssize(names) <= config.model.classes, "classes is ",
          config.model.classes, ", but the pictures of '", paths.front(), "' are of ", names.size(),
          " classes: ", label_names_text(names), "; give 0 or at least ", names.size());
  auto train = open_files(config, paths, std::move(list), names, valid_paths.empty());
  require_several_classes(*train, label_names_text({labels.data(), 1}), config);
  std::string notice = train->notice(), valid_notice;
  Pictures pictures;
  if (valid_paths.empty()) {
    pictures = Pictures::split(std::move(train), config.held_out);
  } else {
    PictureList held = list_pictures(valid_paths);
    if (!held.labelled())
      fail(Fault::Data, "'", valid_paths.front(), "' has pictures without a class; put them into ",
           "a folder for each class, as those that train");
    auto valid = open_files(config, valid_paths, std::move(held), names, false);
    valid_notice = valid->notice();
    pictures = Pictures::of(std::move(train), std::move(valid));
  }
  Dataset out = picture_dataset(std::move(pictures));
  out.label_names = names;
  out.notice = both(both(notice, valid_notice),
                    notice_of_unknown_processor(
                        config, config.init_from.empty() ? "" : text("'", config.init_from, "'")));
  return out;
}

/// Numbers, where nobody named the classes.
std::vector<std::string> class_names(const std::vector<std::string>& known, std::int64_t classes) {
  std::vector<std::string> out = known;
  for (std::int64_t i = 0; known.empty() && i < classes; ++i) out.push_back(text(i));
  return out;
}

}  // namespace

bool trains_on_pictures(const RunConfig& config) {
  return !config.data.empty() &&
         (ImageSet::is_name(config.data.front()) || in_files(config, config.data));
}

bool reads_picture_files(const RunConfig& config) {
  return in_files(config, config.data) || in_files(config, config.test_data);
}

Dataset load_pictures(const RunConfig& config, const KnownModel& model) {
  constexpr std::string_view kWhat = "pictures", kInstead = "leave it out";
  refuse_given(config, {"vocabulary", "tokenizer", "tokenizer-type", "sample-order"}, kWhat,
               kInstead);
  refuse_given(config, data_fields(rows::kTokenFiles), kWhat, kInstead);
  if (in_files(config, config.data)) return load_picture_files(config, model);
  std::vector<std::string_view> of_files = data_fields(rows::kPictures);
  of_files.emplace_back("skip-bad-rows");
  refuse_given(config, of_files, "a file of tensors", "leave it out, or give a folder of pictures");
  auto train = open_pictures(config.data, "data", config.model);
  require_several_classes(*train, text(train->label(0)), config);
  if (config.valid_data.empty())
    return picture_dataset(Pictures::split(std::move(train), config.held_out));
  auto valid = open_pictures(config.valid_data, "valid-data", config.model);
  return picture_dataset(Pictures::of(std::move(train), std::move(valid)));
}

Dataset load_test_pictures(const RunConfig& config, const Dataset& trained, bool reads_labels) {
  const std::vector<std::string>& paths = config.test_data;
  if (!in_files(config, paths)) {
    const auto all = open_pictures(paths, "test-data", config.model, /*may_lack_labels=*/true);
    Dataset out = picture_dataset(Pictures::of(all, all));
    out.unlabelled = !all->labelled();
    out.label_names = trained.label_names;
    return out;
  }
  if (const PictureParts parts = picture_parts(paths.front()); !parts.train.empty())
    fail(Fault::Usage, "'", paths.front(), "' has several parts; give one of them, as '",
         parts.test.empty() ? parts.train : parts.test, "'");
  PictureList list = list_pictures(paths);
  const std::vector<std::string> names = class_names(trained.label_names, config.model.classes);
  const LabelNumbers numbers(names);
  const bool known = std::ranges::all_of(
      list.pictures, [&](const ListedPicture& picture) { return numbers.of(picture.label) >= 0; });
  if (!reads_labels && !known)
    for (ListedPicture& picture : list.pictures) picture.label.clear();
  const auto all = open_files(config, paths, std::move(list), names, false);
  Dataset out = picture_dataset(Pictures::of(all, all));
  out.unlabelled = !all->labelled();
  out.label_names = trained.label_names;
  out.notice = both(all->notice(), notice_of_unknown_processor(config, "the model"));
  return out;
}

void settle_pictures(RunConfig& config, const Dataset&) {
  if (in_files(config, config.data)) config.image_processor = to_text(processor_of(config));
}

void complete_from_pictures(RunConfig& config, const Dataset& data) {
  const auto& [train, valid] = *data.pictures();
  if (config.model.classes > 0) return;
  config.model.classes = data.label_names.empty()
                             ? std::max(train.set->classes(), valid.set->classes())
                             : std::ssize(data.label_names);
}

}  // namespace tessera
