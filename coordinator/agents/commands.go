package agents

import (
	"time"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// Command is a message to an agent. Every command may be repeated.
type Command struct{ message *musterv1.LeaderMessage }

// MemberRequest is one member to be reserved.
type MemberRequest struct {
	Index   int
	Request resource.Request
	// PinnedGPUs, where not empty, are the only devices to take.
	PinnedGPUs []int
}

// Reserve asks for all members of a transaction on one node, all or nothing.
// ttl is how long the agent keeps the promise before it asks for the outcome.
func Reserve(tx resource.TxID, unit resource.UnitUID, epoch resource.Epoch, members []MemberRequest, ttl time.Duration) Command {
	r := &musterv1.Reserve{Tx: string(tx), Unit: string(unit), Epoch: int64(epoch), TtlMillis: ttl.Milliseconds()}
	for _, m := range members {
		mr := &musterv1.MemberRequest{Member: int32(m.Index), Request: wire.ToRequest(m.Request)}
		for _, g := range m.PinnedGPUs {
			mr.PinnedGpus = append(mr.PinnedGpus, int32(g))
		}
		r.Members = append(r.Members, mr)
	}
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: r}}}
}

// Commit tells that the record is COMMITTED at the revision.
func Commit(tx resource.TxID, epoch resource.Epoch, revision resource.Revision) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Commit{
		Commit: &musterv1.Commit{Tx: string(tx), Epoch: int64(epoch), Revision: int64(revision)},
	}}}
}

// Abort tells that the record is ABORTED.
func Abort(tx resource.TxID, epoch resource.Epoch) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Abort{
		Abort: &musterv1.Abort{Tx: string(tx), Epoch: int64(epoch)},
	}}}
}

// Release tells that the record is RELEASING: stop, free, answer Freed.
func Release(tx resource.TxID, epoch resource.Epoch, grace time.Duration, reason string) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Release{
		Release: &musterv1.Release{Tx: string(tx), Epoch: int64(epoch), GraceMillis: grace.Milliseconds(), Reason: reason},
	}}}
}

// Forget tells that the record is terminal: a tombstone may go.
func Forget(tx resource.TxID) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Forget{Forget: &musterv1.Forget{Tx: string(tx)}}}}
}

// Resync asks for the whole occupancy.
func Resync() Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}}}
}

// Cordon sets whether the node takes new work.
func Cordon(cordoned bool) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Cordon{Cordon: &musterv1.Cordon{Cordoned: cordoned}}}}
}
