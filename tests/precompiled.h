// What nearly every test includes, compiled once. Tests include what they use nevertheless.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "layers/layers.h"
