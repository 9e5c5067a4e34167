package journal

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// BenchmarkGroupCommit is the work of an agent's owner for its leader: 256
// writers wait for the answer to one command each; the owner takes the waiting
// commands, decides and applies it, appends the events of all as one write,
// syncs once, and answers. An op is one command that changes the ledger:
// reserves, commits and releases of 10 millicores, on a host of 16 CPUs and 8
// GPUs. The journal is in the test's temporary folder; ns/sync is the time of
// its disk.
func BenchmarkGroupCommit(b *testing.B) {
	const writers = 256
	j, r := mustOpen(b, b.TempDir(), Options{Headroom: DefaultHeadroom})
	l := ledger.New(gpuHost(b))
	owner := groupOwner{b: b, journal: j, ledger: l, inbox: make(chan wish, writers)} // a wish of each writer
	incarnation := resource.Incarnation{JournalID: r.JournalID, BootID: "boot"}
	owner.group([]wish{{command: ledger.Start{Incarnation: incarnation}}, {command: ledger.Registered{Revision: 1}}})
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan struct{})
	go func() { defer close(done); owner.run() }()
	var each sync.WaitGroup
	for w := range writers {
		each.Go(func() {
			answer := make(chan ledger.Reply, 1) // the owner never waits
			for n := w; n < b.N; {
				tx := resource.TxID(fmt.Sprintf("6f1d0e9a-3b5c-%d-%d", w, n))
				for _, c := range []ledger.Command{
					grant.Reserve{Tx: tx, Unit: "unit", Epoch: 1, TTL: time.Minute, Members: []grant.MemberRequest{{Request: resource.Request{CPU: 10, Memory: 1 << 20}}}},
					grant.Commit{Tx: tx, Epoch: 1, Revision: 2},
					grant.Release{Tx: tx, Epoch: 1},
					ledger.Stopped{Tx: tx},
					grant.Forget{Tx: tx},
				} {
					owner.inbox <- wish{c, answer}
					if reply := <-answer; reply.Refused() {
						b.Errorf("%+v: %v", c, reply.Reasons)
						return
					}
					n += writers
				}
			}
		})
	}
	each.Wait()
	close(owner.inbox)
	<-done
	b.StopTimer()
	b.ReportMetric(float64(owner.commands)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(float64(owner.commands)/float64(owner.groups), "commands/group")
	b.ReportMetric(float64(owner.syncing.Nanoseconds())/float64(owner.groups), "ns/sync")
}

// wish is a command and where its answer goes; nil wants none.
type wish struct {
	command ledger.Command
	answer  chan ledger.Reply
}

// groupOwner is the agent's owner without the agent.
type groupOwner struct {
	b       *testing.B
	journal *Journal
	ledger  *ledger.Ledger
	inbox   chan wish

	buffer   []byte
	payloads [][]byte
	replies  []ledger.Reply

	commands, groups int
	syncing          time.Duration
}

func (o *groupOwner) run() {
	var group []wish
	for w := range o.inbox {
		group = append(group[:0], w)
	drain:
		for len(group) < cap(o.inbox) {
			select {
			case next, ok := <-o.inbox:
				if !ok {
					break drain
				}
				group = append(group, next)
			default:
				break drain
			}
		}
		o.group(group)
	}
}

func (o *groupOwner) group(group []wish) {
	o.buffer, o.payloads, o.replies = o.buffer[:0], o.payloads[:0], o.replies[:0]
	now := time.Unix(1000, 0)
	for _, w := range group {
		reply, events := o.ledger.Decide(now, w.command)
		for _, e := range events {
			must(o.b, o.ledger.Apply(e))
		}
		from := len(o.buffer)
		o.buffer = ledger.AppendEvents(o.buffer, events)
		if len(events) > 0 {
			o.payloads = append(o.payloads, o.buffer[from:len(o.buffer):len(o.buffer)])
		}
		o.replies = append(o.replies, reply)
	}
	must(o.b, o.journal.Append(o.payloads...))
	began := time.Now()
	must(o.b, o.journal.Sync())
	o.syncing += time.Since(began)
	for i, w := range group {
		if w.answer != nil {
			w.answer <- o.replies[i]
		}
	}
	o.commands, o.groups = o.commands+len(group), o.groups+1
	if o.journal.Size() > 64<<20 {
		must(o.b, o.journal.Rewrite([][]byte{ledger.AppendEvents(nil, o.ledger.SnapshotEvents())}))
	}
}

// BenchmarkRestart is the way from an empty process to a ledger that decides:
// Open, Replay and Start of a journal of 1000 held grants (2002 records), or
// of its compaction.
func BenchmarkRestart(b *testing.B) {
	host := gpuHost(b)
	for _, compacted := range []bool{false, true} {
		b.Run(fmt.Sprintf("compacted=%v", compacted), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "journal")
			j, r := mustOpen(b, dir, Options{Headroom: DefaultHeadroom})
			h := history{t: b, r: rand.New(rand.NewPCG(1, 1)), ledger: ledger.New(host), journal: j, now: time.Unix(1000, 0)}
			incarnation := resource.Incarnation{JournalID: r.JournalID, BootID: "boot"}
			h.group([]ledger.Command{ledger.Start{Incarnation: incarnation}, ledger.Registered{Revision: 1}})
			for i := range 1000 {
				tx := resource.TxID(fmt.Sprintf("6f1d0e9a-3b5c-4d7e-8f90-%012d", i))
				c := grant.Reserve{Tx: tx, Unit: "unit", Epoch: 1, TTL: time.Minute, Members: []grant.MemberRequest{{Request: resource.Request{CPU: 10, Memory: 64 << 20}}}}
				h.group([]ledger.Command{c, grant.Commit{Tx: tx, Epoch: 1, Revision: 2}})
			}
			if compacted {
				must(b, j.Rewrite([][]byte{ledger.AppendEvents(nil, h.ledger.SnapshotEvents())}))
			}
			must(b, j.Close())
			b.ReportAllocs()
			for b.Loop() {
				j, r, err := Open(dir, Options{})
				must(b, err)
				l := ledger.New(host)
				must(b, l.Replay(r.Payloads))
				reply, events := l.Decide(time.Unix(1001, 0), ledger.Start{Incarnation: incarnation})
				if len(events) > 0 || len(reply.Resolve) > 0 || l.Hash() != h.ledger.Hash() {
					b.Fatalf("%+v", reply)
				}
				must(b, j.Close())
			}
		})
	}
}
