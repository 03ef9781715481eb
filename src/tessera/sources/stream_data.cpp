#include "tessera/sources/stream_data.h"

#include <algorithm>

#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/config/recorded.h"
#include "tessera/config/row_fields.h"
#include "tessera/data/dialogues.h"
#include "tessera/data/streamed_text.h"
#include "tessera/files/table_file.h"
#include "tessera/files/text.h"
#include "tessera/models/family.h"
#include "tessera/models/task_kind.h"
#include "tessera/sources/row_data.h"
#include "tessera/sources/text_data.h"
#include "tessera/token_files/blend.h"
#include "tessera/token_files/indexed_dataset.h"

namespace tessera {

namespace {

/// A vocabulary that needs no text.
Vocabulary vocabulary_of_stream(const RunConfig& config, const KnownModel& model) {
  if (model.vocabulary != nullptr) return *model.vocabulary;
  const VocabularyChoice choice = vocabulary_choice(config);
  require(choice.kind == VocabularyKind::Bytes || choice.kind == VocabularyKind::Tokenizer,
          "vocabulary ", to_text(choice.kind), " is made of the whole text, and a stream is never ",
          "read whole; give tokenizer-name-or-path, or vocabulary bytes");
  return Vocabulary::of(choice, "");
}

void refuse_what_streams_lack(const RunConfig& config) {
  constexpr std::string_view kWhat = "a stream";
  require(find_task(config.model) != nullptr && has_task(config.model, kCausalLm),
          "stream is for models that predict the next token, and family ", config.model.family,
          " has another task; leave it out, or give token files (tessera preprocess_data)");
  require(config.epochs == 0, "epochs is ", config.epochs, ", and nobody knows how many samples a ",
          "stream has before it is read; give steps");
  require(config.packing == to_text(Packing::Wrapped), "packing ", config.packing,
          " needs all documents at once; give packing ", to_text(Packing::Wrapped),
          " with a stream");
  refuse_given(config, {"held-out"}, kWhat, "give valid-data");
  refuse_given(config, {"bucket-lengths"}, kWhat, "leave it out");
  refuse_given(config, {"reset-position-ids", "reset-attention-mask"}, kWhat,
               "leave it out, or give token files");
  refuse_given(config, data_fields(rows::kTokenFiles), kWhat,
               "leave it out, or give token files, as preprocess_data makes them");
}

constexpr const char* kUsualColumn = "text";

/// Errors: another table than JSON lines; dialogues.
void require_readable(const RunConfig& config, const std::string& path) {
  const auto given = find_word<TableFormat>(kTableFormats, config.data_format),
             format = given ? given : table_format(path);
  if (config.text_column.empty() || !format) return;
  require(*format == TableFormat::JsonLines, "'", path, "' is a table of another kind than JSON ",
          "lines, of which alone a stream reads a column; write it as JSON lines, or leave stream ",
          "out");
  bool dialogues = has_messages(path, config.text_column);
  if (!dialogues && find_dialogue_keys(path)) {
    const std::vector<std::string> columns = table_columns(path);
    dialogues = std::ranges::find(columns, config.text_column) == columns.end();
  }
  require(!dialogues, "'", path, "' has dialogues, which a stream does not take; leave stream out");
}

/// Errors: Fault::Resource: samples that are shuffled together, and those read ahead of them, would
/// not fit into memory.
void require_room(const RunConfig& config) {
  const std::int64_t of_sample = 4 * (config.model.context + 1), most = free_memory_bytes() / 2;
  if (most > 0 && config.shuffle_buffer > most / (2 * of_sample))
    fail(Fault::Resource, "shuffle-buffer is ", config.shuffle_buffer, " samples of ",
         config.model.context, " tokens, which are held twice, and half of the free memory is ",
         bytes_text(most), "; give at most ", std::max<std::int64_t>(most / (2 * of_sample), 1));
}

StreamChoice stream_choice(const RunConfig& config) {
  require_room(config);
  const BlendList blend = parse_blend(config.data);
  for (const std::string& prefix : blend.prefixes)
    require(!IndexedDataset::exists(prefix), "data '", prefix, "' is token files, which are never ",
            "read whole; leave stream out");
  StreamChoice out{.weights = blend.weights,
                   .column = config.text_column,
                   .format = find_word<TableFormat>(kTableFormats, config.data_format),
                   .skip_bad_rows = config.skip_bad_rows,
                   .seed = static_cast<std::uint64_t>(config.seed),
                   .buffer = config.shuffle_buffer,
                   .offset = config.stream_offset};
  if (blend.weights.empty()) {
    out.sources = {text_files(blend.prefixes)};
  } else {
    for (const std::string& path : blend.prefixes) out.sources.push_back(text_files({path}));
  }
  for (const std::vector<std::string>& source : out.sources) {
    for (const std::string& path : source) require_readable(config, path);
  }
  return out;
}

/// config.test_data, with a vocabulary: tables where the column of the texts is known, else texts.
Dataset load_held_out(const RunConfig& config, const Dataset& trained, bool reads_labels) {
  const bool table =
      !config.text_column.empty() && (find_word<TableFormat>(kTableFormats, config.data_format) ||
                                      table_format(text_files(config.test_data).front()));
  return table ? load_test_rows(config, trained, reads_labels)
               : load_test_text_data(config, trained, reads_labels);
}

}  // namespace

void find_stream_column(RunConfig& config) try {
  if (!streams(config) || !config.text_column.empty()) return;
  const std::vector<std::string> paths = text_files(parse_blend(config.data).prefixes);
  const auto is_table = [](const std::string& path) { return table_format(path).has_value(); };
  if (std::ranges::any_of(paths, is_table)) config.text_column = kUsualColumn;
} catch (const Error&) {  // whoever reads the data says so
}

Dataset load_stream(const RunConfig& config, const KnownModel& model) try {
  refuse_what_streams_lack(config);
  auto stream = std::make_shared<const StreamedText>(stream_choice(config),
                                                     vocabulary_of_stream(config, model));
  Dataset out{.vocabulary = vocabulary_of_stream(config, model),
              .content = Texts{TokenStream::none(), stream->files(), {}},
              .digest = stream->digest()};
  if (!config.valid_data.empty()) {
    RunConfig valid = config;
    valid.test_data = config.valid_data;
    Dataset held = load_held_out(valid, out, true);
    std::swap(out.content, held.content);
    out.held_out_digest = held.digest;
    out.notice = held.notice;
    Texts& texts = std::get<Texts>(out.content);
    texts.held_out_files = std::exchange(texts.files, stream->files());
  }
  std::get<Texts>(out.content).stream = std::move(stream);
  // A preset may say it, so it is no error.
  if (config.sample_order == SampleOrder::RandomOffsets)
    out.notice += text(out.notice.empty() ? "" : "; ", "sample-order ",
                       to_text(config.sample_order), " does nothing with a stream");
  return out;
} catch (const Error& error) {
  throw in_vocabulary_of(model, error);
}

Dataset load_test_of_stream(const RunConfig& config, const Dataset& trained, bool reads_labels) {
  return load_held_out(config, trained, reads_labels);
}

void settle_stream(RunConfig& config, const Dataset&) {
  if (config.valid_data.empty()) config.held_out = 0;
}

std::string go_on_in_stream(const Dataset& data, const RunConfig& config, const RecordedRun& run,
                            const Checkpoint& from) {
  if (data.stream() == nullptr) return "";
  if (data.digest != run.data || config.seed != run.config.seed)
    return "data or seed are others than the checkpoint's: the stream is read from its start up to "
           "the samples that come next";
  const auto& texts = from.record().texts;
  const auto found = texts.find(kRecordedStream);
  if (found == texts.end()) return "";
  return data.stream()->go_on(found->second, text("checkpoint '", from.path(), "'"));
}

std::int64_t tokens_in_memory(const Dataset& data, const RunConfig& config) {
  const Texts* const texts = data.find_texts();
  if (texts == nullptr) return 0;
  return std::ssize(texts->tokens.all()) +
         (texts->stream ? texts->stream->held_tokens(config.model.context) : 0);
}

}  // namespace tessera
