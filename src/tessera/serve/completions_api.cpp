#include "tessera/serve/completions_api.h"

#include <ctime>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::int64_t kTokensOfCompletions = 16;  // where a request does not say how many

Json usage(std::int64_t prompt, std::int64_t written) {
  return {{"prompt_tokens", prompt},
          {"completion_tokens", written},
          {"total_tokens", prompt + written}};
}

/// The replies to one request, whole or in pieces.
class ReplyForm {
 public:
  ReplyForm(const ServedModel& model, bool chat, bool usage, std::int64_t number)
      : chat_(chat), usage_(usage) {
    base_["id"] = text(chat ? "chatcmpl-" : "cmpl-", std::time(nullptr), "-", number);
    base_["object"] = chat ? "chat.completion" : "text_completion";
    base_["created"] = std::time(nullptr);
    base_["model"] = model.name;
  }

  Json whole(const std::string& written, const char* reason, std::int64_t prompt,
             std::int64_t tokens) const {
    Json out = base_;
    Json choice = {{"index", 0}};
    if (chat_)
      choice["message"] = {{"role", "assistant"}, {"content", written}, {"refusal", nullptr}};
    else
      choice["text"] = written;
    choice["logprobs"] = nullptr, choice["finish_reason"] = reason;
    out["choices"] = Json::array({choice});
    out["usage"] = usage(prompt, tokens);
    return out;
  }
  /// `begins`: the first piece of a message, which says whose it is.
  Json piece(const std::string& written, bool begins) const {
    if (!chat_) return event({{"text", written}}, nullptr);
    Json delta = Json::object();
    if (begins) delta["role"] = "assistant";
    delta["content"] = written;
    return event({{"delta", delta}}, nullptr);
  }
  Json last(const char* reason) const {
    return chat_ ? event({{"delta", Json::object()}}, reason) : event({{"text", ""}}, reason);
  }
  Json counts(std::int64_t prompt, std::int64_t tokens) const {
    Json out = event_base();
    out["choices"] = Json::array();
    out["usage"] = usage(prompt, tokens);
    return out;
  }

 private:
  Json event_base() const {
    Json out = base_;
    if (chat_) out["object"] = "chat.completion.chunk";
    return out;
  }
  Json event(const Json& fields, Json reason) const {
    Json out = event_base(), choice = {{"index", 0}};
    choice.update(fields);
    choice["logprobs"] = nullptr, choice["finish_reason"] = std::move(reason);
    out["choices"] = Json::array({choice});
    if (usage_) out["usage"] = nullptr;
    return out;
  }

  Json base_;
  bool chat_, usage_;
};

Json model_json(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "tessera"},
          {"max_model_len", model.writing.context}};
}

void require_method(const HttpExchange& exchange, const char* method) {
  if (exchange.head().method == method) return;
  ApiError error(405, text(exchange.head().path, " takes ", method, " alone"));
  error.fields = {{"Allow", method}};
  throw error;
}

/// The end of an answer that did not fail.
AnswerEnd ended_well(const AnswerEnd& end) {
  if (end.reason == nullptr) throw ApiError(end.status, end.message);
  return end;
}

void reply_whole(HttpExchange& exchange, WaitedAnswer& answer, const ReplyForm& form,
                 std::int64_t prompt) {
  std::string written;
  for (;;) {
    written += answer.take(kBetweenLooks);
    if (const auto end = answer.end()) {
      const AnswerEnd well = ended_well(*end);
      return exchange.send_json(200, dump(form.whole(written, well.reason, prompt, well.tokens)));
    }
    if (exchange.gone()) return answer.cancel();
  }
}

void reply_in_pieces(HttpExchange& exchange, WaitedAnswer& answer, const ReplyForm& form,
                     std::int64_t prompt, bool counts) {
  bool begins = true;
  for (;;) {
    const std::string piece = answer.take(kBetweenLooks);
    const auto end = answer.end();
    if (begins && end) ended_well(*end);  // nothing has been sent: it fails with a status
    bool taken = true;
    if (!piece.empty() || (begins && end)) {
      if (begins) exchange.begin_events();
      taken = exchange.send_event(dump(form.piece(piece, begins)));
      begins = false;
    }
    if (!taken || exchange.gone()) return answer.cancel();
    if (!end) continue;
    if (end->reason == nullptr) {
      exchange.send_event(dump(ApiError(end->status, end->message).json()));
      return exchange.end_events();
    }
    exchange.send_event(dump(form.last(end->reason)));
    if (counts) exchange.send_event(dump(form.counts(prompt, end->tokens)));
    exchange.send_event("[DONE]");
    return exchange.end_events();
  }
}

}  // namespace

CompletionsApi::CompletionsApi(ServedModel model, Access access, AnswerQueue& queue)
    : model_(std::move(model)), access_(std::move(access)), queue_(queue) {
  try {
    if (model_.writing.source > 0)
      throw Error(Fault::Usage, "this model writes from a source; a dialogue needs a decoder");
    chat_.emplace(model_.vocabulary);
    chat_end_ = chat_->end();
  } catch (const Error& error) {
    chat_.reset();
    no_chat_ = error.what();
  }
}

void CompletionsApi::answer(HttpExchange& exchange) {
  const std::string& path = exchange.head().path;
  if (path == "/health") {
    require_method(exchange, "GET");
    return exchange.send_json(200, R"({"status": "ok"})");
  }
  require_access(exchange.head(), access_);
  if (path == "/v1/models" || path == "/v1/models/" + model_.name) {
    require_method(exchange, "GET");
    const Json one = model_json(model_);
    return exchange.send_json(
        200,
        dump(path == "/v1/models" ? Json{{"object", "list"}, {"data", Json::array({one})}} : one));
  }
  const bool chat = path == "/v1/chat/completions";
  if (!chat && path != "/v1/completions")
    throw ApiError(404, text("there is no ", path, "; see /v1/models, /v1/completions and ",
                             "/v1/chat/completions"));
  require_method(exchange, "POST");
  complete(exchange, chat);
}

std::int64_t CompletionsApi::room_behind(const Beginning& beginning) const {
  const std::int64_t prompt = std::ssize(beginning.prompt);
  // What is written from a source may end at the context; of what continues, its last token is not
  // read again.
  return model_.writing.context - prompt + (model_.writing.source > 0 ? 1 : 0);
}

AnswerRequest CompletionsApi::answer_request(const CompletionRequest& asked, bool chat) {
  AnswerRequest out;
  if (chat) {
    out.beginning.prompt = chat_->tokens(asked.messages);
    out.end = chat_end_;
  } else if (asked.prompt_ids.empty()) {
    out.beginning = model_.begin(asked.prompt);
  } else {
    for (const std::int32_t id : asked.prompt_ids) {
      if (id >= model_.ids)
        throw ApiError(400, text("prompt has token ", id, ", the model has ", model_.ids), "prompt",
                       "invalid_value");
    }
    out.beginning = beginning_of(model_.writing, model_.vocabulary, asked.prompt_ids);
  }
  const std::int64_t prompt = std::ssize(out.beginning.prompt), room = room_behind(out.beginning);
  const char* const param = chat ? "messages" : "prompt";
  const bool too_long = std::ssize(out.beginning.source) > model_.writing.source;
  if (room < 1 || too_long)
    throw ApiError(
        400,
        text(param, " has ", counted(too_long ? std::ssize(out.beginning.source) : prompt, "token"),
             ", which leaves no room in the context of ",
             too_long ? model_.writing.source : model_.writing.context),
        param, "context_length_exceeded");
  if (asked.max_tokens && *asked.max_tokens > room)
    throw ApiError(400,
                   text("max_tokens is ", *asked.max_tokens, ", and ", param, " has ",
                        counted(prompt, "token"), ": together more than the context of ",
                        model_.writing.context, "; give at most ", room),
                   "max_tokens", "context_length_exceeded");
  out.options = {
      .tokens = asked.max_tokens.value_or(chat ? room : std::min(room, kTokensOfCompletions)),
      .temperature = asked.temperature,
      .top_k = asked.top_k,
      .top_p = asked.top_p,
      .seed = asked.seed.value_or(model_.seed),
      .first = asked.seed ? 0 : texts_++};
  out.stops = asked.stops;
  return out;
}

void CompletionsApi::complete(HttpExchange& exchange, bool chat) {
  const CompletionRequest asked = read_completion_request(exchange.body(), chat);
  if (!asked.model.empty() && asked.model != model_.name)
    throw ApiError(404,
                   text("there is no model ", dump(Json(asked.model)), "; this one is ",
                        dump(Json(model_.name))),
                   "model", "model_not_found");
  if (chat && !chat_) throw ApiError(400, no_chat_, "messages", "no_chat_template");
  const std::shared_ptr<WaitedAnswer> answer = [&] {
    try {
      return std::make_shared<WaitedAnswer>(answer_request(asked, chat));
    } catch (const Error& error) {  // of the vocabulary or the template
      if (error.fault() != Fault::Usage && error.fault() != Fault::Data) throw;
      throw ApiError(400, error.what(), chat ? "messages" : "prompt", "invalid_value");
    }
  }();
  if (!queue_.push(answer)) {
    ApiError error(503, "as many requests wait as may; try again later", {}, "queue_full");
    error.fields = {{"Retry-After", "1"}};
    throw error;
  }
  const Beginning& beginning = answer->request().beginning;
  const std::int64_t prompt =
      std::ssize(beginning.source.empty() ? beginning.prompt : beginning.source);
  const ReplyForm form(model_, chat, asked.include_usage, ++replies_);
  if (asked.stream)
    reply_in_pieces(exchange, *answer, form, prompt, asked.include_usage);
  else
    reply_whole(exchange, *answer, form, prompt);
}

}  // namespace tessera
