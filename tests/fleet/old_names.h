/* SPDX-License-Identifier: Apache-2.0 */
/* What the peer calls by names that the old library does not have yet. old.sh includes it before everything else. */
#ifndef ZKFLEET_OLD_NAMES_H
#define ZKFLEET_OLD_NAMES_H

#define zkl_mutex_options zkl_lock_options
#define ZKL_MUTEX_OPTIONS_INIT ZKL_LOCK_OPTIONS_INIT
#define ZKL_HOLD_REVOKE_REQUESTED ZKL_REVOKED
#define ZKL_HOLD_LOST ZKL_LOST
#define zkl_rwlock_reader zkl_rwlock_read
#define zkl_rwlock_writer zkl_rwlock_write
#define zkl_error_name(code) zkl_strerror(code)
#define zkl_rwlock_retain_readers(lock, ms) ((void)(ms), ZKL_EINVAL) /* it retains none */
#define zkl_inspection_entry(inspection, i) (&(inspection)->entries[i])

#endif
