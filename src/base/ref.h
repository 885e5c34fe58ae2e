/* SPDX-License-Identifier: Apache-2.0
 * Pointers within data that are made when cuwhy is built: each says how far its target is from itself. So the data needs no relocation,
 * lies in the program file as it is, and all processes share it.
 *
 *	REF(const char) name;		in a struct; all zero is NULL
 *	AT(c->name)			the pointer
 *	REF_SET(c->name, text)		while it is made
 */
#ifndef CUWHY_REF_H
#define CUWHY_REF_H

#include <stddef.h>
#include <stdint.h>

/* `typed` takes no room: it is there for the compiler alone. */
#define REF(type)                   \
	struct {                    \
		int32_t by;         \
		type *typed[0];     \
	} __attribute__((packed, aligned(4)))

#define AT(ref) ((__typeof__((ref).typed[0]))ref_at(&(ref), (ref).by))

#define REF_SET(ref, target)                                                    \
	do {                                                                    \
		__typeof__((ref).typed[0]) ref_target_ = (target);              \
		(ref).by = ref_distance(&(ref), ref_target_);                   \
	} while (0)

static inline void *ref_at(const void *ref, int32_t by)
{
	uintptr_t at = (uintptr_t)ref + (uintptr_t)(intptr_t)by;

	__asm__("" : "+r"(at));	/* the compiler must not think that the target is in the same object as the reference */
	return by ? (void *)at : NULL;
}

static inline int32_t ref_distance(const void *ref, const void *target)
{
	return target ? (int32_t)((const char *)target - (const char *)ref) : 0;
}

#endif
