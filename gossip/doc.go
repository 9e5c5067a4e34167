// Package gossip joins a process to a cluster's two rings: the serf ring, which
// tracks the live members and answers operators' queries, and the capacity
// ring, which spreads every agent's digest of free capacity.
//
// It decides nothing about work. Tags and digests are hints: they help to find
// agents and to rank candidates; nothing is admitted, freed or fenced because
// of them.
//
// Both rings carry a label, "<cluster>/serf" and "<cluster>/capacity/<cell>",
// so that a node of another cluster, cell or ring cannot join by mistake, and
// both use one keyring object, so that a rotation is of both.
//
// Every host has the keys, so every message may be a hostile member's. guard
// judges each one before serf acts on it, roster each member before memberlist
// keeps it, and intake bounds the streams. Keys change through Keyring.Replace
// alone; the queries of serf that would change them are refused.
//
// The stock serf CLI works against the RPC address with the token:
//
//	serf members -rpc-addr=127.0.0.1:7373 -rpc-auth=TOKEN
//	serf query   -rpc-addr=127.0.0.1:7373 -rpc-auth=TOKEN -timeout=1s capacity
//
// A serf query always waits its whole timeout, even when everybody has
// answered. By default that is 1.6 s below 10 members, 3.2 s below 100 and 4.8
// s below 1,000; -timeout makes it shorter. An answer longer than 1,024 bytes
// is cut, and its last line marks the cut. Handlers of Config.Local answer
// operators of the host in full. `serf leave` and `serf force-leave` act on the
// serf ring alone; see Serf.Stopped.
//
// Goroutines: every callback runs on a goroutine of this package and may block
// without stalling a ring; values that it has not taken yet are folded into the
// newest per member or dropped with a counter, as documented at each callback.
// All end with Close, Abandon included.
package gossip
