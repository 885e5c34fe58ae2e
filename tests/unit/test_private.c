/* SPDX-License-Identifier: Apache-2.0
 * Secrets leave texts, and everything else stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"

static void becomes(const char *text, const char *expected)
{
	char *shown = private_shown(text), *again = private_shown(shown);

	assert_string_equal(shown, expected);
	assert_string_equal(again, expected);
	free(shown);
	free(again);
}

static void stays(const char *text)
{
	becomes(text, text);
}

static void private__a_token_is_known_by_its_prefix(void **state)
{
	(void)state;
	becomes("401 for hf_aBcDeFgHiJkLmNoP12345678, retry", "401 for (removed), retry");
	becomes("sk-proj-abcdefghij0123456789", "(removed)");
	becomes("id AKIAIOSFODNN7EXAMPLE.", "id (removed).");
	becomes("ghp_0123456789abcdefghijABCDEFGHIJ", "(removed)");
	becomes("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1 end", "jwt (removed) end");
	stays("sk-learn, hf_hub_download, eyJ, task-with-a-long-name-1234567890");
}

/* The tokens of some services have letters only, and chance leaves the digits out of others. */
static void private__a_token_needs_no_digit(void **state)
{
	static const char *const tokens[] = {
		"hf_abcdefghijklmnopqrstuvwxyzabcdefgh", "hf_ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH",
		"hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH", "api_org_abcdefghijklmnopqrstuvwxyzabcdefgh",
					     "ghp_abcdefghijklmnopqrstuvwxyzabcdefghij",
					     "npm_ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ",
					     "glpat-abcdef_ghijk-lmnopqr",
					     "AKIAABCDEFGHIJKLMNOP",
		"ASIAABCDEFGHIJKLMNOP", "AIzaabcdefghijk-lmnopqrstuvwxyz_abcdefg", "sk_live_abcdefghijklmnopqrstuvwx",
		"dckr_pat_abcdefghijk-lmnopqrstuvwxyz", "gsk_abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
		"r8_abcdefghijklmnopqrstuvwxyzabcdefghijk"};

	(void)state;
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		char text[128];

		snprintf(text, sizeof(text), "401 for '%s', retry", tokens[i]);
		becomes(text, "401 for '(removed)', retry");
	}
	/* at the end of a message that was cut short, longer than a word is enough */
	becomes("401 for hf_abcdefghijklmnop", "401 for (removed)");
	stays("hf_transfer, hf_hub_download, hf_xet, hf_quantizer.preprocess_model(model=model)");
	stays("hf_convert_checkpoint_to_safetensors_format(), hf_AutoModelForCausalLM, hf_device_map");
	stays("npm_config_registry, npm_package_devDependencies_typescript_version, api_organization");
	stays("ASIAN, ASIA_PACIFIC_SOUTHEAST_REGION, AKIAN, AIzaw, gsk_attention, r8_quantized_tensor, glpat");
	stays("sk-learn-contrib-imbalanced-learn, sk_live_stream, github_pat_name, dckr_pat_var");
}

static void private__logins_and_signatures_leave_addresses(void **state)
{
	(void)state;
	becomes("GET https://bob:pa55@host/x failed", "GET https://(removed)@host/x failed");
	becomes("git+https://token@host/x", "git+https://(removed)@host/x");
	becomes("https://x.blob/?sv=1&sig=a%2Fb&e=2", "https://x.blob/?sv=1&sig=(removed)&e=2");
	becomes("https://conda.host/t/ab-12345678/channel", "https://conda.host/t/(removed)/channel");
	stays("https://host/x@1.0?page=2&sort=up");
}

static void private__values_of_secret_names_are_removed(void **state)
{
	(void)state;
	becomes("HF_TOKEN=abc123 python3", "HF_TOKEN=(removed) python3");
	becomes("password=hunter2, next", "password=(removed), next");
	becomes("{'api_key': 'k', \"client_secret\": \"a b\"}",
		"{'api_key': '(removed)', \"client_secret\": \"(removed)\"}");
	becomes("\"{\\\"secret\\\": \\\"s\\\"}\"", "\"{\\\"secret\\\": \\\"(removed)\\\"}\"");
	becomes("AWS_SECRET_ACCESS_KEY=aa/bb+cc", "AWS_SECRET_ACCESS_KEY=(removed)");
	becomes("WANDB_API_KEY: 0a1b", "WANDB_API_KEY: (removed)");
	becomes("train.py --token abc --api-key=def --lr 1", "train.py --token (removed) --api-key=(removed) --lr 1");
	becomes("Authorization: Bearer ya29.a0AfH6", "Authorization: Bearer (removed)");
	becomes("login(token='0123456789abcdef0123')", "login(token='(removed)')");
	becomes("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "(removed)\n(removed)");
	becomes("k = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----'\nx",
		"k = '(removed)\n(removed)\n-----END PRIVATE KEY-----'\nx");
}

/* tests/text/hidden.py has more, from a grammar. */
static void private__literals_of_code_are_removed(void **state)
{
	static const char *const texts[][2] = {
		{"aws_secret_access_key = \"aX3/z\"", "aws_secret_access_key = \"(removed)\""},
		{"os.environ[\"HF_TOKEN\"] = 'abc'", "os.environ[\"HF_TOKEN\"] = '(removed)'"},
		{"{\"password\" : \"a, b\", \"x\": \"y\"}", "{\"password\" : \"(removed)\", \"x\": \"y\"}"},
		{"login(user = \"bob\", password = \"hunter\", x = \"y\")",
		 "login(user = \"bob\", password = \"(removed)\", x = \"y\")"},
		{"def f(a, api_key: Optional[str] = \"k\", b=\"c\"):",
		 "def f(a, api_key: Optional[str] = \"(removed)\", b=\"c\"):"},
		{"secret: \"str | None\" = 's'", "secret: \"str | None\" = '(removed)'"},
		{"password = os.environ.get(\"DB\", \"hunter\") or 'x'",
		 "password = os.environ.get(\"DB\", \"(removed)\") or '(removed)'"},
		{"password = f\"{a}-b\" + f\"{c}\"", "password = f\"(removed)\" + f\"{c}\""},
		{"user, password = 'bob', 'hunter'", "user, password = '(removed)', '(removed)'"},
		{"d.setdefault('HF_TOKEN', \"abc\")", "d.setdefault('HF_TOKEN', \"(removed)\")"},
		{"os.environ.update(HF_TOKEN=\"abc\", A=\"b\")", "os.environ.update(HF_TOKEN=\"(removed)\", A=\"b\")"},
		{"if password == \"hunter\" and mode == \"x\":", "if password == \"(removed)\" and mode == \"x\":"},
		{"if 'hunter' == self.password:", "if '(removed)' == self.password:"},
		{"p.add_argument('--api-key', type=str, default='k', help='the key')",
		 "p.add_argument('--api-key', type=str, default='(removed)', help='the key')"},
		{"[\"--wandb-key\", \"ab12cd\", \"--lr\", \"0.1\"]",
		 "[\"--wandb-key\", \"(removed)\", \"--lr\", \"0.1\"]"},
		{"train.py --wandb-key ab12cd --lr 0.1", "train.py --wandb-key (removed) --lr 0.1"},
		{"password = 'it\\'s 12'; pw", "password = '(removed)'; pw"},
		{"password = \"\"\"a\n\n  b\n\"\"\"\nx = \"y\"",
		 "password = \"\"\"(removed)\n\n  (removed)\n\"\"\"\nx = \"y\""},
		{"password = (  # it's\n  \"a\"\n  'b')\nx = 'y'",
		 "password = (  # it's\n  \"(removed)\"\n  '(removed)')\nx = 'y'"},
		{"password: |\n  a b\n  c\nnext: d", "password: |\n  (removed)\n  (removed)\nnext: d"},
		{"- name: DB_PASSWORD\n  value: abc\n", "- name: DB_PASSWORD\n  value: (removed)\n"},
		{"headers = {\"Authorization\": f\"Bearer {token}\"}",
		 "headers = {\"Authorization\": f\"Bearer {token}\"}"},
		{"headers = {\"Authorization\": \"Bearer abc\"}", "headers = {\"Authorization\": \"Bearer (removed)\"}"},
		{"curl -u bob:pw https://h", "curl -u (removed) https://h"},
		{"HF_TOKEN=abc train \"a b\"", "HF_TOKEN=(removed) train \"a b\""},
		{"api_key = \"sk", "api_key = \"(removed)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		becomes(texts[i][0], texts[i][1]);
}

static void private__code_without_secrets_stays(void **state)
{
	static const char *const texts[] = {
		"tokens = tokenizer(\"a cat 12\")",
		"key = query @ w",
		"num_tokens = 5",
		"token_type_ids = 0",
		"generate(max_tokens=128)",
		"pad_token = \"[PAD]\"",
		"eos_token=\"<|endoftext|>\", key_padding_mask = mask",
		"if token == \"int16\":",
		"password = getpass.getpass(\"Password: \")",
		"token = os.environ[\"HF_TOKEN\"]",
		"token = os.environ.get(\"HF_TOKEN\")",
		"login(token=token, password=args.password)",
		"api_key = config[\"openai\"][\"api_key\"]",
		"image_token = \"<image_1>\"",
		"cache_key = \"layers.0.self_attn2.weight\"",
		"print(\"your password: \"); print(\"abc\")",
		"TOKENIZERS_PARALLELISM=false",
		"use_auth_token=True",
		"password = \"\"",
		"getpass(prompt='Password: ', stream='a1b2c3d4e5')",
		"export HF_TOKEN=$TOKEN",
		"key, value = \"a\", \"b\"",
		"https://forum/t/weights-only-by-default-2/577",
		"secret_name = \"db-1\"",
		"tokens = [\"a\", \"b12\"]",
		"PWD=/home/x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		stays(texts[i]);
}

/* The name of a text may stand beside it. */
static void private__names_beside_texts_count(void **state)
{
	json_t *o = json_pack("{s:s, s:[s, s, s], s:s, s:s}", "HF_TOKEN", "abc", "argv", "--wandb-key", "ab12cd",
			      "--lr", "max_tokens", "128", "title", "password");
	char *text;

	(void)state;
	private_hide_in(o, false);
	text = json_string_of(o, JSON_COMPACT);
	assert_string_equal(text, "{\"HF_TOKEN\":\"(removed)\",\"argv\":[\"--wandb-key\",\"(removed)\",\"--lr\"],"
				  "\"max_tokens\":\"128\",\"title\":\"password\"}");
	free(text);
	json_decref(o);
}

/* Messages are recorded up to a limit. */
static void private__a_secret_may_be_cut_off(void **state)
{
	(void)state;
	becomes("401 for hf_aB1d", "401 for (removed)");
	becomes("GET https://bob:pa5", "GET https://(removed)");
	stays("GET http://localhost:8080");
	stays("GET http://localhost");
	stays("hf_hub");
}

static void private__code_and_messages_stay_readable(void **state)
{
	static const char *const texts[] = {
		"y = attention(query, key=k, value=v)",
		"out = model.generate(ids, max_new_tokens=512, pad_token_id=tok.eos_token_id)",
		"tokenizer.pad_token = tokenizer.eos_token",
		"DEFAULT_PAD_TOKEN = '[PAD]'",
		"token = batch['token'].cuda()",
		"Missing key(s) in state_dict: \"model.layers.0.self_attn.q_proj.weight\"",
		"KeyError: 'model.layers.11.mlp.gate_proj.weight'",
		"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB",
		"f = lambda x:w@x",
		"def login(api_key: str = None, password=None):",
		"basic block of 1234567890123456 elements, the bearer of bad news",
		"a&b?c=d",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		stays(texts[i]);
}

static void private__homes_lose_their_names(void **state)
{
	char *text;
	size_t times = 0;

	(void)state;
	setenv("HOME", "/data/people/alice", 1);
	text = private_hide_homes(xstrdup("/home/carol/x.py, /Users/dan/y, /data/people/alice/z, /data/people/alicex, /home/user/t, /home/"),
				  &times);
	assert_string_equal(text,
			    "/home/user/x.py, /home/user/y, /home/user/z, /data/people/alicex, /home/user/t, /home/");
	assert_int_equal(times, 3);
	free(text);
}

static void private__every_text_of_an_object_is_searched(void **state)
{
	json_t *o = json_pack("{s:s, s:[s, {s:s}], s:i}", "a", "password=x", "b", "fine", "c",
			      "/home/carol/hf_aBcDeFgHiJkLmNoP12345678", "d", 1);
	char *text;

	(void)state;
	private_hide_in(o, true);
	text = json_string_of(o, JSON_COMPACT);
	assert_string_equal(text,
			    "{\"a\":\"password=(removed)\",\"b\":[\"fine\",{\"c\":\"/home/user/(removed)\"}],\"d\":1}");
	free(text);
	json_decref(o);
}

static double seconds_for(const char *part, size_t bytes)
{
	char *text = xcalloc(1, bytes + 1);
	clock_t began;

	for (size_t at = 0; at < bytes; at++)
		text[at] = part[at % strlen(part)];
	began = clock();
	free(private_hide_homes(private_hide_secrets(text, NULL), NULL));
	return (double)(clock() - began) / CLOCKS_PER_SEC;
}

/* Others on the machine can make a measurement long, never short: what is quadratic is so each time. */
static bool seems_quadratic(const char *part)
{
	for (int tries = 0; tries < 5; tries++) {
		double some = seconds_for(part, 1 << 18), more = seconds_for(part, 1 << 20);

		if (more < 0.5 || more < 9 * some)
			return false;
	}
	return true;
}

/* Four times the text takes four times as long, not sixteen times, whatever it consists of. */
static void private__the_time_grows_with_the_text(void **state)
{
	static const char *const parts[] = {"a", "/t/", "://", "a='", "a=\"", "--token ", "?sig=", "&", "hf_", "eyJ.",
					    "bearer ", "/home/", "password:", "password='", "password = (", "\"password\", ",
					    "password,", "a == password", "curl -u ", "token=\\'", "password = \"\"\"",
					    "password: |\n  a\n",
					    "'",
					    "\\\"",
					    "--api-key ",
					    "password[",
					    "password: {'a': ",
					    "-----BEGIN ",
					    "-----BEGIN KEY-----\""};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (seems_quadratic(parts[i]))
			fail_msg("'%s': four times as much takes more than nine times as long", parts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private__a_token_is_known_by_its_prefix),
		cmocka_unit_test(private__a_token_needs_no_digit),
		cmocka_unit_test(private__logins_and_signatures_leave_addresses),
		cmocka_unit_test(private__values_of_secret_names_are_removed),
		cmocka_unit_test(private__literals_of_code_are_removed),
		cmocka_unit_test(private__code_without_secrets_stays),
		cmocka_unit_test(private__names_beside_texts_count),
		cmocka_unit_test(private__a_secret_may_be_cut_off),
		cmocka_unit_test(private__code_and_messages_stay_readable),
		cmocka_unit_test(private__homes_lose_their_names),
		cmocka_unit_test(private__every_text_of_an_object_is_searched),
		cmocka_unit_test(private__the_time_grows_with_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
