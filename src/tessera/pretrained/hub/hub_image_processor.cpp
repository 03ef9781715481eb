#include "tessera/pretrained/hub/hub_image_processor.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

namespace {

/// A class of transformers, with its own values.
struct ProcessorClass {
  std::string_view name;  // also with Fast or Pil behind it
  std::int64_t side;
  bool square;        // a single number for `size` is of both sides; else of the shorter one
  std::int64_t crop;  // 0: there is none
  Resample resample;
  std::vector<double> mean, std;
};

const ProcessorClass& processor_class(const HubConfig& config) {
  static const std::vector<ProcessorClass> kClasses = {
      {"ViTImageProcessor", 224, true, 0, Resample::Bilinear, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
      {"DeiTImageProcessor", 256, true, 224, Resample::Bicubic, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
      {"BitImageProcessor",
       224,
       false,
       224,
       Resample::Bicubic,
       {0.48145466, 0.4578275, 0.40821073},
       {0.26862954, 0.26130258, 0.27577711}}};
  constexpr std::string_view kEarlier = "FeatureExtractor", kNow = "ImageProcessor";
  for (const char* const key : {"image_processor_type", "feature_extractor_type"}) {
    if (!config.has(key)) continue;
    std::string name = config.word(key);
    for (const std::string_view end : {"Fast", "Pil"})
      if (name.ends_with(end)) name.resize(name.size() - end.size());
    if (name.ends_with(kEarlier))
      name.replace(name.size() - kEarlier.size(), kEarlier.size(), kNow);
    const auto found = std::ranges::find(kClasses, name, &ProcessorClass::name);
    if (found == kClasses.end())
      config.refuse(key,
                    "known are ViTImageProcessor, DeiTImageProcessor and BitImageProcessor; "
                    "say with image-processor what it does");
    return *found;
  }
  return kClasses.front();
}

constexpr std::int64_t kMostHubSide = 16384;

bool truth_or(const HubConfig& config, std::string_view key, bool standard) {
  return config.has(key) ? config.truth(key) : standard;
}

/// {"height": 224, "width": 224}, {"shortest_edge": 256}, or a number.
void read_sides(const HubConfig& config, std::string_view key, std::int64_t& height,
                std::int64_t& width, std::int64_t* edge) {
  const HubJson& value = *config.find(key);
  if (!value.is_object()) {
    height = config.whole(key, 1, kMostHubSide);
    if (edge != nullptr) *edge = height;
    width = height;
    return;
  }
  const HubConfig sides(value.dump(), text(config.path(), ": ", key));
  if (edge != nullptr && sides.has("shortest_edge") && !sides.has("longest_edge")) {
    *edge = sides.whole("shortest_edge", 1, kMostHubSide);
    height = width = 0;
    return;
  }
  if (!sides.has("height") || !sides.has("width"))
    config.refuse(key, "it must have height and width, or, of size, shortest_edge");
  height = sides.whole("height", 1, kMostHubSide);
  width = sides.whole("width", 1, kMostHubSide);
  if (edge != nullptr) *edge = 0;
}

std::vector<double> read_numbers(const HubConfig& config, std::string_view key,
                                 const std::vector<double>& standard) {
  if (!config.has(key)) return standard;
  const HubJson& value = *config.find(key);
  std::vector<double> out;
  for (const HubJson& each : value.is_array() ? value : HubJson::array({value})) {
    if (!each.is_number()) config.refuse(key, "it must be numbers");
    out.push_back(each.get<double>());
  }
  if (out.empty()) config.refuse(key, "it must be numbers, one for each channel");
  return out;
}

/// Work that is asked for and would not be done.
void refuse_other_work(const HubConfig& config) {
  constexpr std::string_view kKnown[] = {"do_resize", "do_center_crop", "do_rescale",
                                         "do_normalize", "do_convert_rgb"};
  for (const auto& [key, value] : config.json().items()) {
    if (!key.starts_with("do_") || std::ranges::find(kKnown, key) != std::end(kKnown)) continue;
    if (!value.is_null() && value != false)
      config.refuse(key, "that is not known here; say with image-processor what to do");
  }
  if (!truth_or(config, "do_resize", true))
    config.refuse("do_resize", "pictures are always resized; say with image-processor to what");
}

Resample read_resample(const HubConfig& config, Resample standard) {
  constexpr std::int64_t kLanczos = 1, kBicubic = 3;  // of Pillow
  if (!config.has("resample")) return standard;
  switch (config.whole("resample", 0, 5)) {
    case kLanczos: return Resample::Lanczos;
    case 2: return Resample::Bilinear;
    case kBicubic: return Resample::Bicubic;
    default: config.refuse("resample", "known are 1 (lanczos), 2 (bilinear) and 3 (bicubic)");
  }
}

}  // namespace

std::string read_image_processor(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kHubImageProcessor).string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  const HubConfig config(read_file(path, Fault::Data), path);
  const ProcessorClass& usual = processor_class(config);
  refuse_other_work(config);
  ImageProcessor out{.height = usual.square ? usual.side : 0,
                     .width = usual.square ? usual.side : 0,
                     .shortest_edge = usual.square ? 0 : usual.side,
                     .resample = read_resample(config, usual.resample),
                     .mean = read_numbers(config, "image_mean", usual.mean),
                     .std = read_numbers(config, "image_std", usual.std)};
  if (config.has("size")) {
    std::int64_t edge = 0;
    read_sides(config, "size", out.height, out.width, &edge);
    const bool one_number = edge > 0 && out.height > 0;
    out.shortest_edge = one_number && usual.square ? 0 : edge;
    if (out.shortest_edge > 0) out.height = out.width = 0;
  }
  if (truth_or(config, "do_center_crop", usual.crop > 0)) {
    out.crop_height = out.crop_width = usual.crop > 0 ? usual.crop : usual.side;
    if (config.has("crop_size"))
      read_sides(config, "crop_size", out.crop_height, out.crop_width, nullptr);
  }
  if (config.has("rescale_factor"))
    out.rescale_factor = config.number("rescale_factor", 1e-12, 1e12);
  if (!truth_or(config, "do_rescale", true)) out.rescale_factor = 1;
  if (!truth_or(config, "do_normalize", true)) {
    out.mean = {0};
    out.std = {1};
  }
  return to_text(out);
}

std::string image_processor_json(const ImageProcessor& p, std::int64_t channels) {
  const auto each = [&](std::vector<double> numbers) {
    if (numbers.size() == 1) numbers.resize(static_cast<std::size_t>(channels), numbers[0]);
    return numbers;
  };
  HubJson out = HubJson::object();
  out["do_resize"] = true;
  if (p.shortest_edge > 0)
    out["size"] = {{"shortest_edge", p.shortest_edge}};
  else
    out["size"] = {{"height", p.height}, {"width", p.width}};
  out["do_center_crop"] = p.crop_height > 0;
  if (p.crop_height > 0) out["crop_size"] = {{"height", p.crop_height}, {"width", p.crop_width}};
  out["resample"] = p.resample == Resample::Lanczos ? 1 : p.resample == Resample::Bilinear ? 2 : 3;
  out["do_rescale"] = true;
  out["rescale_factor"] = p.rescale_factor;
  out["do_normalize"] = true;
  out["image_mean"] = each(p.mean);
  out["image_std"] = each(p.std);
  out["do_convert_rgb"] = channels == 3;
  out["image_processor_type"] = p.shortest_edge > 0 ? "BitImageProcessor"
                                : p.crop_height > 0 ? "DeiTImageProcessor"
                                                    : "ViTImageProcessor";
  return out.dump(2) + "\n";
}

}  // namespace tessera
