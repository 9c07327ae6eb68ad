#include "daemon/server.h"

int main(int argc, char** argv) { return repotxn::daemon::RunDaemon(argc, argv); }
