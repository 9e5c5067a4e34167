package agents

import (
	"fmt"
	"unicode/utf8"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// encode builds the message of a command.
func encode(c grant.Command) *musterv1.LeaderMessage {
	m := &musterv1.LeaderMessage{}
	switch c := c.(type) {
	case grant.Reserve:
		m.Message = &musterv1.LeaderMessage_Reserve{Reserve: encodeReserve(c)}
	case grant.Commit:
		m.Message = &musterv1.LeaderMessage_Commit{Commit: &musterv1.Commit{Tx: string(c.Tx), Epoch: int64(c.Epoch), Revision: int64(c.Revision)}}
	case grant.Abort:
		m.Message = &musterv1.LeaderMessage_Abort{Abort: &musterv1.Abort{Tx: string(c.Tx), Epoch: int64(c.Epoch)}}
	case grant.Release:
		m.Message = &musterv1.LeaderMessage_Release{Release: &musterv1.Release{
			Tx: string(c.Tx), Epoch: int64(c.Epoch), GraceMillis: c.Grace.Milliseconds(), Reason: clipped(c.Reason),
		}}
	case grant.Evict:
		m.Message = &musterv1.LeaderMessage_Evict{Evict: &musterv1.Evict{
			Tx: string(c.Tx), Epoch: int64(c.Epoch), GraceMillis: c.Grace.Milliseconds(), By: string(c.By),
		}}
	case grant.Forget:
		m.Message = &musterv1.LeaderMessage_Forget{Forget: &musterv1.Forget{Tx: string(c.Tx)}}
	case grant.Resync:
		m.Message = &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}
	case grant.Cordon:
		m.Message = &musterv1.LeaderMessage_Cordon{Cordon: &musterv1.Cordon{Cordoned: c.Cordoned}}
	case grant.KubeletPool:
		m.Message = &musterv1.LeaderMessage_KubeletPool{KubeletPool: &musterv1.KubeletPool{Add: c.Add, Remove: c.Remove}}
	case grant.Start:
		m.Message = &musterv1.LeaderMessage_Start{Start: encodeStart(c)}
	case grant.Reconcile:
		m.Message = &musterv1.LeaderMessage_Reconcile{Reconcile: &musterv1.Reconcile{
			Epoch: int64(c.Epoch), Revision: int64(c.Revision), GraceMillis: c.Grace.Milliseconds(), Adopted: texts(c.Adopted), Released: texts(c.Released),
		}}
	default:
		panic(fmt.Sprintf("agents: no message for the command %T", c))
	}
	return m
}

func encodeReserve(c grant.Reserve) *musterv1.Reserve {
	r := &musterv1.Reserve{
		Tx: string(c.Tx), Unit: string(c.Unit), Name: c.Name, Tenant: string(c.Tenant), Epoch: int64(c.Epoch), TtlMillis: c.TTL.Milliseconds(),
		After: texts(c.After), UnitMembers: int32(c.UnitMembers), Registered: int64(c.Registered),
	}
	for _, m := range c.Members {
		mr := &musterv1.MemberRequest{Member: int32(m.Index), Request: wire.ToRequest(m.Request)}
		for _, g := range m.PinnedGPUs {
			mr.PinnedGpus = append(mr.PinnedGpus, int32(g))
		}
		r.Members = append(r.Members, mr)
	}
	return r
}

func encodeStart(c grant.Start) *musterv1.Start {
	s := &musterv1.Start{
		Tx: string(c.Tx), Epoch: int64(c.Epoch), Args: c.Args, Env: c.Env, Dir: c.Dir, FirstMember: int32(c.First), Rank: int32(c.Rank), Hosts: c.Hosts, Port: int32(c.Port),
		CpuLimitMillis: int64(c.CPULimit), MemoryLimitBytes: int64(c.MemoryLimit), Stdin: c.Stdin, Tty: c.TTY, Rootfs: c.Rootfs, Bundle: c.Bundle,
	}
	for _, m := range c.Mounts {
		s.Mounts = append(s.Mounts, &musterv1.StartMount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	if n := c.Notice; n.Signal != 0 {
		s.Notice = &musterv1.Notice{Signal: int32(n.Signal), BeforeMillis: n.Before.Milliseconds(), AfterMillis: n.After.Milliseconds()}
	}
	for _, m := range c.Members {
		s.Members = append(s.Members, &musterv1.StartMember{Member: int32(m.Index), Restart: int32(m.Restart)})
	}
	return s
}

// texts are transactions as the messages have them.
func texts(txs []resource.TxID) []string {
	var list []string
	for _, tx := range txs {
		list = append(list, string(tx))
	}
	return list
}

// longestReason is the longest reason that an agent accepts, in bytes; the
// record has the whole.
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
