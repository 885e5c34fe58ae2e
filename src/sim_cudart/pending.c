#include "sim_cudart/cudart.h"
#define P(name) int name(void); __attribute__((weak)) int name(void) { return 801; }
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
 P(cuMemPoolGetAttribute) P(cuMemPoolSetAttribute) P(cuMemPoolSetAccess) P(cuMemPoolTrimTo) P(cuDeviceGetGraphMemAttribute) P(cuDeviceSetGraphMemAttribute) P(cuIpcGetEventHandle) P(cuIpcOpenEventHandle) P(cuGraphNodeGetDependencies) P(cuStreamUpdateCaptureDependencies) P(cuGraphNodeGetDependencies_v2) P(cuStreamUpdateCaptureDependencies_v2) P(cuGraphDebugDotPrint) P(cuUserObjectCreate) P(cuUserObjectRelease) P(cuGraphRetainUserObject)
