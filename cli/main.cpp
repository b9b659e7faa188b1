#include "cli/program.h"

int main(int argc, char** argv) { return miniqat::cli::main_program(argc, argv); }
