#pragma once
/// What a program asks for: the body of POST /v1/completions or /v1/chat/completions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct CompletionRequest {
  std::string model;                       // empty: it names none
  std::string prompt;                      // of completions: a text ...
  std::vector<std::int32_t> prompt_ids;    // ... or tokens
  nlohmann::ordered_json messages;         // of a chat: [{"role", "content"}]
  std::optional<std::int64_t> max_tokens;  // none: what the server thinks
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;             // 0: all
  std::optional<std::uint64_t> seed;  // none: the draws of the next text
  std::vector<std::string> stops;
  bool stream = false, include_usage = false;
};

/// Errors: ApiError 400, which names the field: no JSON, JSON deeper than 32, an object with a key
/// twice or more than 256, more than 4096 messages, a field of another type or out of range, one that is missing, one that is not known, and one that asks for what this
/// server does not do. A field that is null counts as left out.
CompletionRequest read_completion_request(const std::string& body, bool chat);

}  // namespace tessera
