// Package hostile attacks clusters of the real programs, one and three
// coordinators over mutual TLS, and checks that nothing but the attacker
// notices: the attack gets the expected answer, an honest client beside it gets
// all that it asks for, no process ends, and no process grows by more than a
// stated bound. It holds tests alone; package evil holds the attacks.
//
// cases lists each attack with its row of the list of faults (group S) and the
// expected answers. TestAttacks runs the short ones, in `make test`, and all of
// them, at five times the size, in `make hostile`. Both write down, for each
// case, the honest client's latencies and the memory of the victims
// (results.md and results.json in the test's folder, and the log); latencies are
// compared with the undisturbed ones in `make hostile` alone.
package hostile
