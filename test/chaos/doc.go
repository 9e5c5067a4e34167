// Package chaos breaks clusters of the real programs under load and checks that
// nothing acknowledged is lost, nothing is given twice and nothing is left
// behind: processes are killed with SIGKILL, paused and wiped, hosts are cut
// off from each other, connections are delayed, disks fill up. The package holds
// tests alone; test/cluster runs the clusters, follows their store and judges.
//
// A seed decides what happens to whom; it is printed, and -chaos.seed takes it
// again. Real processes do not repeat themselves, so the same seed shows the
// same faults, not the same run. In `make test` a single cluster meets most faults
// (TestFaultsInTurnLoseNothing); in `make test-long` each kind has a cluster of its
// own. `make chaos` runs -chaos.kills kills, repeats the partitions -chaos.rounds
// times, and audits after each.
package chaos
