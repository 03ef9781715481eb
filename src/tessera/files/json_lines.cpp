#include "tessera/files/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/json_fault.h"

namespace tessera {

namespace {

/// Takes the wanted keys from the events of a parser. Depth 1 is the line's object.
class WantedKeys final : public nlohmann::json_sax<nlohmann::json> {
 public:
  WantedKeys(std::string_view line, std::span<const std::string> keys, const LinePlace& place)
      : line_text_(line), keys_(keys), place_(place), texts_(keys.size()), found_(keys.size()) {}

  std::vector<std::vector<std::string>> take() {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!found_[i])
        fail(Fault::Data, "'", *place_.path, "' line ", place_.line, " has no key '", keys_[i], "'",
             seen_.empty() ? "" : text("; its keys are ", join(seen_)),
             "; give json-keys present in every line");
    }
    return std::move(texts_);
  }

  bool null() final { return other("null"); }
  bool boolean(bool) final { return other("true or false"); }
  bool number_integer(number_integer_t) final { return other("a number"); }
  bool number_unsigned(number_unsigned_t) final { return other("a number"); }
  bool number_float(number_float_t, const string_t&) final { return other("a number"); }
  bool binary(binary_t&) final { return other("bytes"); }
  bool string(string_t& value) final {
    if (depth_ == 0) not_an_object();
    if (wanted_ >= 0 && (depth_ == 1 || (depth_ == 2 && in_list_)))
      texts_[static_cast<std::size_t>(wanted_)].push_back(std::move(value));
    if (depth_ == 1) wanted_ = -1;
    return true;
  }
  bool key(string_t& value) final {
    if (depth_ != 1) return true;
    const auto found = std::ranges::find(keys_, value);
    wanted_ = found == keys_.end() ? -1 : static_cast<int>(found - keys_.begin());
    if (wanted_ >= 0) {
      found_[static_cast<std::size_t>(wanted_)] = true;
      texts_[static_cast<std::size_t>(wanted_)].clear();
    } else if (seen_.size() < kMostNamed) {
      seen_.push_back(printable(std::string_view(value).substr(0, 40)));
    }
    return true;
  }
  bool start_object(std::size_t) final {
    if (depth_ > 0) other("an object");
    ++depth_;
    return true;
  }
  bool end_object() final { return end(); }
  bool start_array(std::size_t) final {
    if (depth_ == 0) not_an_object();
    if (depth_ == 1 && wanted_ >= 0) {
      in_list_ = true;
    } else if (in_list_) {
      other("a list");
    }
    ++depth_;
    return true;
  }
  bool end_array() final { return end(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) final {
    fail(Fault::Data, "'", *place_.path, "' line ", place_.line, ", byte ", at, ": ",
         json_fault(line_text_, "a file with an object in each line, like {\"text\": \"...\"}"));
  }

 private:
  static constexpr std::size_t kMostNamed = 8;

  [[noreturn]] void not_an_object() const {
    fail(Fault::Data, "'", *place_.path, "' line ", place_.line,
         " is JSON, but not an object; give a file with one object per line, like ",
         "{\"text\": \"...\"}");
  }
  bool other(const char* kind) {
    if (depth_ == 0) not_an_object();
    if (wanted_ >= 0 && (depth_ == 1 || (depth_ == 2 && in_list_)))
      fail(Fault::Data, "'", *place_.path, "' line ", place_.line, ": key '",
           keys_[static_cast<std::size_t>(wanted_)], "' is ", in_list_ ? "a list with " : "", kind,
           " where a text, or a list of texts, is expected; give a key of texts with json-keys");
    if (depth_ == 1) wanted_ = -1;
    return true;
  }
  bool end() {
    --depth_;
    if (depth_ == 1) {
      in_list_ = false;
      wanted_ = -1;
    }
    return true;
  }

  std::string_view line_text_;
  std::span<const std::string> keys_;
  const LinePlace& place_;
  std::vector<std::vector<std::string>> texts_;
  std::vector<bool> found_;
  std::vector<std::string> seen_;
  int wanted_ = -1;  // the key of the value that follows; -1: none that is wanted
  bool in_list_ = false;
  std::int64_t depth_ = 0;
};

}  // namespace

std::vector<std::vector<std::string>> texts_in_line(std::string_view line,
                                                    std::span<const std::string> keys,
                                                    const LinePlace& place) {
  WantedKeys wanted(line, keys, place);
  nlohmann::json::sax_parse(line.begin(), line.end(), &wanted);
  return wanted.take();
}

void require_line_length(std::int64_t bytes, const LinePlace& place, const char* what) {
  if (bytes > kMostLineBytes)
    fail(Fault::Data, "'", *place.path, "' line ", place.line, ": a ", what, " of more than ",
         bytes_text(kMostLineBytes),
         " begins here, which is the maximum; put each text on its own line, or ",
         "split this one");
}

LineBlocks::LineBlocks(std::span<const std::string> paths, std::int64_t block_bytes)
    : paths_(paths), block_bytes_(block_bytes) {
  for (const std::string& path : paths_) bytes_ += Contents(path).file_bytes();
}

bool LineBlocks::next(LineBlock& out) {
  while (file_ < paths_.size()) {
    if (!contents_) contents_.emplace(paths_[file_]);
    const std::int64_t begin = contents_->offset(), before = contents_->file_bytes_read();
    out.bytes = std::exchange(rest_, "");
    while (!ends_) {
      const std::size_t had = out.bytes.size(), part = static_cast<std::size_t>(block_bytes_);
      out.bytes.resize(had + part);
      const std::size_t got =
          contents_->read(std::as_writable_bytes(std::span(out.bytes)).subspan(had));
      out.bytes.resize(had + got);
      ends_ = got < part;
      const std::size_t newline = std::string_view(out.bytes).substr(had).rfind('\n');
      if (newline != std::string_view::npos) {
        rest_ = out.bytes.substr(had + newline + 1);
        out.bytes.resize(had + newline + 1);
        break;
      }
      require_line_length(std::ssize(out.bytes), {&paths_[file_], line_});
    }
    if (begin == 0 && out.bytes.starts_with(kByteOrderMark))
      out.bytes.erase(0, kByteOrderMark.size());
    out.path = &paths_[file_];
    out.first_line = line_;
    out.file_bytes = contents_->file_bytes_read() - before;
    line_ += std::ranges::count(out.bytes, '\n');
    if (ends_ && rest_.empty()) {
      ++file_;
      contents_.reset();
      line_ = 1;
      ends_ = false;
    }
    if (!out.bytes.empty()) return true;
  }
  return false;
}

}  // namespace tessera
