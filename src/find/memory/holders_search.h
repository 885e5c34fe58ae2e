/* SPDX-License-Identifier: Apache-2.0
 * The objects of a program, each with the one through which it was reached first.
 */
#ifndef CUWHY_HOLDERS_SEARCH_H
#define CUWHY_HOLDERS_SEARCH_H

#include "base/map.h"
#include "read/live/pyheap.h"

#define NO_NODE		UINT32_MAX

enum node_root { ROOT_NONE, ROOT_MODULE, ROOT_VARIABLES, ROOT_FRAME, ROOT_EXCEPTION, ROOT_CONTEXT };

struct node {
	uint64_t object;	/* ROOT_VARIABLES: a frame that is no object */
	uint64_t name;		/* as in py_edge; ROOT_MODULE: its name; ROOT_CONTEXT: the state of its thread */
	uint32_t parent;	/* NO_NODE: a root */
	uint32_t at;		/* as in py_edge; ROOT_VARIABLES: which of `raw` */
	uint8_t link;		/* enum py_link */
	uint8_t root;		/* enum node_root */
};

struct root_frame { struct py_raw raw; uint64_t thread; };	/* and the state of its thread */

struct search {
	struct pyheap *heap;
	const char *torch_path;	/* as frame_owner() wants it */
	struct node *node;
	size_t n, cap;
	struct map seen;
	uint32_t *tensor;	/* nodes */
	size_t n_tensors, cap_tensors;
	struct root_frame *raw;
	size_t n_raw, cap_raw;
	uint64_t *dict;		/* of modules: roots, never reached from elsewhere */
	size_t n_dicts, cap_dicts;
	struct map dicts;
	struct module_dict { uint64_t name, dict; bool user; } *module;
	size_t n_modules;
	uint32_t *later;	/* containers with many items */
	size_t n_later, cap_later, done;
	size_t next;		/* the first node that was not followed */
	struct py_edges edges;
	uint64_t main_dict;
	bool full;		/* there are more objects than are kept */
};

/* From the names of the main module, the program's frames in the exception, outermost first, and in all threads, its other modules, and the
 * frames of libraries; then what large containers among these hold; then from the modules of libraries. */
void search_names(struct search *s, struct pyheap *heap, uint64_t exception, const char *torch_path);
void search_large(struct search *s);
void search_rest(struct search *s);
void search_release(struct search *s);

/* Is it a dictionary in which a module of PyTorch keeps its parts? */
bool search_is_module_part(struct search *s, uint32_t node);

/* Is the link from its parent still there? */
bool search_holds(struct search *s, uint32_t node);

/* Is it a root, and still one: a module that is loaded, a frame that runs? */
bool search_stands(struct search *s, uint32_t root);

#endif
