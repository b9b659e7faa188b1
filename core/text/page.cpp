#include "core/text/page.h"

#include <cstdint>

#include "core/text/json.h"

namespace miniqat {

std::string fill_page(std::string_view page, const std::function<std::string(std::string_view)>& part) {
  std::string html;
  for (std::size_t mark; (mark = page.find('@')) != page.npos;) {
    const std::size_t end = page.find('@', mark + 1);
    html += page.substr(0, mark);
    html += part(page.substr(mark + 1, end - mark - 1));
    page.remove_prefix(end + 1);
  }
  return html.append(page);
}

std::string html_text(std::string_view text) {
  std::string html;
  for (const char character : text) {
    if (character == '<')
      html += "&lt;";
    else if (character == '&')
      html += "&amp;";
    else
      html += character;
  }
  return html;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char character : json.dump()) character == '<' ? text += "\\u003c" : text += character;
  return text;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += at + i > bytes.size() ? '=' : kDigits[group >> (18 - 6 * i) & 63];
  }
  return text;
}

}  // namespace miniqat
