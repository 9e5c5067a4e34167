// Package hosts compares the reports of agents about their hosts with the leader's records: the
// mirror of a node's ledger, the key of lost devices, and the devices of members after a host
// numbers devices anew.
package hosts
