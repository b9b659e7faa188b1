#pragma once

#include <string>

namespace miniqat::cli {

/// Takes the places of those of stdin, stdout and stderr that are closed, so that no file which the program opens gets
/// one of their numbers and the next line printed. Writing there fails as before. Call it before anything is opened.
void keep_standard_streams();

/// Flushes stdout; why something that was printed did not arrive, "" when all did. Also "" when it is a pipe whose
/// reader has gone (`| head -1`): who stops reading wants no more.
std::string failure_of_stdout();

}  // namespace miniqat::cli
