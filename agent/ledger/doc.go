// Package ledger is the host's truth: which grant owns which device, CPU and
// byte, and what state it is in. It decides every command (Decide) and applies
// what was decided (Apply), exactly as the table "Agent, per transaction" of
// PROTOCOL.md section 4 says. It does not choose devices (fit does), does not
// make anything durable (agent/journal does), and does not decide whether a
// transaction is committed (the store does).
//
// The owner's loop: Decide; Apply the events; append them to the journal as
// one payload; only when the journal has them, answer. If the journal fails the
// owner stops, so memory that ran ahead is never seen.
//
// # Time
//
// Every time is a point on the owner's time line, which must never jump or run
// backwards while the operating system runs: the agent uses the kernel's
// boot-time clock, counted from the Unix epoch. So deadlines go on over a
// restart of the process. They mean nothing after a reboot, and Started with
// another boot identifier starts them anew.
//
// # Waiting
//
// A WAITING grant already has its assignment, made as if its victims were
// gone. What of it no live victim covers is blocked: taken from what is free,
// although nobody holds it. Each victim that ends moves its share of the
// assignment from the victim to the blocked part, in the same step, so nobody
// else can come between.
//
// A Ledger has one owner: it has no locks, clocks, goroutines, I/O or logs.
package ledger
