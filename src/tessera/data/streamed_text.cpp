#include "tessera/data/streamed_text.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/data/streaming/block_source.h"
#include "tessera/data/streaming/source_order.h"
#include "tessera/token_files/in_order.h"
#include "tessera/token_files/permutation.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {

namespace {

using StreamJson = nlohmann::json;
constexpr std::int64_t kBlocksHeld = 4;  // one in use, two ahead, one that is being read

/// Of a source, whose files are all JSON lines or all texts.
std::string column_of(const StreamChoice& choice, std::size_t source) {
  const std::vector<std::string>& paths = choice.sources[source];
  const auto lines = [&](const std::string& path) {
    return (choice.format ? choice.format : table_format(path)) == TableFormat::JsonLines;
  };
  if (choice.column.empty()) return "";
  for (const std::string& path : paths)
    require(lines(path) == lines(paths.front()), "'", paths.front(), "' and '", path,
            "' are JSON lines and a text; give weights, as in 0.5 ", paths.front(), " 0.5 ", path);
  return lines(paths.front()) ? choice.column : "";
}

struct KnownPlaces {
  std::int64_t consumed = 0, context = 0, buffer = 0;
  std::vector<std::pair<std::int64_t, BlockPlace>> of;  // of each source: a block, and its place
};

StreamJson json_of(std::int64_t block, const BlockPlace& place) {
  const StreamPlace& at = place.piece;
  return {{"block", block},          {"pass", at.pass}, {"file", at.file},
          {"byte", at.offset},       {"line", at.line}, {"counted", at.counted},
          {"skipped", place.skipped}};
}

std::int64_t count_at(const StreamJson& object, const char* key) {
  const StreamJson& value = object.at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
    fail(Fault::Checkpoint, "'", key, "' is no number from 0 on");
  return value.get<std::int64_t>();
}

KnownPlaces parse_places(const std::string& bytes, const StreamChoice& choice) {
  const StreamJson json = StreamJson::parse(bytes);
  KnownPlaces out{
      count_at(json, "samples"), count_at(json, "context"), count_at(json, "buffer"), {}};
  for (const StreamJson& source : json.at("sources")) {
    const StreamPlace piece{count_at(source, "pass"), count_at(source, "file"),
                            count_at(source, "byte"), count_at(source, "line"),
                            count_at(source, "counted")};
    const std::size_t number = out.of.size();
    if (number < choice.sources.size() && piece.file > std::ssize(choice.sources[number]))
      fail(Fault::Checkpoint, "source ", number, " is at file ", piece.file, " of ",
           choice.sources[number].size());
    out.of.push_back({count_at(source, "block"), {piece, count_at(source, "skipped")}});
  }
  if (out.of.size() != choice.sources.size())
    fail(Fault::Checkpoint, "it has ", out.of.size(), " sources, and the run ",
         choice.sources.size());
  return out;
}

}  // namespace

/// Sources of one length of samples.
struct StreamedText::State {
  std::mutex mutex;
  std::vector<StreamFiles> files;  // of each source
  std::vector<PieceEncoder> encoders;
  std::vector<StreamPlace> begins;
  SourceOrder order;
  std::int64_t context = 0;  // of the blocks; 0: none was read
  std::vector<std::unique_ptr<BlockSource>> blocks;
  std::optional<KnownPlaces> known;  // of the run that goes on

  explicit State(std::vector<double> weights) : order(std::move(weights)) {}

  void begin(std::int64_t wanted, const StreamChoice& choice) {
    if (context == wanted) return;
    blocks.clear();
    const std::int64_t tokens = size_product({choice.buffer, wanted}, "tokens of a shuffle-buffer");
    for (std::size_t i = 0; i < files.size(); ++i)
      blocks.push_back(
          std::make_unique<BlockSource>(files[i], encoders[i], begins[i], tokens, choice.workers));
    context = wanted;
    if (!known || known->context != wanted || known->buffer != choice.buffer) return;
    const std::vector<std::int64_t> taken = order.taken(known->consumed);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (known->of[i].first == taken[i] / choice.buffer)
        blocks[i]->set_place(known->of[i].first, known->of[i].second);
    }
  }
};

StreamedText::StreamedText(StreamChoice choice, Vocabulary vocabulary)
    : choice_(std::move(choice)), vocabulary_(std::move(vocabulary)) {
  check(!choice_.sources.empty(), "a stream of nothing");
  require(choice_.buffer >= 1, "shuffle-buffer is ", choice_.buffer, "; give 1 or more samples");
  require(choice_.offset == 0 || choice_.sources.size() == 1, "stream-offset is ", choice_.offset,
          ", and the data is a mixture of ", choice_.sources.size(), " sources; leave it out");
  state_ = std::make_unique<State>(
      choice_.weights.empty() ? std::vector<double>(choice_.sources.size(), 1.0) : choice_.weights);
  for (std::size_t i = 0; i < choice_.sources.size(); ++i)
    state_->files.push_back({choice_.sources[i], column_of(choice_, i), choice_.skip_bad_rows,
                             random_key(choice_.seed, text("data.files.", i))});
  for (const StreamFiles& files : state_->files) {
    state_->encoders.emplace_back(files, vocabulary_);
    for (const std::string& path : files.paths) Contents opened(path);  // all are there
    state_->begins.push_back(place_of_byte(files, choice_.offset));
    Pieces first;
    PieceReader(files, state_->begins.back()).next(first);
    std::vector<std::int32_t> ids;
    state_->encoders.back().add(first, 0, ids);
  }
}

StreamedText::~StreamedText() = default;

std::vector<TextFile> StreamedText::files() const {
  std::vector<TextFile> out;
  for (const std::vector<std::string>& source : choice_.sources) {
    for (const std::string& path : source) out.push_back({path, InputFile(path).size(), 0, 0});
  }
  return out;
}

std::string StreamedText::digest() const {
  constexpr std::int64_t kPart = 1 << 16;
  StreamHash hash;
  hash.update(text("stream of '", choice_.column, "' from ", choice_.offset, ";"));
  for (std::size_t i = 0; i < choice_.sources.size(); ++i) {
    hash.update(text("weight ", choice_.weights.empty() ? 1.0 : choice_.weights[i], ";"));
    for (const std::string& path : choice_.sources[i]) {
      const InputFile file(path);
      std::string part(static_cast<std::size_t>(std::min(kPart, file.size())), '\0');
      const auto bytes = std::as_writable_bytes(std::span(part));
      hash.update(text(file.size(), ":"));
      file.read(0, bytes);
      hash.update(part);
      file.read(file.size() - std::ssize(part), bytes);
      hash.update(part);
    }
  }
  return hash.text();
}

StreamTally StreamedText::read_once(const std::function<void(const StreamTally&)>& progress) const {
  StreamTally out;
  for (std::size_t i = 0; i < state_->files.size(); ++i) {
    const StreamFiles& files = state_->files[i];
    const PieceEncoder& encoder = state_->encoders[i];
    PieceReader reader(files, state_->begins[i]);
    std::int64_t before = out.file_bytes, of_done = 0;
    in_order<Pieces, std::vector<std::int32_t>>(
        static_cast<std::size_t>(choice_.workers),
        [&](Pieces& pieces) {
          reader.next(pieces);
          if (pieces.first.pass > 0) return false;
          of_done = reader.file_bytes_read();
          return true;
        },
        [&](const Pieces& pieces) {
          std::vector<std::int32_t> ids;
          for (std::size_t k = 0; k < pieces.all.size(); ++k) encoder.add(pieces, k, ids);
          return ids;
        },
        [&](const Pieces&, const std::vector<std::int32_t>& ids) {
          out.tokens += std::ssize(ids);
          out.file_bytes = before + of_done;
          if (progress) progress(out);
        });
    out.files += std::ssize(files.paths);
  }
  return out;
}

std::string StreamedText::place(std::int64_t consumed, std::int64_t context) const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  StreamJson sources = StreamJson::array();
  const std::vector<std::int64_t> taken = s.order.taken(consumed);
  for (std::size_t i = 0; i < choice_.sources.size(); ++i) {
    const std::int64_t block = taken[i] / choice_.buffer;
    std::optional<BlockPlace> at;
    if (s.context == context) at = s.blocks[i]->place(block);
    if (!at && s.known && s.known->of[i].first == block) at = s.known->of[i].second;
    // Nothing was drawn yet: a run begins with block 0.
    sources.push_back(at ? json_of(block, *at) : json_of(0, {s.begins[i], 0}));
  }
  return StreamJson{{"samples", consumed},
                    {"context", context},
                    {"buffer", choice_.buffer},
                    {"sources", std::move(sources)}}
      .dump();
}

std::string StreamedText::go_on(const std::string& place, const std::string& where) const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  try {
    s.known = parse_places(place, choice_);
  } catch (const StreamJson::exception&) {
    fail(Fault::Checkpoint, where, ": the place in the stream of data is damaged; use another ",
         "checkpoint");
  } catch (const Error& error) {
    throw error.with(text("in the place in the stream of data of ", where));
  }
  s.context = 0;
  std::vector<std::string> packed;
  for (std::size_t i = 0; i < s.files.size(); ++i) {
    const StreamPlace& at = s.known->of[i].second.piece;
    if (at.file == std::ssize(s.files[i].paths) || at.offset == 0) continue;
    const std::string& path = s.files[i].file(at.pass, at.file);
    if (Contents(path).packed()) packed.push_back(text("'", path, "' up to byte ", at.offset));
  }
  return packed.empty()
             ? ""
             : text("packed files are read again before the run goes on: ", join(packed));
}

void StreamedText::sample(std::int64_t number, std::int64_t context, std::int32_t* ids,
                          std::int32_t* labels) const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.begin(context, choice_);
  const auto [source, its] = s.order.at(number);
  const std::int64_t block = its / choice_.buffer;
  const std::vector<std::int32_t>& tokens = s.blocks[source]->block(block);
  const std::uint64_t row = permute(
      static_cast<std::uint64_t>(its % choice_.buffer), static_cast<std::uint64_t>(choice_.buffer),
      random_key(choice_.seed, text("data.order.", source)), static_cast<std::uint64_t>(block));
  copy_window(tokens, static_cast<std::int64_t>(row) * context, context, ids, labels);
}

std::int64_t StreamedText::held_tokens(std::int64_t context) const {
  return kBlocksHeld * std::ssize(choice_.sources) * choice_.buffer * context;
}

namespace {

class StreamedSamples final : public Samples {
 public:
  StreamedSamples(std::shared_ptr<const StreamedText> texts, std::int64_t context,
                  std::int64_t vocabulary)
      : texts_(std::move(texts)), context_(context), vocabulary_(vocabulary) {}

  std::int64_t size() const override { return kMaxSize; }
  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids"),
                                  labels = batch.fill<std::int32_t>("labels");
    for (std::int64_t i = 0; i < count; ++i)
      texts_->sample(first + i, context_, ids.data() + i * context_, labels.data() + i * context_);
    require_ids(ids, vocabulary_, "the stream of data");
    require_ids(labels, vocabulary_, "the stream of data");
  }

 private:
  std::shared_ptr<const StreamedText> texts_;
  std::int64_t context_, vocabulary_;
};

}  // namespace

std::unique_ptr<Samples> streamed_samples(std::shared_ptr<const StreamedText> texts,
                                          std::int64_t context, std::int64_t vocabulary) {
  return std::make_unique<StreamedSamples>(std::move(texts), context, vocabulary);
}

}  // namespace tessera
