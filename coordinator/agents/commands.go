package agents

import (
	"time"
	"unicode/utf8"

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

// Reservation is what Reserve asks for.
type Reservation struct {
	Tx   resource.TxID
	Unit resource.UnitUID
	// Name is the unit's, "namespace/alloc|job/name/n".
	Name    string
	Tenant  resource.TenantID
	Epoch   resource.Epoch
	Members []MemberRequest
	// TTL is how long the agent keeps the promise before it asks for the
	// outcome.
	TTL time.Duration
	// After are transactions to wait for.
	After []resource.TxID
}

// Reserve asks for all members of a transaction on one node, all or nothing.
func Reserve(o Reservation) Command {
	r := &musterv1.Reserve{
		Tx: string(o.Tx), Unit: string(o.Unit), Name: o.Name, Tenant: string(o.Tenant), Epoch: int64(o.Epoch), TtlMillis: o.TTL.Milliseconds(),
	}
	for _, tx := range o.After {
		r.After = append(r.After, string(tx))
	}
	for _, m := range o.Members {
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

// longestReason is what an agent takes, in bytes; the record has the whole.
const longestReason = 256

// clipped is a text of at most longestReason bytes, cut between runes.
func clipped(text string) string {
	if len(text) <= longestReason {
		return text
	}
	end := longestReason
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Release tells that the record is RELEASING: stop, free, answer Freed.
func Release(tx resource.TxID, epoch resource.Epoch, grace time.Duration, reason string) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Release{
		Release: &musterv1.Release{Tx: string(tx), Epoch: int64(epoch), GraceMillis: grace.Milliseconds(), Reason: clipped(reason)},
	}}}
}

// Evict tells that the record is EVICTING: give notice, let grace run, stop,
// answer Freed. by is the preemptor, or "".
func Evict(tx resource.TxID, epoch resource.Epoch, grace time.Duration, by resource.TxID) Command {
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Evict{
		Evict: &musterv1.Evict{Tx: string(tx), Epoch: int64(epoch), GraceMillis: grace.Milliseconds(), By: string(by)},
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

// Reconcile ends a quarantine: adopted transactions have new records, released
// ones are stopped with grace unless the store lists them; all that at the
// revision.
func Reconcile(epoch resource.Epoch, revision resource.Revision, adopted, released []resource.TxID, grace time.Duration) Command {
	r := &musterv1.Reconcile{Epoch: int64(epoch), Revision: int64(revision), GraceMillis: grace.Milliseconds()}
	for _, tx := range adopted {
		r.Adopted = append(r.Adopted, string(tx))
	}
	for _, tx := range released {
		r.Released = append(r.Released, string(tx))
	}
	return Command{&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reconcile{Reconcile: r}}}
}
