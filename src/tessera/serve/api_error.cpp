#include "tessera/serve/api_error.h"

namespace tessera {

nlohmann::ordered_json ApiError::json() const {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  const char* type = "invalid_request_error";
  if (status_ == 401) type = "authentication_error";
  if (status_ >= 500) type = "server_error";
  return {{"error",
           {{"message", message_},
            {"type", type},
            {"param", or_null(param_)},
            {"code", or_null(code_)}}}};
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tessera
