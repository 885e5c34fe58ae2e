/* SPDX-License-Identifier: Apache-2.0
 * Streams, events, capture and graphs: the driver's, under the runtime's names.
 */
#include "sim/cudart/cudart.h"

RUNTIME(cudaStreamCreate, (struct sim_stream * *stream))
{
	RT_WITH_CONTEXT(cuStreamCreate(stream, 0));
}

RUNTIME(cudaStreamCreateWithFlags, (struct sim_stream * *stream, unsigned int flags))
{
	RT_WITH_CONTEXT(cuStreamCreate(stream, flags));
}

RUNTIME(cudaStreamCreateWithPriority, (struct sim_stream * *stream, unsigned int flags, int priority))
{
	RT_WITH_CONTEXT(cuStreamCreateWithPriority(stream, flags, priority));
}

RUNTIME(cudaStreamDestroy, (struct sim_stream * stream))
{
	RT_WITH_CONTEXT(cuStreamDestroy_v2(stream));
}

RUNTIME(cudaStreamGetFlags, (struct sim_stream * stream, unsigned int *flags))
{
	RT_WITH_CONTEXT(cuStreamGetFlags(stream, flags));
}

RUNTIME(cudaStreamGetPriority, (struct sim_stream * stream, int *priority))
{
	RT_WITH_CONTEXT(cuStreamGetPriority(stream, priority));
}

RUNTIME(cudaStreamSynchronize, (struct sim_stream * stream))
{
	RT_WITH_CONTEXT(cuStreamSynchronize(stream));
}

RUNTIME(cudaStreamQuery, (struct sim_stream * stream))
{
	RT_WITH_CONTEXT(cuStreamQuery(stream));
}

RUNTIME(cudaStreamWaitEvent, (struct sim_stream * stream, struct sim_event *event, unsigned int flags))
{
	RT_WITH_CONTEXT(cuStreamWaitEvent(stream, event, flags));
}

RUNTIME(cudaEventCreate, (struct sim_event * *event))
{
	RT_WITH_CONTEXT(cuEventCreate(event, 0));
}

RUNTIME(cudaEventCreateWithFlags, (struct sim_event * *event, unsigned int flags))
{
	RT_WITH_CONTEXT(cuEventCreate(event, flags));
}

RUNTIME(cudaEventDestroy, (struct sim_event * event))
{
	RT_WITH_CONTEXT(cuEventDestroy_v2(event));
}

RUNTIME(cudaEventRecord, (struct sim_event * event, struct sim_stream *stream))
{
	RT_WITH_CONTEXT(cuEventRecord(event, stream));
}

RUNTIME(cudaEventRecordWithFlags, (struct sim_event * event, struct sim_stream *stream, unsigned int flags))
{
	RT_WITH_CONTEXT(cuEventRecordWithFlags(event, stream, flags));
}

RUNTIME(cudaEventQuery, (struct sim_event * event))
{
	RT_WITH_CONTEXT(cuEventQuery(event));
}

RUNTIME(cudaEventSynchronize, (struct sim_event * event))
{
	RT_WITH_CONTEXT(cuEventSynchronize(event));
}

RUNTIME(cudaEventElapsedTime, (float *ms, struct sim_event *start, struct sim_event *end))
{
	RT_WITH_CONTEXT(cuEventElapsedTime(ms, start, end));
}

RUNTIME(cudaStreamBeginCapture, (struct sim_stream * stream, int mode))
{
	RT_WITH_CONTEXT(cuStreamBeginCapture_v2(stream, mode));
}

RUNTIME(cudaStreamBeginCaptureToGraph, (struct sim_stream * stream, struct sim_graph *graph, void **dependencies,
					const void *data, size_t count, int mode))
{
	RT_WITH_CONTEXT(cuStreamBeginCaptureToGraph(stream, graph, dependencies, data, count, mode));
}

RUNTIME(cudaStreamEndCapture, (struct sim_stream * stream, struct sim_graph **graph))
{
	RT_WITH_CONTEXT(cuStreamEndCapture(stream, graph));
}

RUNTIME(cudaStreamIsCapturing, (struct sim_stream * stream, int *status))
{
	RT_WITH_CONTEXT(cuStreamIsCapturing(stream, status));
}

/* CUDA 13 gave the name of the oldest form to the newest one, with edge data. */
#if SONAME_MAJOR < 13
RUNTIME(cudaStreamGetCaptureInfo, (struct sim_stream * stream, int *status, uint64_t *id))
{
	RT_WITH_CONTEXT(cuStreamGetCaptureInfo(stream, status, id));
}

RUNTIME(cudaStreamGetCaptureInfo_v2, (struct sim_stream * stream, int *status, uint64_t *id, struct sim_graph **graph,
				      const void ***dependencies, size_t *count))
{
	RT_WITH_CONTEXT(cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count));
}
#define GET_CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#else
#define GET_CAPTURE_INFO cudaStreamGetCaptureInfo
#endif

RUNTIME(GET_CAPTURE_INFO, (struct sim_stream * stream, int *status, uint64_t *id, struct sim_graph **graph,
			   const void ***dependencies, const void **data, size_t *count))
{
	RT_WITH_CONTEXT(cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, data, count));
}

RUNTIME(cudaThreadExchangeStreamCaptureMode, (int *mode))
{
	RT_WITH_DRIVER(cuThreadExchangeStreamCaptureMode(mode));
}

RUNTIME(cudaGraphCreate, (struct sim_graph * *graph, unsigned int flags))
{
	RT_WITH_DRIVER(cuGraphCreate(graph, flags));
}

RUNTIME(cudaGraphDestroy, (struct sim_graph * graph))
{
	RT_WITH_DRIVER(cuGraphDestroy(graph));
}

RUNTIME(cudaGraphGetNodes, (struct sim_graph * graph, void **nodes, size_t *count))
{
	RT_WITH_DRIVER(cuGraphGetNodes(graph, nodes, count));
}

RUNTIME(cudaGraphInstantiate, (struct sim_exec * *exec, struct sim_graph *graph, unsigned long long flags))
{
	RT_WITH_CONTEXT(cuGraphInstantiateWithFlags(exec, graph, flags));
}

RUNTIME(cudaGraphInstantiateWithFlags, (struct sim_exec * *exec, struct sim_graph *graph, unsigned long long flags))
{
	RT_WITH_CONTEXT(cuGraphInstantiateWithFlags(exec, graph, flags));
}

RUNTIME(cudaGraphLaunch, (struct sim_exec * exec, struct sim_stream *stream))
{
	RT_WITH_CONTEXT(cuGraphLaunch(exec, stream));
}

RUNTIME(cudaGraphUpload, (struct sim_exec * exec, struct sim_stream *stream))
{
	RT_WITH_CONTEXT(cuGraphUpload(exec, stream));
}

RUNTIME(cudaGraphExecDestroy, (struct sim_exec * exec))
{
	RT_WITH_DRIVER(cuGraphExecDestroy(exec));
}
