#include "tessera/checkpoint/checkpoint_write.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"

namespace tessera {

namespace {

std::string number_name(const std::string& prefix, std::size_t number) {
  std::string digits = text(number);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return text(prefix, digits, ".safetensors");
}

/// "w", or "w[0:128,64:128]" where it is one of several cells.
std::string label_of(const ManifestTensor& tensor, const Box& cell) {
  if (tensor.grid.cells() <= 1) return tensor.entry.name;
  std::vector<std::string> ranges;
  for (int d = 0; d < cell.start.ndim(); ++d)
    ranges.push_back(text(cell.start[d], ":", cell.start[d] + cell.extent[d]));
  return text(tensor.entry.name, "[", join(ranges, ","), "]");
}

/// Bytes of a cell in order, out of memory with gaps.
class CellBytes {
 public:
  CellBytes(const CheckpointPiece& piece, const Shape& extent, std::int64_t width)
      : bytes_(piece.bytes), width_(width), run_(width) {
    int dense = extent.ndim();  // dims from here on lie together
    std::int64_t count = 1;
    while (dense > 0 && piece.strides[dense - 1] == count) count *= extent[--dense];
    run_ = count * width;
    for (int d = 0; d < dense; ++d) {
      extent_.push_back(extent[d]);
      strides_.push_back(piece.strides[d]);
    }
  }
  void read(std::int64_t at, std::span<std::byte> to) const {
    while (!to.empty()) {
      const std::int64_t inside = at % run_;
      const auto count = std::min(to.size(), static_cast<std::size_t>(run_ - inside));
      std::memcpy(to.data(), bytes_ + offset(at / run_) + inside, count);
      to = to.subspan(count);
      at += static_cast<std::int64_t>(count);
    }
  }

 private:
  /// Of a run, in bytes.
  std::int64_t offset(std::int64_t run) const {
    std::int64_t out = 0;
    for (int d = extent_.ndim(); d-- > 0; run /= extent_[d]) out += run % extent_[d] * strides_[d];
    return out * width_;
  }

  const std::byte* bytes_;
  std::int64_t width_, run_;  // bytes of an element, and of a run
  Shape extent_, strides_;    // of the runs
};

using Pieces = std::vector<const CheckpointPiece*>;

/// The manifest of what `parts` wrote.
Manifest manifest_of(const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                     const std::vector<WrittenPart>& parts);

/// Pieces by file, in their order; a file has at most `limit` bytes of them, or one piece.
std::vector<Pieces> files_of(std::span<const ManifestTensor> tensors,
                             std::span<const CheckpointPiece> pieces, std::int64_t limit) {
  std::vector<Pieces> out;
  std::int64_t used = 0;
  for (const CheckpointPiece& piece : pieces) {
    const ManifestTensor& tensor = tensors[piece.tensor];
    const std::int64_t bytes =
        tensor.grid.cell(piece.cell).extent.numel() * size_of(tensor.entry.type.dtype);
    if (out.empty() || used + bytes > limit) {
      out.emplace_back();
      used = 0;
    }
    out.back().push_back(&piece);
    used += bytes;
  }
  return out;
}

/// A file that is only counted: as large as the one that will be written, its hashes as long.
class CountedFile {
 public:
  void write(std::span<const std::byte> bytes) { bytes_ += std::ssize(bytes); }
  std::int64_t bytes() const { return bytes_; }
  std::string hash() const { return hash_of({}); }
  void finish() {}

  static std::string hash_of(std::span<const std::byte>) { return std::string(kHashDigits, '0'); }

 private:
  static constexpr std::size_t kHashDigits = 32;
  std::int64_t bytes_ = 0;
};

std::string hash_of_block(const HashedFile&, std::span<const std::byte> bytes) {
  return hash128_text(bytes);
}
std::string hash_of_block(const CountedFile&, std::span<const std::byte> bytes) {
  return CountedFile::hash_of(bytes);
}

/// What fills a buffer with the bytes of a piece from `at` on.
using Fill = std::function<void(std::int64_t at, std::span<std::byte> to)>;

template <typename File, typename FillOf>
void write_file(File&& file, const std::string& name, std::span<const ManifestTensor> tensors,
                const Pieces& pieces, const FillOf& fill_of, WrittenPart& out) {
  const std::size_t number = out.files.size();
  ManifestFile& saved = out.files.emplace_back(ManifestFile{name, 0, 0, "", ""});
  const auto end_header = [&] {
    if (saved.header_bytes != 0) return;
    saved.header_bytes = file.bytes();
    saved.header_hash = file.hash();
  };
  const std::size_t first = out.pieces.size();
  out.pieces.resize(first + pieces.size());
  std::vector<TensorSource> sources;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const CheckpointPiece& piece = *pieces[i];
    const ManifestTensor& tensor = tensors[piece.tensor];
    const Box box = tensor.grid.cell(piece.cell);
    const TensorType type{tensor.entry.type.dtype, box.extent, {}};
    WrittenPiece& written = out.pieces[first + i];
    written = {piece.tensor, piece.cell, {number, 0, type.bytes(), {}}};
    // The first byte that is asked for ends the header; pieces of the file are blocks.
    sources.push_back(
        {label_of(tensor, box), type,
         [&, fill = Fill(fill_of(piece, type))](std::int64_t at, std::span<std::byte> to) {
           end_header();
           if (at == 0) written.slice.at = file.bytes();
           check(at % kBlockBytes == 0, "a block is written in parts");
           fill(at, to);
           written.slice.blocks.push_back(hash_of_block(file, to));
         }});
  }
  write_safetensors([&](std::span<const std::byte> bytes) { file.write(bytes); },
                    std::move(sources), {});
  end_header();
  file.finish();
  saved.bytes = file.bytes();
  saved.hash = file.hash();
}

/// Renames the folder to the next name that is free.
std::string give_name(const FileCalls& calls, const std::string& folder, UnfinishedFolder& aside,
                      std::int64_t step, CheckpointNames names) {
  constexpr int kAttempts = 100;  // another writer may take the name after the scan
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const StepName name = next_name(scan_checkpoints(folder), step, names);
    std::string path = text(folder, "/", to_text(name));
    if (!aside.rename_to(path)) continue;
    flush_folder(calls, folder);
    return path;
  }
  fail(Fault::Resource, "cannot save a checkpoint: every new name in '", folder,
       "' is taken; let only one run save there");
}

/// Writes kTrackerFile; the problem, or "".
std::string track(const std::string& folder, std::int64_t step) {
  try {
    write_atomically(text(folder, "/", kTrackerFile), text(step, "\n"));
    return "";
  } catch (const Error& error) {
    return text(error.what(), " (the checkpoint itself is saved)");
  }
}

}  // namespace

WrittenPart write_part(const FileCalls& calls, const std::string& folder, const std::string& prefix,
                       std::span<const ManifestTensor> tensors,
                       std::span<const CheckpointPiece> pieces, std::int64_t file_bytes) {
  WrittenPart out;
  const auto fill_of = [](const CheckpointPiece& piece, const TensorType& type) {
    return [cell = CellBytes(piece, type.shape, size_of(type.dtype))](
               std::int64_t at, std::span<std::byte> to) { cell.read(at, to); };
  };
  for (const Pieces& of_file : files_of(tensors, pieces, file_bytes)) {
    const std::string name = number_name(prefix, out.files.size());
    write_file(HashedFile(calls, text(folder, "/", name)), name, tensors, of_file, fill_of, out);
  }
  return out;
}

WrittenPart planned_part(const std::string& prefix, std::span<const ManifestTensor> tensors,
                         std::span<const CheckpointPiece> pieces, std::int64_t file_bytes) {
  WrittenPart out;
  const auto fill_of = [](const CheckpointPiece&, const TensorType&) {
    return [](std::int64_t, std::span<std::byte>) {};
  };
  for (const Pieces& of_file : files_of(tensors, pieces, file_bytes))
    write_file(CountedFile(), number_name(prefix, out.files.size()), tensors, of_file, fill_of,
               out);
  return out;
}

std::int64_t save_bytes(const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                        const std::vector<WrittenPart>& parts) {
  const Manifest manifest = manifest_of(record, std::move(tensors), parts);
  std::int64_t out = std::ssize(to_text(manifest));
  for (const ManifestFile& file : manifest.files) out += file.bytes;
  return out;
}

namespace {

Manifest manifest_of(const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                     const std::vector<WrittenPart>& parts) {
  Manifest manifest;
  manifest.record = record;
  manifest.tensors = std::move(tensors);
  for (ManifestTensor& tensor : manifest.tensors)
    tensor.slices.assign(static_cast<std::size_t>(tensor.grid.cells()), {});
  for (const WrittenPart& part : parts) {
    for (const WrittenPiece& piece : part.pieces) {
      if (piece.slice.bytes == 0) continue;  // a tensor without elements has no slices
      ManifestSlice& slice =
          manifest.tensors.at(piece.tensor).slices.at(static_cast<std::size_t>(piece.cell));
      check(slice.blocks.empty(), "two ranks wrote a part of ",
            manifest.tensors[piece.tensor].entry.name);
      slice = piece.slice;
      slice.file += manifest.files.size();
    }
    manifest.files.insert(manifest.files.end(), part.files.begin(), part.files.end());
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices)
      check(!slice.blocks.empty(), "nobody wrote a part of ", tensor.entry.name);
  }
  return manifest;
}

}  // namespace

std::string commit_parts(const std::string& folder, UnfinishedFolder& aside,
                         const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                         const std::vector<WrittenPart>& parts, const SaveOptions& options) {
  const Manifest manifest = manifest_of(record, std::move(tensors), parts);
  const FileCalls& calls = options.calls;
  HashedFile file(calls, text(aside.path(), "/", kManifestName));
  file.write(to_text(manifest));
  file.finish();
  flush_folder(calls, aside.path());
  std::string path = give_name(calls, folder, aside, record.step, options.names);
  std::vector<std::string> problems =
      tidy_checkpoints(calls, folder, {options.keep_last, options.keep, options.damaged});
  if (options.names == CheckpointNames::Iteration) {
    const std::string problem = track(folder, record.step);
    if (!problem.empty()) problems.push_back(problem);
  }
  if (options.notices != nullptr)
    options.notices->insert(options.notices->end(), problems.begin(), problems.end());
  return path;
}

std::string to_text(const WrittenPart& part) {
  std::string out;
  for (const ManifestFile& file : part.files)
    out += text("file ", file.name, " ", file.bytes, " ", file.header_bytes, " ", file.hash, " ",
                file.header_hash, "\n");
  for (const WrittenPiece& piece : part.pieces)
    out += text("piece ", piece.tensor, " ", piece.cell, " ", piece.slice.file, " ", piece.slice.at,
                " ", piece.slice.bytes, " ", join(piece.slice.blocks, " "), "\n");
  return out;
}

WrittenPart parse_part(std::string_view lines) {
  WrittenPart out;
  for (const std::string& line : split(lines, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line, ' ');
    const auto number = [&](std::size_t i) { return std::stoll(words.at(i)); };
    if (words[0] == "file") {
      out.files.push_back({words.at(1), number(2), number(3), words.at(4), words.at(5)});
      continue;
    }
    check(words[0] == "piece" && words.size() > 6, "no part of a save: ", line);
    out.pieces.push_back({static_cast<std::size_t>(number(1)),
                          number(2),
                          {static_cast<std::size_t>(number(3)),
                           number(4),
                           number(5),
                           {words.begin() + 6, words.end()}}});
  }
  return out;
}

}  // namespace tessera
