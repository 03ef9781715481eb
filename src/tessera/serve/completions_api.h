#pragma once
/// The completions interface: which paths there are, and what each answers.
///
///   GET  /health                 {"status": "ok"}; needs no token
///   GET  /v1/models              the one model; also /v1/models/NAME
///   POST /v1/completions         continues a text
///   POST /v1/chat/completions    answers a dialogue, by the chat template
///
/// The last two also as server-sent events ("stream": true).

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tessera/data/chat_form.h"
#include "tessera/models/task.h"
#include "tessera/serve/answers.h"
#include "tessera/serve/completion_request.h"
#include "tessera/serve/http_server.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// The model that is served, as its connections see it. All of it outlives the server.
struct ServedModel {
  std::string name;          // as clients name it
  std::int64_t created = 0;  // seconds since 1970
  const Vocabulary& vocabulary;
  const TextWriting& writing;
  std::int64_t ids = 0;  // of the model
  /// How a text begins. Errors: Error: what cannot be a prompt.
  std::function<Beginning(const std::string& prompt)> begin;
  std::uint64_t seed = 1;  // of requests without one: each has other draws
};

/// Who may ask.
struct Access {
  std::string token;  // that a request has to bring; empty: none
  std::string host;   // where the server listens, for requests without a token
};

/// Errors: ApiError 401: another token than that, or none. 403: without a token, a request by
/// another name than this host's, or from a page of another one: a browser would answer for it.
void require_access(const HttpHead& head, const Access& access);

class CompletionsApi {
 public:
  CompletionsApi(ServedModel model, Access access, AnswerQueue& queue);
  /// A handler of HttpServer.
  void answer(HttpExchange& exchange);

 private:
  void complete(HttpExchange& exchange, bool chat);
  AnswerRequest answer_request(const CompletionRequest& asked, bool chat);
  std::int64_t room_behind(const Beginning& beginning) const;

  ServedModel model_;
  Access access_;
  AnswerQueue& queue_;
  std::optional<ChatForm> chat_;
  std::optional<std::int32_t> chat_end_;
  std::string no_chat_;                  // why there is none
  std::atomic<std::int64_t> texts_ = 0;  // without a seed
  std::atomic<std::int64_t> replies_ = 0;
};

}  // namespace tessera
