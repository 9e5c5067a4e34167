// Package chaos breaks clusters of the real programs under load and checks that
// nothing acknowledged is lost, nothing is given twice and nothing is left
// behind: processes are killed with SIGKILL, paused and wiped, hosts are cut
// off from each other, connections are delayed, disks fill up. It holds tests
// alone; test/cluster runs the clusters, follows their store and judges them.
//
// A seed decides what happens to whom; it is printed, and -chaos.seed takes it
// again. Real processes do not repeat themselves, so the same seed shows the
// same faults, not the same run. Each test is short in `make test`; `make chaos`
// runs -chaos.kills kills, repeats the partitions -chaos.rounds times, and
// audits after every one.
package chaos
