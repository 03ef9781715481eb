#include "tessera/files/other_kinds.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/unpack.h"

namespace tessera {

namespace {

struct OtherKind {
  std::string_view begin;  // its first bytes
  std::string_view what, instead;
};
constexpr std::string_view kUnpack = "unpack it, and give its contents",
                           kAsLines =
                               "write it as JSON lines, as pandas does: "
                               "frame.to_json(\"data.jsonl\", orient=\"records\", lines=True)",
                           kOfParquet =
                               "write it as JSON lines, as pandas does: pandas.read_parquet(FILE)."
                               "to_json(\"data.jsonl\", orient=\"records\", lines=True)",
                           kOfArrow =
                               "write it as JSON lines, as pandas does: pandas.read_feather(FILE)."
                               "to_json(\"data.jsonl\", orient=\"records\", lines=True)",
                           kOfStream =
                               "write it as JSON lines, as datasets does: "
                               "datasets.Dataset.from_file(FILE).to_json(\"data.jsonl\")",
                           kAsText = "save its contents as text (UTF-8)",
                           kPictureIs =
                               "pictures are read by models of pictures, such as --family vit, "
                               "from their folder";
constexpr OtherKind kOtherKinds[] = {
    {"PAR1", "a Parquet file", kOfParquet},
    {"ARROW1", "an Arrow file", kOfArrow},
    {{"\xFF\xFF\xFF\xFF", 4}, "an Arrow stream", kOfStream},
    {"Obj\x01", "an Avro file", kAsLines},
    {"SQLite format 3", "a database of SQLite", kAsLines},
    {"\x89HDF\r\n", "an HDF5 file", kAsLines},
    {"\x93NUMPY", "an array of NumPy", kAsText},
    {"MMIDIDX", "the index of token files", "give their prefix, without .idx"},
    {"\x1F\x8B", "packed by gzip", kUnpack},
    {"BZh", "packed by bzip2", kUnpack},
    {"\xFD"
     "7zXZ",
     "packed by xz", kUnpack},
    {"\x28\xB5\x2F\xFD", "packed by zstd", kUnpack},
    {"7z\xBC\xAF", "packed by 7-Zip", kUnpack},
    {"PK\x03\x04", "a ZIP archive, as .xlsx, .docx, .npz and .pt are too", kUnpack},
    {"\xD0\xCF\x11\xE0", "an old file of Office, as .xls and .doc are", kAsText},
    {"%PDF-", "a PDF file", kAsText},
    {"\x89PNG", "a picture (PNG)", kPictureIs},
    {"\xFF\xD8\xFF", "a picture (JPEG)", kPictureIs},
    {"\x7F"
     "ELF",
     "a program", "give a text"}};

constexpr std::string_view kTar = "ustar";
constexpr std::size_t kTarAt = 257;  // in the header of an archive

std::string kind_text(const OtherKind& kind) { return text(kind.what, "; ", kind.instead); }

}  // namespace

std::string other_kind(std::string_view bytes) {
  if (bytes.size() >= kTarAt && bytes.substr(kTarAt).starts_with(kTar))
    return text("an archive of tar; ", kUnpack);
  const auto found = std::ranges::find_if(
      kOtherKinds, [&](const OtherKind& kind) { return bytes.starts_with(kind.begin); });
  return found == std::end(kOtherKinds) ? "" : kind_text(*found);
}

std::string other_kind_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  for (const auto& [mine, beside] : {std::pair(".bin", ".idx"), {".idx", ".bin"}}) {
    if (!path.ends_with(mine)) continue;
    const std::string prefix = path.substr(0, path.size() - 4);
    if (fs::is_regular_file(prefix + beside, ignored))
      return text("a part of token files; give their prefix, --data ", prefix);
  }
  Contents file(path);
  std::string begin(kTarAt + kTar.size(), '\0');
  begin.resize(file.read(std::as_writable_bytes(std::span(begin))));
  return other_kind(begin);
}

void refuse_other_kind(std::string_view bytes, const std::string& path) {
  if (const std::string kind = other_kind(bytes); !kind.empty())
    fail(Fault::Data, "'", path, "' is ", kind);
}

}  // namespace tessera
