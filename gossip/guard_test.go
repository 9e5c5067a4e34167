package gossip

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// passed is serf's place behind a guard.
type passed struct {
	memberlist.Delegate
	messages [][]byte
	states   [][]byte
}

func (p *passed) NotifyMsg(b []byte)                { p.messages = append(p.messages, b) }
func (p *passed) MergeRemoteState(b []byte, _ bool) { p.states = append(p.states, b) }

var n1 = &memberlist.Node{Name: "n1", Addr: net.IPv4(192, 0, 2, 1), Port: 7946}

// guarded is a guard of a ring with the members n1, at 192.0.2.1:7946, and n2,
// which failed.
func guarded() (*guard, *passed) {
	r := newRoster(judgeTags)
	r.enter(n1, true)
	r.enter(&memberlist.Node{Name: "n2", Addr: net.IPv4(192, 0, 2, 2), Port: 7946}, false)
	g, p := newGuard(r, newRefusals(slog.New(slog.DiscardHandler))), &passed{}
	g.Delegate = p
	return g, p
}

func message(t testing.TB, kind messageType, body any) []byte {
	t.Helper()
	b, err := encode(kind, body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheGuardJudgesMessages(t *testing.T) {
	query := func(change func(*queryBody)) queryBody {
		q := queryBody{LTime: 7, ID: 1, Addr: n1.Addr, Port: n1.Port, SourceNode: "n1", Timeout: time.Second, Name: "capacity"}
		if change != nil {
			change(&q)
		}
		return q
	}
	relay := func(to net.UDPAddr, name string, inner ...byte) []byte {
		return append(message(t, relayMessage, relayHead{to, name}), inner...)
	}
	home := net.UDPAddr{IP: n1.Addr, Port: int(n1.Port)}
	for name, c := range map[string]struct {
		message []byte
		want    Refusal // "" passes
	}{
		"a query of a member":                 {message(t, queryMessage, query(nil)), ""},
		"serf reachability":                   {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_ping" })), ""},
		"install-key":                         {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_install-key" })), RefusedKeys},
		"use-key":                             {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_use-key" })), RefusedKeys},
		"remove-key":                          {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_remove-key" })), RefusedKeys},
		"list-keys":                           {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_list-keys" })), RefusedKeys},
		"another internal query":              {message(t, queryMessage, query(func(q *queryBody) { q.Name = "_serf_conflict" })), RefusedForm},
		"answers for somebody else":           {message(t, queryMessage, query(func(q *queryBody) { q.Addr = net.IPv4(198, 51, 100, 9) })), RefusedMember},
		"answers for no member":               {message(t, queryMessage, query(func(q *queryBody) { q.SourceNode = "n9" })), RefusedMember},
		"a query for a day":                   {message(t, queryMessage, query(func(q *queryBody) { q.Timeout = 24 * time.Hour })), RefusedSize},
		"a negative time":                     {message(t, queryMessage, query(func(q *queryBody) { q.Timeout = -1 })), RefusedSize},
		"every answer 255 times":              {message(t, queryMessage, query(func(q *queryBody) { q.RelayFactor = 255 })), RefusedSize},
		"a query of 2 KiB":                    {message(t, queryMessage, query(func(q *queryBody) { q.Name = strings.Repeat("x", 2048) })), RefusedSize},
		"the last time there is":              {message(t, queryMessage, query(func(q *queryBody) { q.LTime = 1<<64 - 1 })), RefusedClock},
		"half a query":                        {message(t, queryMessage, query(nil))[:9], RefusedForm},
		"an event":                            {message(t, eventMessage, eventBody{3, "drill", []byte("x")}), ""},
		"an event of 1 KiB":                   {message(t, eventMessage, eventBody{3, "drill", make([]byte, 1024)}), RefusedSize},
		"a join of a member":                  {message(t, joinMessage, joinBody{3, "n1"}), ""},
		"a join of one to come":               {message(t, joinMessage, joinBody{3, "n3"}), ""},
		"a join with a terminal escape":       {message(t, joinMessage, joinBody{3, "\x1b]0;x"}), RefusedForm},
		"a leave of a member":                 {message(t, leaveMessage, leaveBody{3, "n1", false}), ""},
		"a living member is erased":           {message(t, leaveMessage, leaveBody{3, "n1", true}), RefusedMember},
		"a failed member is erased":           {message(t, leaveMessage, leaveBody{3, "n2", true}), ""},
		"an answer":                           {[]byte{byte(answerMessage), 0x80}, ""},
		"an answer of 64 KiB":                 {append([]byte{byte(answerMessage)}, make([]byte, 1<<16)...), RefusedSize},
		"an answer is relayed to a member":    {relay(home, "n1", byte(answerMessage), 0x80), ""},
		"an answer is relayed elsewhere":      {relay(net.UDPAddr{IP: net.IPv4(198, 51, 100, 9), Port: 53}, "n1", byte(answerMessage), 0x80), RefusedMember},
		"something else is relayed":           {relay(home, "n1", byte(queryMessage), 0x80), RefusedForm},
		"a key request outside a query":       {[]byte{7, 0x80}, RefusedForm},
		"a type of message that there is not": {[]byte{77}, RefusedForm},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := guarded()
			g.NotifyMsg(c.message)
			if (len(p.messages) == 1) != (c.want == "") {
				t.Errorf("%d messages pass, want refusal %q", len(p.messages), c.want)
			}
			for _, reason := range allRefusals {
				if n := g.refused.count(reason); (n == 1) != (reason == c.want) {
					t.Errorf("refused for %s: %d, want refusal %q", reason, n, c.want)
				}
			}
		})
	}
}

func TestTheGuardKeepsBudgetsAndPassesACopyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := guarded()
		ask := func(from, n int) {
			for i := from; i < from+n; i++ {
				q := queryBody{LTime: uint64(i), ID: 1, Addr: n1.Addr, Port: n1.Port, SourceNode: "n1", Timeout: time.Second, Name: "queue"}
				g.NotifyMsg(message(t, queryMessage, q))
				g.NotifyMsg(message(t, queryMessage, q)) // rings send everything several times
			}
		}
		ask(1, 1000)
		if n := len(p.messages); n != 64 {
			t.Errorf("%d of 1000 queries at once pass, want the budget of 64", n)
		}
		time.Sleep(time.Second)
		ask(2000, 1000)
		if n := len(p.messages); n != 64+20 {
			t.Errorf("%d queries pass within a second more, want 20", n-64)
		}
		time.Sleep(time.Minute)
		before := len(p.messages)
		for id := range uint32(100) { // serf remembers every query of one time
			g.NotifyMsg(message(t, queryMessage, queryBody{LTime: 5000, ID: id, Addr: n1.Addr, Port: n1.Port, SourceNode: "n1", Name: "queue"}))
		}
		if n := len(p.messages) - before; n != crowdSize {
			t.Errorf("%d queries of one time pass, want %d", n, crowdSize)
		}
		before = len(p.messages)
		for i := range 5000 {
			g.NotifyMsg(message(t, joinMessage, joinBody{3, fmt.Sprintf("invented-%d", i)}))
		}
		if n := len(p.messages) - before; n != 1024 {
			t.Errorf("%d invented names pass, want 1024", n)
		}
	})
}

func TestAClockMayJumpButNotRunOver(t *testing.T) {
	g, _ := guarded()
	for _, step := range []struct {
		time uint64
		ok   bool
	}{{1, true}, {clockFar, true}, {clockFar + clockStep, true}, {clockFar + 2*clockStep + 1, false}, {1<<64 - 1, false}, {clockFar + 2*clockStep, true}, {5, true}} {
		if _, err := g.witness(eventClock, step.time); (err == nil) != step.ok {
			t.Errorf("time %d: %v, want ok %v", step.time, err, step.ok)
		}
	}
}

func TestTheGuardTakesTheGoodPartOfAState(t *testing.T) {
	good := stateBody{LTime: 9, StatusLTimes: map[string]uint64{"n1": 3, "n2": 4}, LeftMembers: []string{"n2"}, EventLTime: 2, QueryLTime: 2}
	g, p := guarded()
	b := message(t, stateMessage, good)
	g.MergeRemoteState(b, false)
	if len(p.states) != 1 || string(p.states[0]) != string(b) {
		t.Fatalf("%d states pass, want the very one", len(p.states))
	}
	bad := good
	bad.StatusLTimes = map[string]uint64{"n1": 3, "invented": 4, "n2": 1<<64 - 1}
	bad.LeftMembers = []string{"n2", "nobody"}
	bad.Events = []*stateEvents{nil, {LTime: 1, Events: []stateEvent{{"drill", []byte("x")}, {"drill", []byte("x")}, {"long", make([]byte, 4096)}}}}
	g.MergeRemoteState(message(t, stateMessage, bad), false)
	if len(p.states) != 2 {
		t.Fatal("the state does not pass at all")
	}
	var got stateBody
	if err := decode(p.states[1][1:], &got); err != nil {
		t.Fatal(err)
	}
	if len(got.StatusLTimes) != 1 || got.StatusLTimes["n1"] != 3 || len(got.LeftMembers) != 1 || len(got.Events) != 1 || len(got.Events[0].Events) != 1 {
		t.Errorf("what passes is %+v", got)
	}
	for name, b := range map[string][]byte{
		"nothing": {}, "another type": {3, 0x80}, "half of it": message(t, stateMessage, good)[:12], "too long": make([]byte, maxStateBytes+1),
		"a clock at its end": message(t, stateMessage, stateBody{QueryLTime: 1<<64 - 1}),
	} {
		if g.MergeRemoteState(b, true); len(p.states) != 2 {
			t.Fatalf("%s passes", name)
		}
	}
}

func TestARingHoldsABoundedNumberOfNames(t *testing.T) {
	r := newRoster(nil)
	for i := range maxMembers {
		n := &memberlist.Node{Name: fmt.Sprintf("n%d", i), Addr: net.IPv4(192, 0, 2, 1)}
		if err := r.NotifyAlive(n); err != nil {
			t.Fatal(err)
		}
		r.enter(n, true)
	}
	if err := r.NotifyAlive(&memberlist.Node{Name: "more"}); err != errRingFull {
		t.Errorf("one more: %v", err)
	}
	if err := r.NotifyAlive(&memberlist.Node{Name: "n7"}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	r.forget("n7") // lives
	if err := r.NotifyAlive(&memberlist.Node{Name: "more"}); err != errRingFull {
		t.Errorf("after a living member was forgotten: %v", err)
	}
	r.enter(&memberlist.Node{Name: "n7"}, false)
	r.forget("n7")
	if err := r.NotifyAlive(&memberlist.Node{Name: "more"}); err != nil {
		t.Errorf("after the ring forgot one: %v", err)
	}
	for _, bad := range []string{"", "a/b", "\x1b[2J", strings.Repeat("x", 300)} {
		if err := r.NotifyAlive(&memberlist.Node{Name: bad}); err == nil {
			t.Errorf("the name %q is let in", bad)
		}
	}
}

func TestAKeyringThatWasChangedIsPutBack(t *testing.T) {
	k, err := NewKeyring([][]byte{[]byte("0123456789abcdef"), []byte("1234567890123456")})
	if err != nil {
		t.Fatal(err)
	}
	evil := []byte("evilevilevilevil")
	for name, change := range map[string]func() error{
		"nothing":             func() error { return nil },
		"a key is installed":  func() error { return k.ring.AddKey(evil) },
		"another one is used": func() error { return k.ring.UseKey([]byte("1234567890123456")) },
		"a key is removed":    func() error { return k.ring.RemoveKey([]byte("1234567890123456")) },
		"all of it":           func() error { _ = k.ring.AddKey(evil); return k.ring.UseKey(evil) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		changed, err := k.restore()
		if err != nil || changed != (name != "nothing") {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
		if got := k.ring.GetKeys(); len(got) != 2 || string(got[0]) != "0123456789abcdef" || len(k.Keys()) != 2 {
			t.Errorf("%s: %d keys, or another first one", name, len(got))
		}
	}
	if k.PutBack() != 4 {
		t.Errorf("%d changes were put back, want 4", k.PutBack())
	}
}

func FuzzGuard(f *testing.F) {
	f.Add(message(f, queryMessage, queryBody{LTime: 1, Addr: n1.Addr, Port: 7946, SourceNode: "n1", Name: "_serf_install-key"}))
	f.Add(message(f, eventMessage, eventBody{3, "drill", []byte("x")}))
	f.Add(message(f, leaveMessage, leaveBody{3, "n1", true}))
	f.Add(append(message(f, relayMessage, relayHead{net.UDPAddr{IP: n1.Addr, Port: 7946}, "n1"}), byte(answerMessage), 0x80))
	f.Add(message(f, stateMessage, stateBody{LTime: 1, StatusLTimes: map[string]uint64{"x": 1}, Events: []*stateEvents{{LTime: 1, Events: []stateEvent{{"a", nil}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, p := guarded()
		g.NotifyMsg(b)
		for _, m := range p.messages {
			var q queryBody
			if messageType(m[0]) == queryMessage && decode(m[1:], &q) == nil && strings.HasPrefix(q.Name, "_serf_") && q.Name != pingQuery {
				t.Errorf("the query %q passes", q.Name)
			}
		}
		g.MergeRemoteState(b, false)
		for _, m := range p.states {
			var s stateBody
			if err := decode(m[1:], &s); err != nil {
				t.Errorf("a state passes that cannot be read: %v", err)
			}
			for name := range s.StatusLTimes {
				if name != "n1" && name != "n2" {
					t.Errorf("the invented name %q passes", name)
				}
			}
		}
	})
}

func FuzzParseTags(f *testing.F) {
	f.Add([]byte("web"))
	f.Add([]byte{tagMagicByte, 0x81, 0xa4, 'r', 'o', 'l', 'e', 0xa5, 'a', 'g', 'e', 'n', 't'})
	f.Fuzz(func(t *testing.T, meta []byte) {
		n := *n1
		n.Meta = meta
		if judgeTags(&n) != nil {
			return
		}
		m, err := parseTags(meta)
		if err != nil {
			t.Fatal(err)
		}
		if tags := decodeTags(m); tags != (Tags{}) && (tags.ID != "n1" || tags.Validate() != nil) {
			t.Errorf("%+v is let in", tags)
		}
	})
}
