#pragma once
/// Pictures in files of their own, decoded when they are drawn.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/image_processor.h"
#include "tessera/data/picture_list.h"
#include "tessera/data/picture_set.h"

namespace tessera {

/// How pictures in files are read.
struct PictureFolderOptions {
  ImageProcessor processor;
  std::int64_t channels = 3;        // 1: grey
  std::vector<std::string> names;   // of classes, by number
  bool mixed = false;               // in an order that follows from the names of files alone
  bool leaves_out_damaged = false;  // all are decoded beforehand, and those that cannot be left out
};

class PictureFolder final : public PictureSet {
 public:
  /// `path` is for messages. The headers of all files are read, or all of them.
  /// Errors: Fault::Data: a label that is none of the names; a file that is no picture, or too large
  /// (files/picture.h); none is left.
  PictureFolder(std::string path, PictureList list, PictureFolderOptions options);

  const std::string& path() const override { return path_; }
  std::int64_t size() const override { return std::ssize(list_.pictures); }
  std::int64_t channels() const override { return options_.channels; }
  std::int64_t height() const override { return options_.processor.out_height(); }
  std::int64_t width() const override { return options_.processor.out_width(); }
  bool labelled() const override { return labelled_; }
  std::int32_t label(std::int64_t picture) const override;
  void read(std::int64_t picture, const PictureDraw& draw, std::span<float> out) const override;
  /// Of names, sizes and labels of the files.
  std::string digest() const override;
  std::vector<std::string> files() const override;
  bool is_decoded() const override { return true; }
  /// Of files that are not read, or empty.
  const std::string& notice() const { return list_.notice; }

 private:
  void leave_out_damaged();

  std::string path_;
  PictureList list_;
  PictureFolderOptions options_;
  std::vector<std::int32_t> labels_;  // empty: there are none
  bool labelled_ = true;
};

}  // namespace tessera
