#pragma once

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// Puts a picture with alpha, its last channel (2 or 4 channels), on black; 1 or 3 stay. Others are left as they are.
void put_on_black(Picture& picture);

}  // namespace miniqat::datasets
