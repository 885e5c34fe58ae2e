/* SPDX-License-Identifier: Apache-2.0
 * Settings in texts: what is read, and what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "find/words/env.h"

/* "fact=value said" of every setting in the line. */
static void reads(const char *line, const char *expected)
{
	static struct settings t;
	char all[400] = "";

	memset(&t, 0, sizeof(t));
	settings_line(&t, line, "log", 1);
	for (size_t i = 0; i < t.n; i++) {
		const struct setting *s = &t.list[i];
		size_t n = strlen(all);

		if (fact_type(s->fact) == TYPE_TEXT)
			snprintf(all + n, sizeof(all) - n, "%s=%s (%s) ", fact_name(s->fact), s->text, s->said);
		else
			snprintf(all + n, sizeof(all) - n, "%s=%g (%s) ", fact_name(s->fact), s->number, s->said);
	}
	assert_string_equal(all, expected);
}

static void setting__options_of_a_command_line(void **state)
{
	(void)state;
	reads("vllm serve m --gpu-memory-utilization 0.95 --max-model-len=8192",
	      "set.utilization=0.95 (--gpu-memory-utilization 0.95) set.length=8192 (--max-model-len=8192) ");
	reads("docker run --gpus all --shm-size=8g --ipc host img",
	      "set.gpus=all (--gpus all) set.shm=8.58993e+09 (--shm-size=8g) set.ipc=host (--ipc host) ");
	reads("#SBATCH --gres=gpu:2", "set.gres=gpu:2 (--gres=gpu:2) ");
	reads("train.py --gradient_checkpointing --bf16", "set.checkpointing=1 (--gradient_checkpointing) ");
	reads("train.py --gradient-checkpointing False", "set.checkpointing=0 (--gradient-checkpointing False) ");
	reads("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True python t.py",
	      "torch.alloc_conf=max_split_size_mb:128,expandable_segments:True "
	      "(PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True) ");
}

static void setting__rows_of_a_configuration_and_arguments_in_code(void **state)
{
	(void)state;
	reads("per_device_train_batch_size: 8", "set.batch=8 (per_device_train_batch_size: 8) ");
	reads("\"train_micro_batch_size_per_gpu\": 4,", "set.batch=4 (\"train_micro_batch_size_per_gpu\": 4) ");
	reads("\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}}",
	      "set.stage=3 (\"stage\": 3) set.offload=1 (\"offload_optimizer\": {) ");
	reads("DataLoader(ds, batch_size=64, num_workers=16, pin_memory=True)",
	      "set.batch=64 (batch_size=64) set.workers=16 (num_workers=16) set.pin=1 (pin_memory=True) ");
	reads("m = load(name, device_map=\"auto\")", "set.device_map=auto (device_map=\"auto\") ");
	reads("os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"", "set.blocking=1 (CUDA_LAUNCH_BLOCKING\"] = \"1) ");
	reads("with a batch size of 16.", "set.batch=16 (batch size of 16) ");
	reads("  shm_size: '2gb'", "set.shm=2.14748e+09 (shm_size: '2gb') ");
}

static void setting__advice_and_definitions_are_none(void **state)
{
	(void)state;
	reads("memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.", "");
	reads("For debugging consider passing CUDA_LAUNCH_BLOCKING=1", "");
	reads("Set CUDA_LAUNCH_BLOCKING=1 when you debug", "");
	reads("usage: train.py [--gpus N] [--batch-size N]", "");
	reads("train.py: error: argument --gpus: invalid int value: 'all'", "");
	reads("def batches(data, batch_size=1000):", "");
	reads("if batch_size == 8:", "");
	reads("# batch_size = 8", "");
	reads("reduce batch_size", "");
	reads("ctx size =    0.09 MB", "");
	reads("build stage: 3", "");
	reads("on 8 GPUs: every rank", "");
	reads("pad_batch_size=8", "");
}

static void setting__the_first_mention_counts(void **state)
{
	(void)state;
	reads("batch_size=8, then batch_size=4", "set.batch=8 (batch_size=8) ");
}

static void setting__a_line_may_end_anywhere(void **state)
{
	static const char whole[] = "--shm-size=8gib \"batch_size\"] = '16' --gpus all device_map=\"auto\"";
	static struct settings t;
	char part[sizeof(whole)];

	(void)state;
	for (size_t n = 0; n < sizeof(whole); n++) {
		memcpy(part, whole, n);
		part[n] = '\0';
		memset(&t, 0, sizeof(t));
		settings_line(&t, part, "log", 1);
		assert_true(t.n <= 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setting__options_of_a_command_line),
		cmocka_unit_test(setting__rows_of_a_configuration_and_arguments_in_code),
		cmocka_unit_test(setting__advice_and_definitions_are_none),
		cmocka_unit_test(setting__the_first_mention_counts),
		cmocka_unit_test(setting__a_line_may_end_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
