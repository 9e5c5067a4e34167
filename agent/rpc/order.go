package rpc

import (
	"fmt"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// maxMillis bounds durations on the wire to ten years, far below overflow.
const maxMillis = 10 * 365 * 24 * 3600 * 1000

// Order is one message of the leader. Exactly one field is set.
type Order struct {
	// Command is for the ledger.
	Command ledger.Command
	// Resync asks for a fresh Occupancy.
	Resync bool
	// Start has members of a transaction started.
	Start *grant.Start
	// Refused is the answer to a command that breaks its own rules; the ledger
	// never sees it, and the answer takes its turn.
	Refused *Reply
}

// orderOf reads a message. A command with a broken field becomes a refusal of
// its transaction; a message without a transaction to refuse is an error that
// wraps ErrBadMessage and ends the session.
func orderOf(m *musterv1.LeaderMessage) (Order, error) {
	var command ledger.Command
	var err error
	switch m := m.GetMessage().(type) {
	case *musterv1.LeaderMessage_Reserve:
		command, err = reserveOf(m.Reserve)
		if err != nil && m.Reserve.GetTx() != "" {
			return Order{Refused: &Reply{Tx: resource.TxID(m.Reserve.GetTx()), Reasons: []resource.Reason{
				{Code: resource.ReasonInvalidRequest, Detail: err.Error()},
			}}}, nil
		}
	case *musterv1.LeaderMessage_Commit:
		command = grant.Commit{
			Tx: resource.TxID(m.Commit.GetTx()), Epoch: resource.Epoch(m.Commit.GetEpoch()), Revision: resource.Revision(m.Commit.GetRevision()),
		}
		err = needTx("commit", m.Commit.GetTx())
	case *musterv1.LeaderMessage_Abort:
		command = grant.Abort{Tx: resource.TxID(m.Abort.GetTx()), Epoch: resource.Epoch(m.Abort.GetEpoch())}
		err = needTx("abort", m.Abort.GetTx())
	case *musterv1.LeaderMessage_Release:
		grace, graceErr := millis("release.grace_millis", m.Release.GetGraceMillis())
		command = grant.Release{
			Tx: resource.TxID(m.Release.GetTx()), Epoch: resource.Epoch(m.Release.GetEpoch()), Grace: grace, Reason: m.Release.GetReason(),
		}
		err = firstOf(needTx("release", m.Release.GetTx()), graceErr)
	case *musterv1.LeaderMessage_Evict:
		grace, graceErr := millis("evict.grace_millis", m.Evict.GetGraceMillis())
		command = grant.Evict{
			Tx: resource.TxID(m.Evict.GetTx()), Epoch: resource.Epoch(m.Evict.GetEpoch()), Grace: grace, By: resource.TxID(m.Evict.GetBy()),
		}
		err = firstOf(needTx("evict", m.Evict.GetTx()), graceErr)
	case *musterv1.LeaderMessage_Forget:
		command = grant.Forget{Tx: resource.TxID(m.Forget.GetTx())}
		err = needTx("forget", m.Forget.GetTx())
	case *musterv1.LeaderMessage_Cordon:
		command = grant.Cordon{Cordoned: m.Cordon.GetCordoned()}
	case *musterv1.LeaderMessage_KubeletPool:
		command = grant.KubeletPool{Add: m.KubeletPool.GetAdd(), Remove: m.KubeletPool.GetRemove()}
	case *musterv1.LeaderMessage_Reconcile:
		command, err = reconcileOf(m.Reconcile)
	case *musterv1.LeaderMessage_Resync:
		return Order{Resync: true}, nil
	case *musterv1.LeaderMessage_Start:
		start, err := startOf(m.Start)
		if err != nil {
			return Order{}, fmt.Errorf("%w: %w", err, ErrBadMessage)
		}
		return Order{Start: start}, nil
	default:
		err = fmt.Errorf("session: %T is no command", m)
	}
	if err != nil {
		return Order{}, fmt.Errorf("%w: %w", err, ErrBadMessage)
	}
	return Order{Command: command}, nil
}

func reserveOf(m *musterv1.Reserve) (ledger.Command, error) {
	if err := needTx("reserve", m.GetTx()); err != nil {
		return nil, err
	}
	ttl, err := millis("reserve.ttl_millis", m.GetTtlMillis())
	if err != nil {
		return nil, err
	}
	if len(m.GetMembers()) == 0 || len(m.GetMembers()) > ledger.MaxMembers {
		return nil, fmt.Errorf("reserve.members: %d, outside 1..%d", len(m.GetMembers()), ledger.MaxMembers)
	}
	r := grant.Reserve{
		Tx: resource.TxID(m.GetTx()), Unit: resource.UnitUID(m.GetUnit()), Epoch: resource.Epoch(m.GetEpoch()), TTL: ttl,
		Name: m.GetName(), Tenant: resource.TenantID(m.GetTenant()), Members: make([]grant.MemberRequest, 0, len(m.GetMembers())),
		UnitMembers: int(m.GetUnitMembers()), Registered: resource.Revision(m.GetRegistered()),
	}
	for i, member := range m.GetMembers() {
		request, err := wire.FromRequest(member.GetRequest())
		if err != nil {
			return nil, fmt.Errorf("reserve.members[%d].%w", i, err)
		}
		mr := grant.MemberRequest{Index: int(member.GetMember()), Request: request}
		for _, g := range member.GetPinnedGpus() {
			mr.PinnedGPUs = append(mr.PinnedGPUs, int(g))
		}
		r.Members = append(r.Members, mr)
	}
	for _, tx := range m.GetAfter() {
		r.After = append(r.After, resource.TxID(tx))
	}
	return r, nil
}

func reconcileOf(m *musterv1.Reconcile) (ledger.Command, error) {
	grace, err := millis("reconcile.grace_millis", m.GetGraceMillis())
	if err != nil {
		return nil, err
	}
	c := grant.Reconcile{Epoch: resource.Epoch(m.GetEpoch()), Revision: resource.Revision(m.GetRevision()), Grace: grace}
	for _, tx := range m.GetAdopted() {
		c.Adopted = append(c.Adopted, resource.TxID(tx))
	}
	for _, tx := range m.GetReleased() {
		c.Released = append(c.Released, resource.TxID(tx))
	}
	return c, nil
}

func needTx(kind, tx string) error {
	if tx == "" || len(tx) > ledger.MaxText {
		return fmt.Errorf("%s.tx: %d bytes, outside 1..%d", kind, len(tx), ledger.MaxText)
	}
	return nil
}

func millis(field string, value int64) (time.Duration, error) {
	if value < 0 || value > maxMillis {
		return 0, fmt.Errorf("%s: %d is outside 0..%d", field, value, int64(maxMillis))
	}
	return time.Duration(value) * time.Millisecond, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
