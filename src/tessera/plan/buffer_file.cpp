#include "tessera/plan/buffer_file.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/printable.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

/// The public format's name of a column.
std::string_view column_name(std::string_view name) {
  if (name == "buffer" || name == "buffer_id") return "id";
  if (name == "begin" || name == "start") return "lower";
  if (name == "end") return "upper";
  return name;
}

/// With commas between cells, which may all be empty.
std::string line_of(const std::vector<std::string>& cells) {
  std::string out = cells[0];
  for (std::size_t k = 1; k < cells.size(); ++k) out += "," + cells[k];
  return out;
}

class BufferReader {
 public:
  explicit BufferReader(const std::string& path) : path_(path) {}

  void read(std::string_view line) {
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (trim(line).empty()) return;
    std::vector<std::string> cells = split(line, ',');
    if (out_.header.empty()) return read_header(std::move(cells));
    if (cells.size() != out_.header.size())
      wrong(text("has ", cells.size(), " cells, and the first line names ", out_.header.size(),
                 " columns; give a cell for each"));
    cells_ = std::move(cells);
    out_.buffers.push_back(buffer());
    row_lines_.push_back(line_);
    out_.rows.push_back(std::move(cells_));
  }

  BufferFile take() {
    if (out_.buffers.empty())
      fail(Fault::Data, "'", path_,
           "' has no buffers; give a line 'id,lower,upper,size', then one line per buffer");
    refuse_overlaps();
    return std::move(out_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(Fault::Data, "'", path_, "', line ", line_, " ", what);
  }

  void read_header(std::vector<std::string> cells) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const std::string name(column_name(trim(cells[k])));
      if (!columns_.emplace(name, k).second)
        wrong(text("has the column '", printable(name), "' twice; leave one out"));
      if (trim(cells[k]) == "end") last_is_alive_ = true;
    }
    for (const char* name : {"id", "lower", "upper", "size"}) {
      if (!columns_.contains(name))
        wrong(text("has no column '", name,
                   "'; the first line names the columns: id,lower,upper,size in any order"));
    }
    out_.header = std::move(cells);
  }

  std::string_view cell(const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string_view() : trim(cells_[found->second]);
  }

  std::int64_t number(const std::string& column, std::int64_t least) const {
    const std::string_view of = cell(column);
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(of.data(), of.data() + of.size(), value);
    const bool is_one = failure == std::errc() && end == of.data() + of.size();
    if (!is_one || value < least || value > kMaxSize)
      wrong(text("has ", column, " '", printable(of), "'; give a whole number from ", least,
                 " to 2^62"));
    return value;
  }

  TimedBuffer buffer() {
    const std::string id(cell("id"));
    if (id.empty()) wrong("has no id; give each buffer an id of its own");
    const auto [first, fresh] = lines_.emplace(id, line_);
    if (!fresh)
      wrong(text("has the id '", printable(id), "', as line ", first->second,
                 " has; give each buffer an id of its own"));
    if (!cell("gaps").empty())
      wrong(
          "has gaps in a lifetime, which are not supported; make it two buffers, or leave the "
          "gaps empty");
    TimedBuffer out;
    out.lower = number("lower", -kMaxSize);
    out.upper = number("upper", -kMaxSize) + (last_is_alive_ ? 1 : 0);
    if (out.upper <= out.lower)
      wrong(text("has a lifetime from ", out.lower, " to ", out.upper,
                 ", the second excluded, which is empty; upper must be above lower"));
    out.bytes = number("size", 0);
    if (!cell("alignment").empty()) out.alignment = number("alignment", 1);
    if (!cell("offset").empty()) out.offset = number("offset", 0);
    if (out.offset && *out.offset % out.alignment != 0)
      wrong(text("has offset ", *out.offset, ", which is not a multiple of its alignment, ",
                 out.alignment));
    add_bytes(out);
    return out;
  }

  /// As the search adds them up, so that it finds nothing to refuse.
  void add_bytes(const TimedBuffer& b) {
    const std::int64_t room = kMostBufferBytes - total_ - b.bytes;
    if (room < 0 || b.alignment - 1 > room || b.offset.value_or(0) > kMostBufferBytes - b.bytes)
      wrong(
          "makes the bytes of all buffers, with alignment, or the end of this one exceed 2^61; "
          "make them smaller");
    total_ += b.bytes + b.alignment - 1;
  }

  /// Places that are given: of those that are alive at a time, each is compared with its
  /// neighbours.
  void refuse_overlaps() const {
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
      if (out_.buffers[i].offset && out_.buffers[i].bytes > 0) given.push_back(i);
    }
    const auto lower = [&](std::size_t i) { return out_.buffers[i].lower; };
    std::ranges::stable_sort(given, {}, lower);
    std::set<std::pair<std::int64_t, std::size_t>> alive, ends;  // by offset, and by upper
    for (const std::size_t i : given) {
      const TimedBuffer& b = out_.buffers[i];
      while (!ends.empty() && ends.begin()->first <= b.lower) {
        alive.erase({*out_.buffers[ends.begin()->second].offset, ends.begin()->second});
        ends.erase(ends.begin());
      }
      const auto above = alive.lower_bound({*b.offset, 0});
      if (above != alive.end() && above->first < *b.offset + b.bytes) overlap(above->second, i);
      if (above != alive.begin()) {
        const auto& [offset, below] = *std::prev(above);
        if (offset + out_.buffers[below].bytes > *b.offset) overlap(below, i);
      }
      alive.insert({*b.offset, i});
      ends.insert({b.upper, i});
    }
  }

  [[noreturn]] void overlap(std::size_t a, std::size_t b) const {
    const std::int64_t first = row_lines_[std::min(a, b)], second = row_lines_[std::max(a, b)];
    fail(Fault::Data, "'", path_, "', line ", second, " has an offset at which it overlaps line ",
         first, ", and both are alive at time ",
         std::max(out_.buffers[a].lower, out_.buffers[b].lower), "; give one of them another");
  }

  const std::string& path_;
  std::int64_t line_ = 0;
  std::vector<std::int64_t> row_lines_;  // of each buffer
  std::map<std::string, std::size_t> columns_;
  bool last_is_alive_ = false;
  std::map<std::string, std::int64_t> lines_;  // of each id
  std::vector<std::string> cells_;
  std::int64_t total_ = 0;
  BufferFile out_;
};

}  // namespace

BufferFile parse_buffer_file(std::string_view text, const std::string& path) {
  BufferReader reader(path);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.take();
}

std::string to_text(const BufferFile& file, std::span<const std::int64_t> offsets) {
  const auto column = std::ranges::find_if(
      file.header, [](const std::string& name) { return trim(name) == "offset"; });
  const bool is_new = column == file.header.end();
  std::string out = line_of(file.header) + (is_new ? ",offset\n" : "\n");
  for (std::size_t row = 0; row < file.rows.size(); ++row) {
    std::vector<std::string> cells = file.rows[row];
    if (is_new) cells.emplace_back();
    cells[is_new ? cells.size() - 1 : at(column - file.header.begin())] = text(offsets[row]);
    out += line_of(cells) + "\n";
  }
  return out;
}

}  // namespace tessera
