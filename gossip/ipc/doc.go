// Package ipc serves the RPC protocol of the stock serf command line: serf
// members, info, query, event, keys, tags, rtt, reachability, monitor, join,
// leave and force-leave work against its port.
//
// It stands in for cmd/serf/command/agent of serf v0.11.0, whose protocol it
// speaks, for two reasons: gossip keys and answers that name tenants are this
// process' own to give and not the ring's, and that package links a command
// line (mergo, sprig, speakeasy, mdns, syslog) into every daemon.
//
// A connection begins with a handshake and the token. Then each request is a
// header and a body in msgpack, answered by a header and, for some commands, a
// body. Streams of events, log lines and answers to queries are further headers
// and bodies under the sequence number of the request.
package ipc
