#pragma once
/// Which pictures lie in a folder, and of which class each is.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct ListedPicture {
  std::string path;
  std::string name;   // the path within the folder
  std::string label;  // empty: it has none
};

struct PictureList {
  std::vector<ListedPicture> pictures;  // by class, then by name
  std::string notice = {};              // of other files that lie there; empty: there are none

  bool labelled() const;
};

/// The folders in which a data set keeps its parts; train empty: it has none.
struct PictureParts {
  std::string train, valid, test;
};
/// FOLDER/train (or training), valid (validation, val, dev) and test (testing), in small or capital
/// letters, where FOLDER has the first and no other folders. Errors: Fault::Data: a part twice; a
/// file of rows beside them.
PictureParts picture_parts(const std::string& folder);

/// Files that end in .jpg, .jpeg, .jpe, .jfif or .png, in small or capital letters: in a folder the
/// classes are its folders, each with all that lies below, as torchvision's ImageFolder has them; or
/// the rows of its metadata.csv or metadata.jsonl say it, with columns file_name and label, as
/// imagefolder of Hugging Face has them. A file is itself, without a class; a file of such rows is a
/// list of others. Hidden files and folders are passed over, links are followed.
///
/// Errors: Fault::Data: no pictures, in the whole or in a class; pictures in other formats; links to
/// nothing; pictures beside folders of classes; a class whose name is not UTF-8; a picture that two
/// rows name; what is no picture among `paths`.
PictureList list_pictures(const std::vector<std::string>& paths);

/// The path is a folder, or a file that ends as a picture or a table.
bool may_hold_pictures(const std::string& path);

}  // namespace tessera
