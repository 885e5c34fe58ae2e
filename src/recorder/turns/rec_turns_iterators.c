/* SPDX-License-Identifier: Apache-2.0
 * What an iterator of CPython tells: how many elements have been taken from it. Its type says where it keeps that (kb/python_layouts.def).
 */
#include "recorder/turns/rec_turns.h"

#define ITERATORS(X)                                                                      \
	X(PyListIter_Type, READS_INDEX) X(PyTupleIter_Type, READS_INDEX) X(PySeqIter_Type, READS_INDEX) \
	X(PyUnicodeIter_Type, READS_INDEX) X(PyRangeIter_Type, READS_RANGE) X(PyEnum_Type, READS_ENUM) \
	X(PyZip_Type, READS_ZIP) X(PyMap_Type, READS_MAP) X(PySetIter_Type, READS_SET)  \
	X(PyDictIterKey_Type, READS_DICT) X(PyDictIterValue_Type, READS_DICT) X(PyDictIterItem_Type, READS_DICT) \
					X(PyListRevIter_Type, READS_BACK)

enum {
#define X(name, reads) ITERATOR_##name,
	ITERATORS(X)
#undef X
	N_ITERATORS
};

static const void *types[N_ITERATORS];

enum reads iterator_reads(const void *type)
{
	static const uint8_t how[] = {
#define X(name, reads) reads,
		ITERATORS(X)
#undef X
	};
	const char *name;

	for (uint32_t i = 0; i < N_ITERATORS; i++)
		if (type == types[i])
			return how[i];
	name = load(type, PY_TYPE_NAME);
	if (!name || strncmp(name, "itertools.", 10) != 0)
		return name && strcmp(name, "str_ascii_iterator") == 0 ? READS_INDEX : READS_NOT;
	return strcmp(name + 10, "count") == 0 ? READS_COUNT : strcmp(name + 10, "islice") == 0 ? READS_ISLICE : READS_NOT;
}

bool iterator_read(const void *it, enum reads how, unsigned depth, struct reading *r)
{
	struct reading inner;
	const void *items;
	bool first = false;		/* this is the first turn, or taken for it */

	*r = (struct reading){.exact = true};
	switch (how) {
	case READS_NOT:
		return false;
	case READS_INDEX:
		r->at = PY_ITER_INDEX;
		r->turns = load_number(it, r->at);
		break;
	case READS_RANGE:
		if (py.l.minor < 12) {
			r->at = PY_RANGE_ITER_INDEX;
			r->turns = load_number(it, r->at);
			break;
		}
		r->at = PY_RANGE_ITER_LEFT;
		r->turns = -load_number(it, r->at);
		first = true;
		r->exact = load_number(it, PY_RANGE_ITER_NEXT) == load_number(it, PY_RANGE_ITER_STEP);	/* a range from 0 */
		break;
	case READS_BACK:
		r->at = PY_BACK_ITER_INDEX;
		items = load(it, PY_BACK_ITER_LIST);
		if (!items)
			return false;
		r->turns = load_number(items, PY_COUNT) - 1 - load_number(it, r->at);
		break;
	case READS_DICT:
		r->at = PY_DICT_ITER_LEFT;
		r->turns = load_number(it, PY_DICT_ITER_COUNT) - load_number(it, r->at);
		break;
	case READS_SET:
		r->at = PY_SET_ITER_LEFT;
		r->turns = load_number(it, PY_SET_ITER_COUNT) - load_number(it, r->at);
		break;
	case READS_ENUM:		/* it may count from any number: only the iterator inside can say which turn is the first */
		r->at = PY_ENUMERATE_COUNT;
		r->turns = load_number(it, r->at);
		items = load(it, PY_ENUMERATE_OF);
		if (depth < 3 && iterator_read(items, iterator_reads(load(items, PY_TYPE)), depth + 1, &inner) &&
		    inner.exact)
			r->base = r->turns - (inner.turns - inner.base);
		else
			first = r->turns != 1;
		r->exact = !first;
		break;
	case READS_COUNT:		/* likewise */
		r->at = PY_COUNT_COUNT;
		r->turns = load_number(it, r->at);
		r->exact = r->turns == 1;
		first = !r->exact;
		break;
	case READS_ISLICE:
		r->at = PY_ISLICE_COUNT;
		r->turns = load_number(it, r->at);
		r->exact = r->turns == 1;
		first = !r->exact;
		break;
	case READS_ZIP:
	case READS_MAP:			/* a tuple of iterators */
		items = load(it, how == READS_ZIP ? PY_ZIP_OF : PY_MAP_OF);
		items = items && load_number(items, PY_COUNT) > 0 ? load(items, PY_TUPLE_ITEMS) : NULL;
		if (!items || depth > 2 || !iterator_read(items, iterator_reads(load(items, PY_TYPE)), depth + 1, r))
			return false;
		r->at = 0;
		return true;
	}
	if (first)
		r->base = r->turns - 1;
	r->word = load_number(it, r->at);
	return true;
}

int8_t iterator_pace(enum reads how)
{
	switch (how) {
	case READS_INDEX:
	case READS_ENUM:
	case READS_COUNT:
	case READS_ISLICE:
		return 1;
	case READS_RANGE:
		return py.l.minor < 12 ? 1 : -1;
	default:
		return 0;
	}
}

bool iterator_counts_late(enum reads how)
{
	return how == READS_ENUM || how == READS_ISLICE;
}

void iterators_start(struct elf_object *o)
{
#define X(name, reads) types[ITERATOR_##name] = elf_symbol(o, #name);
	ITERATORS(X)
#undef X
}
