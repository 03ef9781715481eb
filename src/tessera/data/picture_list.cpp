#include "tessera/data/picture_list.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/file.h"
#include "tessera/files/table_file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPictureEndings[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"},
                           kOtherEndings[] = {".gif",  ".bmp", ".webp", ".tif",  ".tiff",
                                              ".ppm",  ".pgm", ".pbm",  ".heic", ".heif",
                                              ".avif", ".jxl", ".jp2",  ".tga",  ".ico"},
                           kTrainNames[] = {"train", "training"},
                           kValidNames[] = {"valid", "validation", "val", "dev"},
                           kTestNames[] = {"test", "testing"};
constexpr const char *kTables[] = {"metadata.csv", "metadata.jsonl"}, *kFileColumn = "file_name",
                     *kLabelColumn = "label";

bool is_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string in_small_letters(std::string name) {
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return name;
}

std::string ending_of(const fs::path& path) { return in_small_letters(path.extension().string()); }

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> shown_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out = entries_of(folder, error);
  if (error) fail(Fault::Data, "folder '", folder.string(), "' cannot be read: ", error.message());
  std::erase_if(out, is_hidden);
  return out;
}

/// The file of rows in a folder; empty: there is none.
std::string table_in(const fs::path& folder) {
  std::error_code ignored;
  for (const char* const name : kTables)
    if (fs::is_regular_file(folder / name, ignored)) return name;
  return "";
}

/// Lists what lies in folders.
class Lister {
 public:
  void add_folder(const fs::path& folder) {
    root_ = folder;
    if (const std::string table = table_in(folder); !table.empty()) return add_table(folder, table);
    const std::size_t before = out_.pictures.size();
    bool classes = false;
    for (const fs::path& entry : shown_entries(folder)) {
      if (!is_folder(entry)) continue;
      classes = true;
      const std::size_t had = out_.pictures.size();
      if (find_invalid_utf8(entry.filename().string()) != std::string::npos)
        fail(Fault::Data, "'", printable(entry.string()), "', the folder of a class, has a name ",
             "that is not UTF-8; rename it");
      add_below(entry, entry.filename().string());
      if (out_.pictures.size() == had)
        fail(Fault::Data, "'", entry.string(), "', the folder of a class, has no pictures (.jpg, ",
             ".jpeg, .png); put some there, or take it away");
    }
    const std::size_t in_classes = out_.pictures.size();
    for (const fs::path& entry : shown_entries(folder))
      if (!is_folder(entry)) add_file(entry, "");
    if (classes && out_.pictures.size() > in_classes)
      fail(Fault::Data, "'", out_.pictures[in_classes].path, "' lies beside folders of classes; ",
           "move it into one of them");
    if (out_.pictures.size() == before)
      fail(Fault::Data, "folder '", folder.string(), "' has no pictures (.jpg, .jpeg, .png); give ",
           "one with a folder for each class, as FOLDER/cat/1.jpg");
  }

  /// A picture by itself, or a table of some.
  void add_path(const fs::path& path) {
    if (table_format(path.string())) return add_table(path.parent_path(), path.filename().string());
    const std::string ending = ending_of(path);
    refuse_other(path, ending);
    if (!is_of(kPictureEndings, ending))
      fail(Fault::Data, "'", path.string(),
           "' does not end as a picture (.jpg, .jpeg, .png); give ",
           "a folder of pictures, pictures, or a table with a column ", kFileColumn);
    out_.pictures.push_back({path.string(), path.string(), ""});
  }

  PictureList list() {
    if (others_ > 0)
      out_.notice =
          text(others_, " of the files there ", others_ == 1 ? "is no picture" : "are no pictures",
               ", and not read, such as '", other_, "'");
    return std::move(out_);
  }

 private:
  void add_below(const fs::path& folder, const std::string& label) {
    std::error_code ignored;
    // Links may lead around.
    const fs::path real = fs::canonical(folder, ignored);
    if (!above_.insert(real).second) return;
    for (const fs::path& entry : shown_entries(folder))
      is_folder(entry) ? add_below(entry, label) : add_file(entry, label);
    above_.erase(real);
  }

  void add_file(const fs::path& path, const std::string& label) {
    const std::string ending = ending_of(path);
    refuse_other(path, ending);
    if (!is_of(kPictureEndings, ending)) {
      if (others_++ == 0) other_ = path.string();
      return;
    }
    std::error_code ignored;
    if (!fs::exists(path, ignored))
      fail(Fault::Data, "'", path.string(), "' is a link to nothing; correct it, or take it away");
    out_.pictures.push_back({path.string(), path.lexically_relative(root_).string(), label});
  }

  static void refuse_other(const fs::path& path, const std::string& ending) {
    if (is_of(kOtherEndings, ending))
      fail(Fault::Data, "'", path.string(), "' is a picture in a format that is not read (", ending,
           "); convert it to PNG or JPEG, or take it away");
  }

  void add_table(const fs::path& folder, const std::string& name) {
    const std::string path = (folder / name).string();
    const std::vector<std::string> columns = table_columns(path);
    const bool labels = std::ranges::find(columns, kLabelColumn) != columns.end();
    std::vector<std::string> wanted{kFileColumn};
    if (labels) wanted.emplace_back(kLabelColumn);
    const Table table = read_table(path, wanted);
    std::map<fs::path, std::int64_t> line_of;
    for (std::size_t row = 0; row < table.lines.size(); ++row) {
      const std::string& file = table.columns[0][row];
      const auto where = [&] { return text("line ", table.lines[row], " of '", path, "'"); };
      std::error_code ignored;
      if (file.empty() || !fs::is_regular_file(folder / file, ignored))
        fail(Fault::Data, where(), " names '", file, "', which is no file in '", folder.string(),
             "'; correct it");
      if (const auto [known, is_new] =
              line_of.emplace(fs::path(file).lexically_normal(), table.lines[row]);
          !is_new)
        fail(Fault::Data, where(), " names '", file, "' again, as line ", known->second,
             " does; take one of them away");
      if (labels && table.columns[1][row].empty())
        fail(Fault::Data, where(), " has no label; give it one");
      out_.pictures.push_back(
          {(folder / file).string(), file, labels ? table.columns[1][row] : ""});
    }
  }

  fs::path root_;
  PictureList out_;
  std::set<fs::path> above_;
  std::int64_t others_ = 0;
  std::string other_;
};

}  // namespace

bool PictureList::labelled() const {
  return std::ranges::none_of(pictures, [](const ListedPicture& p) { return p.label.empty(); });
}

PictureParts picture_parts(const std::string& folder) {
  PictureParts out;
  if (!is_folder(folder)) return {};
  for (const fs::path& entry : shown_entries(folder)) {
    if (!is_folder(entry)) continue;
    const std::string name = entry.filename().string();
    const std::string known = in_small_letters(name);
    std::string* const part = is_of(kTrainNames, known)   ? &out.train
                              : is_of(kValidNames, known) ? &out.valid
                              : is_of(kTestNames, known)  ? &out.test
                                                          : nullptr;
    if (part == nullptr) return {};
    if (!part->empty())
      fail(Fault::Data, "folder '", folder, "' has '", fs::path(*part).filename().string(),
           "' and '", name, "', which are the same part; give one of them");
    *part = entry.string();
  }
  if (out.train.empty()) return {};
  if (const std::string table = table_in(folder); !table.empty())
    fail(Fault::Data, "folder '", folder, "' has ", table, " beside the folders of its parts; put ",
         "into each of them the rows of its own pictures, or give one part as data");
  return out;
}

PictureList list_pictures(const std::vector<std::string>& paths) {
  Lister lister;
  for (const std::string& path : paths)
    is_folder(path) ? lister.add_folder(path) : lister.add_path(path);
  return lister.list();
}

bool may_hold_pictures(const std::string& path) {
  return is_folder(path) || table_format(path) || is_of(kPictureEndings, ending_of(path)) ||
         is_of(kOtherEndings, ending_of(path));
}

}  // namespace tessera
