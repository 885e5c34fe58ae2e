# SPDX-License-Identifier: Apache-2.0
# The ranks of a job as a page; also of an attempt, with what else tells of it, and as text for an issue.
mkdir -p why/job-7/attempt-0
rank() {
	echo '{"cuwhy_job":1,"job":"7","attempt":0,"rank":'"$1"',"world":3,"node":"n'"$1"'","boot":"b'"$1"'","pid":10'"$1"',"state":"ended","exit_known":true,"exit":1,'"$2"'}' >why/job-7/attempt-0/rank-$1.n$1.10$1.json
}
rank 0 '"of_peers":"it lost the connection to its peers"'
rank 1 '"own":true,"cause":"illegal-access","title":"a kernel read past the end"'
cuwhy report why | sed "s/([0-9]* KiB)/(N KiB)/"
grep -o '"kind":"job"' cuwhy-report.html
grep -o '"title":"rank 1[^"]*"' cuwhy-report.html
grep -o '"missing":1,"missing_ranks":"2"' cuwhy-report.html
cuwhy report --json -o attempt.html why/job-7/attempt-0 | sed 's/"bytes":[0-9]*/"bytes":N/'
echo 'RuntimeError: NCCL communicator was aborted on rank 2.' >rank2.log
cuwhy report -o both.html why rank2.log | sed 's/([0-9]* KiB)/(N KiB)/'
cuwhy report --markdown why
cuwhy report --what-if gpu=h200 why
echo "exit $?"
cuwhy report why /nowhere >/dev/null
echo "exit $?"
