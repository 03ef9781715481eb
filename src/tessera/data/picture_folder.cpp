#include "tessera/data/picture_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/pictures/in_threads.h"
#include "tessera/data/row_labels.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

/// In an order that follows from their names.
void mix(std::vector<ListedPicture>& pictures) {
  std::vector<std::pair<std::uint64_t, ListedPicture>> hashed;
  for (ListedPicture& picture : pictures)
    hashed.emplace_back(hash64(picture.name), std::move(picture));
  std::ranges::sort(hashed, {}, [](const auto& each) {
    return std::pair<std::uint64_t, std::string_view>(each.first, each.second.name);
  });
  for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i] = std::move(hashed[i].second);
}

}  // namespace

PictureFolder::PictureFolder(std::string path, PictureList list, PictureFolderOptions options)
    : path_(std::move(path)), list_(std::move(list)), options_(std::move(options)) {
  std::vector<ListedPicture>& pictures = list_.pictures;
  if (options_.mixed) mix(pictures);
  if (options_.leaves_out_damaged)
    leave_out_damaged();
  else
    in_threads(size(),
               [&](std::int64_t i) { check_picture(pictures[static_cast<std::size_t>(i)].path); });
  labelled_ = list_.labelled() && !options_.names.empty();
  const LabelNumbers numbers(options_.names);
  for (const ListedPicture& picture : pictures) {
    if (!labelled_) break;
    labels_.push_back(numbers.of(picture.label));
    if (labels_.back() < 0)
      fail(Fault::Data, "'", picture.path, "' is of class ", label_names_text({&picture.label, 1}),
           ", which is not among the classes: ", label_names_text(options_.names),
           "; correct it, or train on pictures of all classes");
  }
}

void PictureFolder::leave_out_damaged() {
  std::vector<std::string> wrong(list_.pictures.size());
  in_threads(size(), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string& path = list_.pictures[at].path;
    try {
      check_picture(path);
      decode_picture(read_file(path), path);
    } catch (const Error& error) {
      if (error.fault() != Fault::Data) throw;
      wrong[at] = error.what();
    }
  });
  std::vector<ListedPicture> good;
  for (std::size_t i = 0; i < wrong.size(); ++i)
    if (wrong[i].empty()) good.push_back(list_.pictures[i]);
  const std::int64_t bad = size() - std::ssize(good);
  if (bad == 0) return;
  const std::string first =
      *std::ranges::find_if(wrong, [](const auto& each) { return !each.empty(); });
  if (good.empty())
    fail(Fault::Data, "none of the ", bad, " pictures of '", path_,
         "' can be read; the first: ", first);
  list_.pictures = std::move(good);
  if (!list_.notice.empty()) list_.notice += "; ";
  list_.notice +=
      text(counted(bad, "picture"), " cannot be read, and left out; the first: ", first);
}

std::int32_t PictureFolder::label(std::int64_t picture) const {
  return labelled_ ? labels_[static_cast<std::size_t>(picture)] : 0;
}

void PictureFolder::read(std::int64_t picture, const PictureDraw& draw,
                         std::span<float> out) const {
  const std::string& path = list_.pictures[static_cast<std::size_t>(picture)].path;
  Picture decoded = decode_picture(read_file(path), path);
  if (options_.channels == 1) decoded = grey(decoded);
  if (draw.varied) {
    process(decoded, draw_view(draw.key, picture, draw.epoch, decoded.height, decoded.width),
            options_.processor, out);
    return;
  }
  try {
    process(decoded, options_.processor, out);
  } catch (const Error& error) {
    throw error.with(text("in '", path, "'"));
  }
}

std::string PictureFolder::digest() const {
  StreamHash hash;
  for (std::int64_t i = 0; i < size(); ++i) {
    const ListedPicture& picture = list_.pictures[static_cast<std::size_t>(i)];
    std::error_code ignored;
    hash.update(text(picture.name, "\n", std::filesystem::file_size(picture.path, ignored), " ",
                     label(i), "\n"));
  }
  return hash.text();
}

std::vector<std::string> PictureFolder::files() const {
  std::vector<std::string> out;
  for (const ListedPicture& picture : list_.pictures) out.push_back(picture.path);
  return out;
}

}  // namespace tessera
