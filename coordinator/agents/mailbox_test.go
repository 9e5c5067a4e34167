package agents_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// told shows events in a word each.
func told(events []grant.Event) string {
	var words []string
	for _, e := range events {
		word := string(e.NodeID())
		switch e := e.(type) {
		case grant.Replied:
			word += ":" + string(e.Tx)
		case grant.Occupied:
			word += fmt.Sprintf(":occupied%d", e.LedgerHash)
		case grant.HealthChanged:
			word += ":health" + e.Quarantine
		case agents.Connected:
			word += ":connected"
		case grant.Disconnected:
			word += ":disconnected"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func replied(node resource.NodeID, tx string) grant.Event {
	return grant.Replied{Node: node, Tx: resource.TxID(tx), State: grant.None}
}

func TestMailboxKeepsOrderAndTheNewestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		for _, e := range []grant.Event{
			agents.Connected{Hello: grant.Hello{Node: "a"}}, replied("a", "1"), grant.Occupied{Node: "a", LedgerHash: 1}, grant.HealthChanged{Node: "a", Quarantine: "1"},
			replied("a", "2"), grant.Occupied{Node: "a", LedgerHash: 2}, grant.HealthChanged{Node: "a", Quarantine: "2"}, replied("a", "3"),
			grant.Disconnected{Node: "a"}, agents.Connected{Hello: grant.Hello{Node: "a"}},
		} {
			go m.Put(e) // two of them wait for the first turn
			synctest.Wait()
		}
		<-m.Waiting()
		want := "a:connected a:1 a:2 a:occupied2 a:health2 a:3 a:disconnected a:connected"
		if got := told(m.Take(time.Now(), 1000)); got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		if got := m.Take(time.Now(), 1000); got != nil {
			t.Errorf("took %s more", told(got))
		}
	})
}

// A stream that repeats itself is as fast as the loop, not faster.
func TestMailboxHoldsUpWhoRepeatsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		var put atomic.Int32
		go func() {
			for range 100 {
				m.Put(grant.HealthChanged{Node: "a"})
				put.Add(1)
			}
		}()
		synctest.Wait()
		for turn := range int32(5) {
			if n := put.Load(); n != 2*turn+1 {
				t.Errorf("%d messages after %d turns", n, turn)
			}
			if got := told(m.Take(time.Now(), 1000)); got != "a:health" {
				t.Errorf("took %s", got)
			}
			synctest.Wait()
		}
		m.Close()
	})
}

func TestMailboxGivesEachNodeItsShare(t *testing.T) {
	m := agents.NewMailbox()
	for i := range 100 {
		m.Put(replied("loud", fmt.Sprint(i)))
	}
	m.Put(replied("b", "x"))
	m.Put(replied("c", "y"))
	counts := func(events []grant.Event) map[resource.NodeID]int {
		n := map[resource.NodeID]int{}
		for _, e := range events {
			n[e.NodeID()]++
		}
		return n
	}
	for _, want := range []map[resource.NodeID]int{{"loud": 32, "b": 1, "c": 1}, {"loud": 32}, {"loud": 32}, {"loud": 4}} {
		<-m.Waiting() // it signals as long as something stays
		if diff := cmp.Diff(want, counts(m.Take(time.Now(), 1000))); diff != "" {
			t.Errorf("events by node (-want +got):\n%s", diff)
		}
	}
	select {
	case <-m.Waiting():
		t.Error("an empty mailbox says that something waits")
	default:
	}
}

func TestMailboxTakesLargeEventsOneByOne(t *testing.T) {
	large := make([]grant.Grant, 8000)
	m := agents.NewMailbox()
	m.Put(agents.Connected{Hello: grant.Hello{Node: "a", Occupancy: grant.Occupancy{Grants: large}}})
	m.Put(grant.Occupied{Node: "a", Occupancy: grant.Occupancy{Grants: large}})
	m.Put(replied("b", "x"))
	for _, want := range []string{"a:connected b:x", "a:occupied0"} {
		if got := told(m.Take(time.Now(), 1000)); got != want {
			t.Errorf("took %s, want %s", got, want)
		}
	}
}

func TestMailboxHoldsUpTheNodeThatFillsItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		var waited atomic.Int32
		m.Waited = func() { waited.Add(1) }
		var put atomic.Int32
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 1000 {
				m.Put(replied("loud", fmt.Sprint(i)))
				put.Add(1)
			}
		})
		synctest.Wait()
		if n := put.Load(); n != 256 || waited.Load() != 1 {
			t.Errorf("%d events of one node wait, %d times its stream; want 256 and 1", n, waited.Load())
		}
		m.Put(replied("b", "x")) // does not wait
		var heard []string
		for len(heard) < 1001 {
			<-m.Waiting()
			for _, e := range m.Take(time.Now(), 1000) {
				heard = append(heard, told([]grant.Event{e}))
			}
			synctest.Wait()
		}
		wg.Wait()
		next := 0
		for _, e := range heard {
			if e == "b:x" {
				continue
			}
			if want := fmt.Sprintf("loud:%d", next); e != want {
				t.Fatalf("heard %s, want %s", e, want)
			}
			next++
		}
	})
}

func TestMailboxIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		reason := []resource.Reason{{Code: "X", Detail: strings.Repeat("x", 1<<20)}}
		var put atomic.Int32
		go func() {
			for range 10 {
				m.Put(grant.Replied{Node: "a", Tx: "t", Reasons: reason})
				put.Add(1)
			}
		}()
		synctest.Wait()
		if n := put.Load(); n != 3 {
			t.Errorf("%d events of a megabyte wait, want 3 within 4 MiB", n)
		}
		m.Close()
		synctest.Wait()
		if n := put.Load(); n != 10 {
			t.Errorf("%d events were put after the end, want all 10", n)
		}
	})
}

func TestMailboxLeavesOutNodesThatRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		start := time.Now()
		m.Put(replied("slow", "1"))
		m.Put(replied("b", "1"))
		m.Rest("slow", start, time.Second)
		if got := told(m.Take(time.Now(), 1000)); got != "b:1" {
			t.Errorf("took %s", got)
		}
		select {
		case <-m.Waiting(): // of the first Put
		default:
		}
		m.Put(replied("slow", "2"))
		select {
		case <-m.Waiting():
			t.Error("a node that rests has woken the loop")
		default:
		}
		if got := m.Take(time.Now(), 1000); got != nil {
			t.Errorf("took %s of a node that rests", told(got))
		}
		<-m.Waiting()
		if got := told(m.Take(time.Now(), 1000)); got != "slow:1 slow:2" || time.Since(start) != time.Second {
			t.Errorf("took %s after %v, want slow:1 slow:2 after 1s", got, time.Since(start))
		}
	})
}

// The path of an event to the loop, beside the one through a channel of
// functions that it replaces.
func BenchmarkDelivery(b *testing.B) {
	const nodes = 64
	events := make([]grant.Event, nodes)
	for i := range events {
		events[i] = replied(resource.NodeID(fmt.Sprintf("node-%d", i)), "tx")
	}
	b.Run("mailbox", func(b *testing.B) {
		m := agents.NewMailbox()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.Put(events[i%nodes])
			if i%nodes == nodes-1 {
				m.Take(time.Time{}, 1024)
			}
		}
	})
	b.Run("channel", func(b *testing.B) {
		inbox := make(chan func(), 1024)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e := events[i%nodes]
			inbox <- func() { _ = e }
			if i%nodes == nodes-1 {
				for len(inbox) > 0 {
					(<-inbox)()
				}
			}
		}
	})
}

// A rest that ends while nothing of the node waits is over for the next event.
func TestMailboxWakesAfterARestThatEndedWithAnEmptyBox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agents.NewMailbox()
		m.Put(replied("n", "1"))
		m.Take(time.Now(), 1000)
		m.Rest("n", time.Now(), time.Second)
		time.Sleep(2 * time.Second)
		select {
		case <-m.Waiting(): // the end of the rest
		default:
		}
		m.Take(time.Now(), 1000)
		m.Put(replied("n", "2"))
		select {
		case <-m.Waiting():
		default:
			t.Error("an event after a rest has not woken the loop")
		}
	})
}
