package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func apply(b *testing.B, l *ledger.Ledger, cmd ledger.Command) {
	reply, events := l.Decide(boot(1), cmd)
	if reply.Refused() {
		b.Fatalf("%+v: %v", cmd, reply.Reasons)
	}
	for _, e := range events {
		if err := l.Apply(e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReserveOneGPU is decide and apply of one Reserve of a GPU alone, on a
// host of 8 GPUs and 128 CPUs with 1000 tombstones: ns/reserve. An op is eight of
// them, from empty to full, and the eight aborts that make room again.
func BenchmarkReserveOneGPU(b *testing.B) {
	for name, request := range map[string]resource.Request{
		"GPU":              {GPUs: 1},
		"GPU, CPU, memory": {GPUs: 1, CPU: 8000, Memory: 16 << 30},
	} {
		b.Run(name, func(b *testing.B) {
			l := crowded(b)
			var reserves, aborts []ledger.Command
			for i := range 8 {
				c := gpus(resource.TxID(fmt.Sprint("6f1d0e9a-3b5c-", i)), 1, 1)
				c.Members[0].Request = request
				reserves, aborts = append(reserves, c), append(aborts, grant.Abort{Tx: c.Tx, Epoch: 1})
			}
			b.ReportAllocs()
			var timed time.Duration
			for b.Loop() {
				began := time.Now()
				for _, c := range reserves {
					apply(b, l, c)
				}
				timed += time.Since(began)
				for _, c := range aborts {
					apply(b, l, c)
				}
			}
			b.ReportMetric(float64(timed.Nanoseconds())/float64(b.N*len(reserves)), "ns/reserve")
		})
	}
}

// crowded is a ledger with 1000 tombstones.
func crowded(b *testing.B) *ledger.Ledger {
	l := ready(b, machine(b, 128, 8))
	for i := range 1000 {
		apply(b, l, grant.Release{Tx: resource.TxID(fmt.Sprint("old-", i)), Epoch: 1})
	}
	return l
}

// BenchmarkReserveAbort is decide and apply of a Reserve, and of the Abort that
// makes room again, on a host of 8 GPUs and 128 CPUs with 1000 tombstones.
func BenchmarkReserveAbort(b *testing.B) {
	for name, request := range map[string]resource.Request{
		"one GPU":                {GPUs: 1},
		"one GPU, CPU, memory":   {GPUs: 1, CPU: 8000, Memory: 16 << 30},
		"four GPUs, CPU, memory": {GPUs: 4, CPU: 32000, Memory: 32 << 30},
	} {
		b.Run(name, func(b *testing.B) {
			l := crowded(b)
			c := gpus("tx", 1, 1)
			c.Members[0].Request = request
			var reserve, abort ledger.Command = c, grant.Abort{Tx: "tx", Epoch: 1}
			b.ReportAllocs()
			for b.Loop() {
				apply(b, l, reserve)
				apply(b, l, abort)
			}
		})
	}
}

// BenchmarkCommitAgain is the cost of a call that changes nothing.
func BenchmarkCommitAgain(b *testing.B) {
	l := ready(b, machine(b, 128, 8))
	apply(b, l, gpus("tx", 1, 1))
	apply(b, l, grant.Commit{Tx: "tx", Epoch: 1, Revision: 6})
	var commit ledger.Command = grant.Commit{Tx: "tx", Epoch: 1, Revision: 6}
	b.ReportAllocs()
	for b.Loop() {
		apply(b, l, commit)
	}
}

func BenchmarkAppendEvents(b *testing.B) {
	l := ready(b, machine(b, 128, 8))
	c := gpus("tx", 1, 1)
	c.Members[0].Request.CPU = 8000
	_, events := l.Decide(boot(1), c)
	buffer := ledger.AppendEvents(nil, events)
	b.ReportAllocs()
	b.ReportMetric(float64(len(buffer)), "bytes")
	for b.Loop() {
		buffer = ledger.AppendEvents(buffer[:0], events)
	}
}

// BenchmarkReplay restores 1000 allocations from their journal.
func BenchmarkReplay(b *testing.B) {
	host := machine(b, 128, 8)
	l := ready(b, host)
	var journal [][]byte
	for i := range 1000 {
		c := gpus(resource.TxID(fmt.Sprint("tx-", i)), 1, 0)
		c.Members[0].Request = resource.Request{CPU: 100, Memory: 1 << 20}
		_, events := l.Decide(boot(1), c)
		journal = append(journal, ledger.AppendEvents(nil, events))
		apply(b, l, c)
		journal = append(journal, ledger.AppendEvents(nil, []ledger.Event{ledger.Committed{Tx: c.Tx, Revision: 7}}))
		apply(b, l, grant.Commit{Tx: c.Tx, Epoch: 1, Revision: 7})
	}
	for b.Loop() {
		if err := ledger.New(host).Replay(journal); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	l := ready(b, machine(b, 128, 8))
	for i := range 8 {
		apply(b, l, gpus(resource.TxID(fmt.Sprint(i)), 1, 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Snapshot()
	}
}
