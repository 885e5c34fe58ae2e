/* SPDX-License-Identifier: Apache-2.0
 * libpthread's functions in the versions that they had before glibc 2.34 (see portable.h).
 */
#include <pthread.h>
#include <signal.h>

#include "portable/portable.h"

OLD(pthread_create, GLIBC_FIRST);
OLD(pthread_detach, GLIBC_FIRST);
OLD(pthread_once, GLIBC_FIRST);
OLD(pthread_key_create, GLIBC_FIRST);
OLD(pthread_setspecific, GLIBC_FIRST);
OLD(pthread_sigmask, GLIBC_FIRST);

HERE int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*run)(void *),
			void *restrict arg)
{
	return old_pthread_create(thread, attr, run, arg);
}

HERE int pthread_detach(pthread_t thread)
{
	return old_pthread_detach(thread);
}

HERE int pthread_once(pthread_once_t *once, void (*run)(void))
{
	return old_pthread_once(once, run);
}

HERE int pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
	return old_pthread_key_create(key, destroy);
}

HERE int pthread_setspecific(pthread_key_t key, const void *value)
{
	return old_pthread_setspecific(key, value);
}

HERE int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return old_pthread_sigmask(how, set, old);
}
