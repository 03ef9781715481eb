#include "tessera/token_files/indexed_dataset_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::size_t kWriteBlock = std::size_t{1} << 20;  // bytes

template <typename T>
void put(std::vector<std::byte>& out, std::span<const std::int32_t> ids) {
  const std::size_t begin = out.size();
  out.resize(begin + ids.size() * sizeof(T));
  std::byte* to = out.data() + begin;
  for (const std::int32_t id : ids) {
    check(id >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
              id <= static_cast<std::int64_t>(std::numeric_limits<T>::max()),
          "token ", id, " in a file of smaller numbers");
    const T value = static_cast<T>(id);
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  }
}

void put(TokenType type, std::vector<std::byte>& out, std::span<const std::int32_t> ids) {
  switch (type) {
    case TokenType::U8: return put<std::uint8_t>(out, ids);
    case TokenType::I8: return put<std::int8_t>(out, ids);
    case TokenType::I16: return put<std::int16_t>(out, ids);
    case TokenType::I32: return put<std::int32_t>(out, ids);
    case TokenType::I64: return put<std::int64_t>(out, ids);
    case TokenType::U16: return put<std::uint16_t>(out, ids);
    case TokenType::F32:
    case TokenType::F64: break;
  }
  check(false, "token files of type ", to_text(type));
}

template <typename T>
void write_numbers(AtomicFile& file, std::span<const T> numbers) {
  file.write(std::as_bytes(numbers));
}

}  // namespace

IndexedDatasetWriter::IndexedDatasetWriter(const std::string& prefix, TokenType type)
    : type_(type), bin_(prefix + ".bin"), index_(prefix + ".idx") {
  block_.reserve(kWriteBlock + (std::size_t{1} << 16));
}

void IndexedDatasetWriter::add_sequence(std::span<const std::int32_t> ids) {
  check(ids.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
        "a sequence of ", ids.size(), " tokens");
  put(type_, block_, ids);
  lengths_.push_back(static_cast<std::int32_t>(ids.size()));
  tokens_ += std::ssize(ids);
  if (block_.size() >= kWriteBlock) flush_block();
}

void IndexedDatasetWriter::end_document() { boundaries_.push_back(std::ssize(lengths_)); }

void IndexedDatasetWriter::add_document(std::span<const std::int32_t> ids,
                                        std::span<const std::int32_t> lengths) {
  std::size_t at = 0;
  for (const std::int32_t length : lengths) {
    add_sequence(ids.subspan(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
  check(at == ids.size(), "a document of ", ids.size(), " tokens in sequences of ", at);
  end_document();
}

void IndexedDatasetWriter::flush_block() {
  bin_.write(block_);
  block_.clear();
}

void IndexedDatasetWriter::finish() {
  flush_block();
  index_.write(kIndexMagic);
  const auto code = static_cast<std::uint8_t>(type_);
  const std::uint64_t counts[] = {lengths_.size(), boundaries_.size()};
  write_numbers(index_, std::span(&kIndexVersion, 1));
  write_numbers(index_, std::span(&code, 1));
  write_numbers(index_, std::span<const std::uint64_t>(counts));
  write_numbers(index_, std::span<const std::int32_t>(lengths_));
  std::vector<std::int64_t> pointers;
  pointers.reserve(std::min(lengths_.size(), kWriteBlock));
  std::int64_t at = 0;
  for (const std::int32_t length : lengths_) {
    pointers.push_back(at);
    at += length * bytes_of(type_);
    if (pointers.size() == kWriteBlock) {
      write_numbers(index_, std::span<const std::int64_t>(pointers));
      pointers.clear();
    }
  }
  write_numbers(index_, std::span<const std::int64_t>(pointers));
  write_numbers(index_, std::span<const std::int64_t>(boundaries_));
  AtomicFile::commit_both(bin_, index_);
}

}  // namespace tessera
