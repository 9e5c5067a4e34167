// Package rpc carries the agent's protocol over gRPC: the server of
// muster.v1.Agent (the leader's session) and scheduler.v1.NodeAgent, the client
// of muster.v1.Coordinator, listeners and dialing, and the one map from errors
// to status codes. Generated types stop here: its user gets checked ledger
// commands and plain values.
//
// It decides which leaders may open a session (cluster and epoch) and when a
// leader is too slow to be served; it decides nothing about grants. The owner
// of the ledger (package agent) does.
package rpc
