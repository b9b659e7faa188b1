#include "core/text/page.h"

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

}  // namespace miniqat
