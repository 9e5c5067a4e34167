// Package cluster runs whole clusters of the real programs for tests: members
// of Debian's etcd, coordinators and agents, each on a host of its own that can
// be killed, paused, wiped and cut off from any other. They trust each other as
// in production: mutual TLS everywhere, also between coordinators, the store and
// its members, encrypted gossip, agents that enroll by bootstrap tokens; a wiped
// one gets another token, as an operator would give it. It brings load, writes
// down what clients were told, follows the store revision by revision, and
// judges at the end whether anything was lost, given twice or left behind. What
// goes wrong, when and for how long is the tests' business.
//
// # Hosts
//
// Main runs the tests of a package in network, process and mount namespaces of
// their own, where the kernel lets it (as root, or in a user namespace). Every
// process of a cluster then has its own network namespace with one address,
// 127.C.H.1, at one end of a pair of virtual cables; the other end is in a
// bridge that belongs to the cluster. The kernel routes loopback addresses over
// cables if net.ipv4.conf.*.route_localnet is set, so what never leaves the
// loopback interface (metrics, serf's RPC) runs as it is, and still every packet
// has the address of the host that sent it. Faults are nftables rules in
// the namespace of the receiving host. Packets that a host sends to itself pass
// no cable and obey no rule.
//
// Elsewhere the same addresses are those of the machine's own loopback
// interface, 127.0.0.0/8, and there is one cluster number per cluster, held by
// a listener. Everything works but faults of the network and full disks; the
// tests of those skip with "not permitted here: " and the reason.
//
// What a test started ends with it: processes are killed and waited for, and
// with the test program the kernel ends its whole process namespace.
package cluster
