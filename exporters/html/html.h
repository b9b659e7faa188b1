#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "integer/model.h"

namespace miniqat::exporters {

struct HtmlModel {
  integer::Model model;
  /// For its place on the slider: UTF-8.
  std::string label;
  /// The grid of the pictures' bytes. If it is not the input's, the page maps each byte (integer::input_table).
  integer::Grid bytes;
  /// Share of test pictures with the right class, where it is known.
  std::optional<double> accuracy = {};
};

struct HtmlPage {
  /// UTF-8.
  std::string title;
  /// At least one; all with the input's shape and the output's number of elements of the first.
  std::vector<HtmlModel> models;
  /// [n, shape of the input...] uint8, bytes on the grid HtmlModel::bytes. No pictures: a Tensor without elements.
  Tensor pictures = {};
  /// UTF-8, one for each picture.
  std::vector<std::string> picture_names = {};
};

/// One HTML file that runs the models in the browser, in JavaScript, and shows their integers: the files of
/// exporters/html/page/ put together with the models, packed to their bits, in base64. It loads nothing else, and its
/// content security policy forbids it. docs/exports-html.md describes it. UTF-8; the same page gives the same text.
/// Throws what Model::check() throws, and Error when a model is not for the classes of pictures, when models or
/// pictures don't fit together or a text is not UTF-8.
std::string html(const HtmlPage& page);

}  // namespace miniqat::exporters
