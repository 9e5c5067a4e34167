package agent_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/rpc"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// slice is a request small enough that a host of 8 GPUs holds 1,000 of it: 8
// thousandths of a GPU, a tenth of a CPU and 16 MiB.
func slice() []*musterv1.MemberRequest {
	return []*musterv1.MemberRequest{{Request: &musterv1.Request{Cpu: 100, Memory: 16 << 20, GpuShare: 8}}}
}

// steps are the orders of one allocation's life, from Reserve to forgotten.
// Each is a decision that goes to the journal.
var steps = []struct {
	order func(tx string) *musterv1.LeaderMessage
	want  musterv1.Reply_State
}{
	{func(tx string) *musterv1.LeaderMessage {
		return &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{Tx: tx, Unit: tx, Epoch: 1, Members: slice(), TtlMillis: 60000}}}
	}, musterv1.Reply_RESERVED},
	{func(tx string) *musterv1.LeaderMessage {
		return &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Commit{Commit: &musterv1.Commit{Tx: tx, Epoch: 1, Revision: 20}}}
	}, musterv1.Reply_HELD},
	{func(tx string) *musterv1.LeaderMessage {
		return &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Release{Release: &musterv1.Release{Tx: tx, Epoch: 1}}}
	}, musterv1.Reply_FREED},
	{func(tx string) *musterv1.LeaderMessage {
		return &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Forget{Forget: &musterv1.Forget{Tx: tx}}}
	}, musterv1.Reply_NONE},
}

// lives drives so many allocations at once through the first upTo steps, n
// orders in all, each sent as soon as the one before it is answered.
func (l *leader) lives(b *testing.B, name string, atOnce, upTo, n int) {
	at := map[string]int{}
	sent, answered, next := 0, 0, 0
	begin := func() {
		tx := fmt.Sprintf("%s-%d", name, next)
		next++
		at[tx] = 0
		if err := l.stream.Send(steps[0].order(tx)); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	for sent < min(atOnce, n) {
		begin()
	}
	for answered < n {
		m, err := l.stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		reply := m.GetReply()
		step, ours := at[reply.GetTx()]
		if !ours {
			continue
		}
		if reply.GetState() != steps[step].want {
			b.Fatalf("step %d of %s: %s (%v)", step, reply.GetTx(), reply.GetState(), reply.GetReasons())
		}
		answered++
		if step+1 == upTo {
			delete(at, reply.GetTx())
		}
		switch {
		case sent == n:
		case step+1 == upTo:
			begin()
		default:
			at[reply.GetTx()] = step + 1
			if err := l.stream.Send(steps[step+1].order(reply.GetTx())); err != nil {
				b.Fatal(err)
			}
			sent++
		}
	}
}

// onDisk is a rig whose agent serves a real loopback connection and writes a
// real disk as a host's does.
func onDisk(b *testing.B) *rig {
	r := newRig(b)
	r.tune = func(c *agent.Config, d *agent.Deps) {
		d.Listener, d.Address, c.Listen, c.HeldSync, c.Headroom = nil, "", loopback, 0, 0
	}
	return r
}

// open opens a session and reads the agent's hello, nothing else.
func (r *rig) open(b *testing.B) (l *leader, hangUp func()) {
	b.Helper()
	conn, err := rpc.Dial(r.agent.Address(), token(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	stream, err := musterv1.NewAgentClient(conn).Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.Send(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: r.store.hello(1)}}); err != nil {
		b.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		b.Fatal(err)
	}
	return &leader{t: b, stream: stream, hello: first.GetHello()}, func() { conn.Close() }
}

// awaitRegistered reads on until the agent may promise.
func (l *leader) awaitRegistered(b *testing.B) {
	b.Helper()
	for registered := l.hello.GetRegisteredRevision() > 0; !registered; {
		m, err := l.stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		registered = m.GetRegistered() != nil
	}
}

// BenchmarkOperations is orders per second with so many allocations under way
// at once, over one session on loopback and on a real disk: gRPC on both ends,
// decision, journal and answer. Releases are on disk before they are answered,
// commits soon after.
func BenchmarkOperations(b *testing.B) {
	for _, writers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			r := onDisk(b)
			r.start()
			l, hangUp := r.open(b)
			b.Cleanup(hangUp)
			l.awaitRegistered(b)
			b.ResetTimer()
			l.lives(b, "tx", writers, len(steps), b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkRestart is the agent from its start on a journal with 1,000 held
// allocations to its hello to a leader. The hardware is known already.
func BenchmarkRestart(b *testing.B) {
	const held = 1000
	r := onDisk(b)
	r.start()
	l, hangUp := r.open(b)
	l.awaitRegistered(b)
	l.lives(b, "tx", held, 2, 2*held)
	for b.Loop() {
		b.StopTimer()
		hangUp()
		if err := r.end(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		r.start()
		l, hangUp = r.open(b)
	}
	b.StopTimer()
	l.awaitRegistered(b)
	if s, err := r.agent.Snapshot(b.Context()); err != nil || len(s.Grants) != held {
		b.Fatalf("%d allocations after the restart, want %d: %v", len(s.Grants), held, err)
	}
	hangUp()
}
