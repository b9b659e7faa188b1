#include "training/run/file_notes.h"

#include "core/text/json.h"

namespace miniqat::training {

void warn_of_files(const datasets::Splits& data, RunObserver& observer) {
  for (const std::string& note : data.remarks().notes) observer.warn(note);
}

void write_skipped_files(const datasets::Splits& data, const RunDirectory& run) {
  const datasets::FileRemarks remarks = data.remarks();
  if (remarks.skipped.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (const datasets::SkippedFile& file : remarks.skipped) list.push_back({{"file", file.file}, {"why", file.why}});
  write_json(run.skipped_files(), list);
}

}  // namespace miniqat::training
