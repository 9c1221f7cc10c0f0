/*
 * reactor_c.h: the internals of the reactor runtime that this part uses, and the check at compile
 * time that they are as it was written for. reactor-c tells no version, so its types do.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "environment.h"
#include "lf_token.h"
#include "lf_types.h"
#include "low_level_platform.h"
#include "reactor.h"
#include "reactor_common.h"
#include "tag.h"
#include "util.h"

#if defined(LF_SINGLE_THREADED)
#error "onbeat_lf: set `single-threaded: false` in the target block: channels have threads"
#endif

#define LF_UNKNOWN "onbeat_lf: unknown reactor-c; docs/lingua-franca.md says which are known"

/* Whether an expression has a type: a function's is that of its arguments and its result. */
#define LF_HAS_TYPE(expression, ...) _Generic((expression), __VA_ARGS__: 1, default: 0)

_Static_assert(LF_HAS_TYPE(&_lf_schedule_at_tag,
			   trigger_handle_t (*)(environment_t *, trigger_t *, tag_t,
						lf_token_t *)),
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&_lf_new_token, lf_token_t *(*)(token_type_t *, void *, size_t)),
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&lf_notify_of_event, int (*)(environment_t *)), LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&lf_time_physical, instant_t (*)(void)), LF_UNKNOWN);
_Static_assert(sizeof(((tag_t *)0)->time) == 8 && sizeof(((tag_t *)0)->microstep) == 4,
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(((lf_action_base_t *)0)->parent, self_base_t *), LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(((self_base_t *)0)->environment, struct environment_t *), LF_UNKNOWN);
