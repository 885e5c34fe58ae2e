/* SPDX-License-Identifier: Apache-2.0
 * A folder of logs, such as that of `torchrun --log-dir` or one file per rank: `cuwhy explain logs/` reads its files.
 */
#ifndef CUWHY_EXPLAIN_FOLDER_H
#define CUWHY_EXPLAIN_FOLDER_H

/* The words with every folder that is no recording replaced by the files in it, ranks in order; a folder without files stays.
 * The list and its words are the caller's (words_free). */
char **words_of_folders(char **words, int n, int *n_out);
void words_free(char **words, int n);

#endif
