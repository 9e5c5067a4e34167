package lead_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/storydoc"
)

// benched is a leader with one node of eight GPUs that answers everything.
func benched(b *testing.B) *story {
	s := newStory(b)
	for _, line := range []string{"nodes 1", "lead", "connect n1", "all settle"} {
		s.do(line)
	}
	return s
}

// only returns the one effect of a kind.
func only(b *testing.B, kind func(post.Effect) bool, effects []post.Effect) post.Effect {
	for _, e := range effects {
		if kind(e) {
			return e
		}
	}
	b.Fatalf("the effect is not among %d", len(effects))
	return post.Effect{}
}

func isWrite(e post.Effect) bool { return e.Kind == post.WriteKeys }

// BenchmarkVoteAndCommit is the leader's part of an allocation after its Reserve
// was sent: the agent's vote, and the store's answer to the commit. Submission
// and end are left out of the time.
func BenchmarkVoteAndCommit(b *testing.B) {
	s := benched(b)
	buffer := make([]post.Effect, 0, 64)
	assignment := resource.Assignment{}
	revision := resource.Revision(1000)
	apply := func(in lead.Input) []post.Effect {
		buffer = s.l.Apply(s.now, in, buffer[:0])
		return s.l.Pass(s.now, buffer)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		s.told.Reset()
		s.create("default", storydoc.Document("Allocation", fmt.Sprint("a", i), map[string]string{"gpus": "1"}))
		a := s.agents["n1"]
		reserve := a.commands[0].(grant.Reserve)
		a.commands = nil
		vote := s.decide(a, reserve)
		if assignment = vote.Members[0].Assignment; len(assignment.GPUs) != 1 {
			b.Fatalf("the agent's vote is %+v", vote)
		}
		members := []grant.Member{{Assignment: assignment}}
		said := grant.Replied{Node: "n1", Tx: reserve.Tx, State: grant.Reserved, Members: members, Incarnation: incarnationOf("n1"), Revision: a.ledger.Registration()}
		b.StartTimer()
		write := only(b, isWrite, apply(lead.AgentEvent{Event: said}))
		revision++
		apply(lead.WriteAnswer{Token: write.Token, Outcome: txn.Landed, Revision: revision})
		b.StopTimer()
		end(b, s, fmt.Sprint("a", i), reserve.Tx, said, &revision)
		b.StartTimer()
	}
}

// end has an allocation end, so that its place is free.
func end(b *testing.B, s *story, name string, tx resource.TxID, said grant.Replied, revision *resource.Revision) {
	s.client++
	grace := int64(0)
	request := lead.DeleteAllocation{Namespace: "default", Name: name}
	request.Options.GracePeriodSeconds = &grace
	releasing := only(b, isWrite, s.l.Apply(s.now, lead.ClientRequest{Token: s.client, Request: request}, nil))
	*revision++
	s.l.Apply(s.now, lead.WriteAnswer{Token: releasing.Token, Outcome: txn.Landed, Revision: *revision}, nil)
	said.State, said.Members = grant.Tombstone, nil
	released := only(b, isWrite, s.l.Apply(s.now, lead.AgentEvent{Event: said}, nil))
	*revision++
	s.l.Apply(s.now, lead.WriteAnswer{Token: released.Token, Outcome: txn.Landed, Revision: *revision}, nil)
	s.decide(s.agents["n1"], grant.Abort{Tx: tx, Epoch: s.epoch})
}

// BenchmarkPass tries 1,000 units that wait, of as many shapes as are named, and
// for which there is no place. Each round is a pass after something was freed, and
// includes the input that wakes the units.
func BenchmarkPass(b *testing.B) {
	for _, shapes := range []int{1, 32, 1000} {
		b.Run(fmt.Sprint("shapes=", shapes), func(b *testing.B) {
			s := benched(b)
			s.create("default", storydoc.Document("Allocation", "holds", map[string]string{"gpus": "8"}))
			s.settle()
			for i := range 1000 {
				options := map[string]string{"gpus": "8"}
				if i%shapes > 0 {
					options["memory"] = fmt.Sprintf("%dMi", 4096+i%shapes)
				}
				s.create(fmt.Sprint("ns", i%50), storydoc.Document("Allocation", fmt.Sprint("w", i), options))
			}
			s.settle()
			if _, _, _, queued := s.l.Sizes(); queued != 1000 {
				b.Fatalf("%d units wait, want 1000", queued)
			}
			buffer := make([]post.Effect, 0, 64)
			woken := s.l.WakeUps()
			ban := &record.Ban{Reason: "benchmark"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				in := lead.NodeFacts{Node: "n1", Leased: true, Ban: ban}
				if i%2 == 1 {
					in.Ban = nil
				}
				buffer = s.l.Apply(s.now, in, buffer[:0])
				buffer = s.l.Pass(s.now, buffer[:0])
			}
			if s.l.WakeUps() == woken {
				b.Fatal("nothing was woken")
			}
		})
	}
}

// BenchmarkEffects is the cost of nine effects in a slice that is used again.
func BenchmarkEffects(b *testing.B) {
	buffer := make([]post.Effect, 0, 16)
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		buffer = buffer[:0]
		for i := range 9 {
			buffer = append(buffer, post.Effect{Kind: post.WakeAt, Token: post.Token(i), At: at})
		}
		clear(buffer)
	}
}
