package lead

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// reconciling is a play in which n1 is in quarantine and n2 is connected, and a
// reconciliation of n1 that knows who is registered.
func reconciling(t *testing.T) (*play, *reconciliation) {
	p := newPlay(t)
	p.run(`
		> n1 connects in quarantine: lost 0
		> n2 connects
	`)
	r := &reconciliation{l: p.l, id: "n1", concerned: []resource.NodeID{"n1", "n2"}, registrations: map[resource.NodeID]registration{}}
	for _, id := range r.concerned {
		r.registrations[id] = registration{incarnation: p.identity(id)}
	}
	return p, r
}

func TestWhatKeepsAGrantFromHavingARecord(t *testing.T) {
	one := func(p *play, g *lost) { g.holders = map[resource.NodeID]grant.Grant{"n1": g.Grant} }
	// two hold members 0 and 1, and say how many members the unit has.
	two := func(said0, said1 int) func(*play, *lost) {
		return func(p *play, g *lost) {
			other := held("shared", 1)
			g.UnitMembers, other.UnitMembers = said0, said1
			one(p, g)
			g.holders["n2"] = other
		}
	}
	of := func(members int) func(*play, *lost) {
		return func(p *play, g *lost) { g.UnitMembers = members; one(p, g) }
	}
	waits := func(members int) func(*play, *reconciliation) {
		return func(p *play, _ *reconciliation) {
			u := &work.Unit{Path: "default/job/shared/0", Record: record.Unit{UID: "u-shared", Phase: string(api.Pending), Members: members}, Stored: 1}
			p.l.work.Units[u.Path] = u
		}
	}
	cases := map[string]struct {
		name    string
		member  int
		holders func(*play, *lost)
		before  func(*play, *reconciliation)
		want    string // "": nothing
		forGood bool
	}{
		"an allocation": {name: "lost", holders: one},
		"its agent is registered as another": {
			name: "lost", holders: one, before: func(_ *play, r *reconciliation) { r.registrations["n1"] = registration{} }, want: "not registered as what it is",
		},
		"no members": {name: "lost", holders: func(*play, *lost) {}, want: "list no members", forGood: true},
		"a member on two nodes": {
			name: "shared", holders: func(p *play, g *lost) { one(p, g); g.holders["n2"] = g.Grant }, want: "member 0 is held twice", forGood: true,
		},
		"a gang, and all are heard":                       {name: "shared", holders: one},
		"a gang without its first member":                 {name: "shared", member: 1, holders: one, want: "no agent holds its member 0", forGood: true},
		"all members of a gang":                           {name: "shared", holders: two(2, 2)},
		"a gang of which only one agent knows the size":   {name: "shared", holders: two(0, 2)},
		"a gang of which no agent knows the size":         {name: "shared", holders: two(0, 0)},
		"a gang that lacks its last member":               {name: "shared", holders: two(3, 3), want: "no agent holds its member 2", forGood: true},
		"the same, and only one agent knows the size":     {name: "shared", holders: two(3, 0), want: "no agent holds its member 2", forGood: true},
		"a gang of which one member is left":              {name: "shared", holders: of(3), want: "no agent holds its member 1", forGood: true},
		"agents that contradict each other":               {name: "shared", holders: two(2, 3), want: "3 members by the agent of node n2, and 2 by node n1", forGood: true},
		"a member beyond what another agent says":         {name: "shared", holders: two(1, 0), want: "member 1 is held of a unit of 1", forGood: true},
		"an agent that invents a gang":                    {name: "shared", holders: of(1 << 20), want: "no agent holds its member 1", forGood: true},
		"an allocation of which an agent invents members": {name: "lost", holders: of(7), want: "no agent holds its member 1", forGood: true},
		"a gang that waits in the store":                  {name: "shared", holders: two(2, 2), before: waits(2)},
		"the same, and no agent knows the size":           {name: "shared", holders: two(0, 0), before: waits(2)},
		"a gang that waits in the store and lacks one":    {name: "shared", holders: two(0, 0), before: waits(3), want: "no agent holds its member 2", forGood: true},
		"an agent that contradicts the store":             {name: "shared", holders: two(2, 2), before: waits(3), want: "2 members by the agent of node n1, and 3 by the store", forGood: true},
		"a gang that lacks a member, and a node is away": {
			name: "shared", holders: of(2), before: func(p *play, _ *reconciliation) { p.l.nodes["n2"].connected = false }, want: "n2 is not heard",
		},
		"a gang, and a node is away": {
			name: "shared", holders: one, before: func(p *play, _ *reconciliation) { p.l.nodes["n2"].connected = false }, want: "n2 is not heard",
		},
		"a gang, and a node registers": {
			name: "shared", holders: one, before: func(p *play, _ *reconciliation) { p.l.nodes["n2"].revision = 0 }, want: "n2 is not heard",
		},
		"a gang, and a node that is away is fenced": {
			name: "shared", holders: one, before: func(p *play, _ *reconciliation) {
				p.l.nodes["n2"].connected, p.l.nodes["n2"].fence = false, &fence{}
			}, want: "n2 is not heard",
		},
		"a gang, and a node that is away is dead": {
			name: "shared", holders: one, before: func(p *play, _ *reconciliation) {
				p.l.nodes["n2"].connected, p.l.nodes["n2"].fence = false, &fence{dead: true}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, r := reconciling(t)
			if c.before != nil {
				c.before(p, r)
			}
			g := &lost{Grant: held(c.name, c.member)}
			c.holders(p, g)
			got, forGood := r.problem(g)
			if got == "" != (c.want == "") || !strings.Contains(got, c.want) || forGood != c.forGood {
				t.Errorf("%q, for good %t", got, forGood)
			}
		})
	}
}

// TestWhatAnAdoptionWaitsFor: only what could be adopted, and is not known yet.
func TestWhatAnAdoptionWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		mode string
		g    lost
		code int
	}{
		"what cannot be adopted now":   {api.ReconcileAdopt, lost{Grant: held("lost", 0), problem: "away"}, 409},
		"what can never be adopted":    {api.ReconcileAdopt, lost{Grant: held("lost", 0), problem: "away", partial: true}, 0},
		"what has a record":            {api.ReconcileAdopt, lost{Grant: held("lost", 0), problem: "away", record: grant.RecordCommitted}, 0},
		"what is only promised":        {api.ReconcileAdopt, lost{Grant: grant.Grant{State: grant.Reserved}, problem: "away"}, 0},
		"what is released in any case": {api.ReconcileRelease, lost{Grant: held("lost", 0), problem: "away"}, 0},
	} {
		_, r := reconciling(t)
		r.options.Mode, r.grants = c.mode, []*lost{&c.g}
		if status := r.mayBegin(); codeOf(status) != c.code {
			t.Errorf("%s: %v", name, status)
		}
	}
}

// TestWhichGrantsAreReleased: what is held without a record that is charged.
func TestWhichGrantsAreReleased(t *testing.T) {
	for name, c := range map[string]struct {
		state    grant.State
		record   grant.RecordState
		released bool
	}{
		"held, without a record": {grant.Held, grant.RecordAbsent, true},
		"evicting, without one":  {grant.Evicting, grant.RecordAbsent, true},
		"held, and COMMITTED":    {grant.Held, grant.RecordCommitted, false},
		"held, and ABORTED":      {grant.Held, grant.RecordAborted, true},
		"only promised":          {grant.Reserved, grant.RecordAbsent, false},
		"stopping, without one":  {grant.Stopping, grant.RecordAbsent, false},
	} {
		p, r := reconciling(t)
		g := &lost{Grant: held("lost", 0), record: c.record, holders: map[resource.NodeID]grant.Grant{}}
		g.State = c.state
		r.options.Mode, r.grants = api.ReconcileRelease, []*lost{g}
		if p.turn(func() { r.decide() }); len(r.released) > 0 != c.released {
			t.Errorf("%s: released %t", name, !c.released)
		}
	}
}

func TestATombstoneIsNoGrant(t *testing.T) {
	p, r := reconciling(t)
	n := p.l.nodes["n1"]
	n.grants[sharedTx] = grant.Grant{Tx: sharedTx, State: grant.Tombstone}
	for state, holders := range map[grant.State]int{grant.Held: 1, grant.Evicting: 1, grant.Reserved: 0, grant.Stopping: 0} {
		g := n.grants[lostTx]
		g.State = state
		n.grants[lostTx], r.grants = g, nil
		if r.collect(); len(r.grants) != 1 || r.grants[0].Tx != lostTx || len(r.grants[0].holders) != holders {
			t.Errorf("%s: %d grants, want one with %d holders", state, len(r.grants), holders)
		}
	}
}

// TestANodeIsDoneWhenItsAgentHasRegistered: and is out of quarantine.
func TestANodeIsDoneWhenItsAgentHasRegistered(t *testing.T) {
	for _, c := range []struct {
		quarantine string
		revision   resource.Revision
		done       bool
	}{{"back", 0, false}, {"back", 5, false}, {"", 0, false}, {"", 5, true}} {
		p, r := reconciling(t)
		done := false
		r.answer = func(*api.Reconciliation, *api.Status) { done = true }
		p.l.nodes["n1"].isolate(c.quarantine)
		p.l.nodes["n1"].revision = c.revision
		if p.turn(func() { r.awaitRegistration() }); done != c.done {
			t.Errorf("quarantine %q, registered at %d: done %t", c.quarantine, c.revision, done)
		}
	}
}

// TestOnlyTheUnitThatCameBackIsEnded: its name may be another's by now.
func TestOnlyTheUnitThatCameBackIsEnded(t *testing.T) {
	for uid, ends := range map[resource.UnitUID]bool{"u-back": true, "u-other": false} {
		p, r := reconciling(t)
		u := p.l.work.Units["default/alloc/back/0"]
		p.turn(func() { r.askToEnd(returned{tx: backTx, path: u.Path, unit: uid}) })
		if u.Life.EndAsked() != ends {
			t.Errorf("of %s: ends %t", uid, !ends)
		}
	}
}

func TestANameIsFreeWhenNothingHasIt(t *testing.T) {
	p, _ := reconciling(t)
	for name, free := range map[string]bool{"back": false, "lost": true} {
		if p.l.free("default", name, 1, false) != free {
			t.Errorf("%s: free %t", name, !free)
		}
	}
}

// TestWhoMayBeReconciled: a node that is connected, in quarantine.
func TestWhoMayBeReconciled(t *testing.T) {
	p := newPlay(t)
	got := p.run(`
		> n1 connects in quarantine
		> n1 leaves
		> look n1
	`)
	if want := "n1 is not connected"; !strings.Contains(got, want) {
		t.Errorf("%s, want %q", got, want)
	}
}

// TestAGrantThatWasDecidedMeanwhileIsNotDisowned: the client asks again.
func TestAGrantThatWasDecidedMeanwhileIsNotDisowned(t *testing.T) {
	p := newPlay(t)
	p.run(`
		> n1 connects in quarantine: lost 0
		> release n1
		> the store answers
		> the store answers
		> n1 tells all
		> the store answers
		> the store answers
	`)
	uid, _, _, _ := lostTx.Attempt()
	p.put(record.TxKey(lostTx), record.MustEncode(record.Tx{State: grant.RecordAborted, Epoch: 3, UnitUID: uid}))
	if got := p.run("> the store answers"); !strings.Contains(got, "lost was decided while node n1 was reconciled") {
		t.Error(got)
	}
}
