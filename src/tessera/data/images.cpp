#include "tessera/data/images.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {

namespace {

constexpr const char *kPixels = "pixel_values", *kLabels = "labels";

const StoredTensor& tensor_of(const SafetensorsFile& file, const char* name, int dims,
                              const char* shape) {
  const StoredTensor* const found = file.find(name);
  if (found == nullptr)
    fail(Fault::Data, "'", file.path(), "' has no tensor '", name,
         "'; a safetensors file of pictures has ", kPixels, " [n, channels, height, width] and ",
         kLabels, " [n]");
  if (found->type.shape.ndim() != dims)
    fail(Fault::Data, "'", file.path(), "': tensor '", name, "' is ", found->type.shape,
         "; it must be ", shape);
  return *found;
}

template <typename T>
std::vector<std::int32_t> labels_of(const SafetensorsFile& file, const StoredTensor& tensor) {
  std::vector<T> stored(static_cast<std::size_t>(tensor.type.numel()));
  file.read(tensor, 0, std::as_writable_bytes(std::span(stored)));
  std::vector<std::int32_t> out(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] < 0 || stored[i] >= std::numeric_limits<std::int32_t>::max())
      fail(Fault::Data, "'", file.path(), "': label ", i, " is ", stored[i],
           "; labels are classes, numbered from 0");
    out[i] = static_cast<std::int32_t>(stored[i]);
  }
  return out;
}

std::vector<std::int32_t> labels_in(const SafetensorsFile& file) {
  const StoredTensor& labels = tensor_of(file, kLabels, 1, "[pictures]");
  if (labels.type.dtype == DType::I64) return labels_of<std::int64_t>(file, labels);
  if (labels.type.dtype == DType::I32) return labels_of<std::int32_t>(file, labels);
  fail(Fault::Data, "'", file.path(), "': tensor '", kLabels, "' is of ", labels.type.dtype,
       "; it must be of i64 or i32");
}

}  // namespace

bool ImageSet::is_name(const std::string& path) { return path.ends_with(".safetensors"); }

ImageSet ImageSet::open(const std::string& path, bool may_lack_labels) {
  ImageSet out;
  out.file_ = std::make_shared<const SafetensorsFile>(path);
  const SafetensorsFile& file = *out.file_;
  out.tensor_ = &tensor_of(file, kPixels, 4, "[pictures, channels, height, width]");
  out.pixels_ = out.tensor_->type;
  const Shape& shape = out.pixels_.shape;
  if (out.pixels_.dtype != DType::F32 && out.pixels_.dtype != DType::BF16 &&
      out.pixels_.dtype != DType::F16)
    fail(Fault::Data, "'", path, "': tensor '", kPixels, "' is of ", out.pixels_.dtype,
         "; it must be of f32, bf16 or f16, as an image processor leaves it");
  out.labelled_ = !may_lack_labels || file.find(kLabels) != nullptr;
  out.labels_ = out.labelled_ ? labels_in(file)
                              : std::vector<std::int32_t>(static_cast<std::size_t>(shape[0]));
  if (shape[0] != out.size() || shape.numel() == 0)
    fail(Fault::Data, "'", path, "': tensor '", kPixels, "' is ", shape, " and '", kLabels, "' [",
         out.size(), "]; give as many labels as pictures, and at least one");
  return out;
}

std::int64_t PictureSet::classes() const {
  std::int32_t most = 0;
  for (std::int64_t i = 0; i < size(); ++i) most = std::max(most, label(i));
  return std::int64_t{1} + most;
}

bool PictureSet::of_one_class() const {
  for (std::int64_t i = 1; i < size(); ++i)
    if (label(i) != label(0)) return false;
  return true;
}

std::int32_t ImageSet::label(std::int64_t picture) const {
  return labels_[static_cast<std::size_t>(picture)];
}

void ImageSet::read(std::int64_t picture, const PictureDraw&, std::span<float> out) const {
  const std::int64_t pixels = channels() * height() * width();
  check(std::ssize(out) == pixels, "a picture of ", pixels, " pixels into ", out.size());
  file_->read_floats(*tensor_, picture * pixels, out);
}

std::string ImageSet::digest() const {
  constexpr std::int64_t kMost = 16;
  StreamHash hash;
  hash.update(text(pixels_));
  hash.update(labels_.data(), labels_.size() * sizeof(labels_[0]));
  std::vector<float> picture(static_cast<std::size_t>(channels() * height() * width()));
  const std::int64_t some = std::min(size(), kMost);
  for (std::int64_t i = 0; i < some; ++i) {
    read(some == 1 ? 0 : i * (size() - 1) / (some - 1), {}, picture);
    hash.update(picture.data(), picture.size() * sizeof(float));
  }
  return hash.text();
}

Pictures Pictures::split(std::shared_ptr<const PictureSet> set, double held_out) {
  const std::int64_t size = set->size(), trains = count_to_train(size, held_out);
  return {{set, {0, trains}}, {set, {trains, size - trains}}};
}

Pictures Pictures::of(std::shared_ptr<const PictureSet> train,
                      std::shared_ptr<const PictureSet> valid) {
  const ImageRange all{0, train->size()}, of_valid{0, valid->size()};
  return {{std::move(train), all}, {std::move(valid), of_valid}};
}

std::string Pictures::digest() const {
  StreamHash hash;
  hash.update(train.set->digest());
  if (valid.set != train.set) hash.update(valid.set->digest());
  return hash.text();
}

}  // namespace tessera
