// Package ledger is the host's truth: which grant owns which device, CPU and
// byte, and the state of each grant. It decides every command (Decide) and
// applies the decided events (Apply), exactly as in the table "Agent, per
// transaction" of PROTOCOL.md section 4. It does not choose devices (fit does),
// does not make anything durable (agent/journal does), and does not decide
// whether a transaction is committed (the store does).
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
// A WAITING grant already has its assignment, made as if its victims were gone.
// The part that no live victim covers is blocked: taken from the free
// resources, although no grant holds it. Each victim that ends moves its share
// of the assignment from the victim to the blocked part, in the same step, so
// no other grant can come between.
//
// # Hosts that change
//
// A grant's assignment stays the same, while cards vanish and return, CPUs go
// offline, memory shrinks: at run time (Rehost), or between two runs (a journal
// replayed on another host). The part that the host lacks stays owned; so
// nothing is owned twice when hardware comes back. Ownership beyond a node's
// memory or huge pages is a debt, paid before any of it is free again. All of
// this follows from the grants and the host alone, not from the way there.
//
// # Damaged journals
//
// A registration after a journal was damaged may find grants that had ended
// here before: the store lists a live record with their devices. Then the
// record is adopted and they give way, with an alarm. A grant that the store
// ends is stopped before it is a tombstone, even if nothing here shows that its
// workload runs.
//
// # Messages that come late
//
// A registration of an incarnation that has registered before adopts nothing:
// the records that it read may be old. A Reserve for an unknown attempt that is
// no newer than one which has ended here is refused. A record that was read
// before its grant changed alarms nobody; it is read again.
//
// # Restored stores
//
// A store that was restored from an old backup has lost records of grants here.
// The agent detects this by the store's revision, at a registration; from then
// on the ledger is in quarantine and changes nothing, until an operator's
// Reconcile.
//
// # Orphans
//
// A free device on which a process runs is not handed out: it is an orphan
// until the process has ended. A record in the store that names it takes it
// over. The last victim that a Waiting grant waits for stays past its notice
// and grace while a process runs on a device of the Waiting grant; once no
// grant waits for it, it ends as any other. The owner reports the processes;
// the ledger ends none.
//
// A Ledger has one owner: it has no locks, clocks, goroutines, I/O or logs.
package ledger
