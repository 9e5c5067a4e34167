// Package gate decides which requests come in, and when. It counts the requests of
// each tenant in a minute (Rates), bounds the lists, watches and waits that one
// caller has open at a time (Bounds), and shares the seats of the coordinator among
// the tenants when more requests come than can be served (Queue). The codecs for REST
// and gRPC share one Gate. The package decides nothing about rights, and knows
// neither HTTP nor gRPC.
package gate
