package sim

import (
	"fmt"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// event is what an agent says, or what a stream does.
type event interface{ event() }

type (
	connected struct {
		incarnation resource.Incarnation
		registered  resource.Revision
		host        *fit.Host
		occupancy   occupied
		quarantined bool
		hash        uint64 // of the ledger
	}
	disconnected struct{}
	enrolled     struct {
		incarnation resource.Incarnation
		revision    resource.Revision
	}
	replied struct {
		ledger.Reply
		hash uint64 // of the ledger
	}
	occupied struct {
		hash      uint64 // of the ledger
		grants    []ledger.Grant
		cordoned  bool
		unhealthy uint64 // devices, by index
	}
	health struct {
		cordoned    bool
		unhealthy   uint64
		quarantined bool
	}
)

func (connected) event()    {}
func (disconnected) event() {}
func (enrolled) event()     {}
func (replied) event()      {}
func (occupied) event()     {}
func (health) event()       {}

// order is what a leader says: a command, or the wish for everything.
type order struct {
	command ledger.Command
	hello   *hello
	resync  bool
}

// hello opens a stream.
type hello struct {
	epoch    resource.Epoch
	revision resource.Revision // of the node's registration, as the store has it
}

// stream is one session between a term and an agent's process: in order both
// ways until it is cut, and then some of what was on its way still arrives.
type stream struct {
	sim     *Sim
	id      int
	term    *term
	agent   *agent
	down    []order
	up      []event
	open    bool // the leader may send
	stalled int  // until this step nothing of it arrives
	ended   bool // cut; disconnected is the last of up
}

// say queues an event for the leader.
func (st *stream) say(a *agent, e event) {
	if !st.ended && a == st.agent && !a.dead {
		if r, is := e.(replied); is {
			r.hash = a.l.Hash()
			e = r
		}
		st.up = append(st.up, st.sim.lie(st, e)...)
	}
}

// cut ends the stream. Of what is on its way a part is lost.
func (st *stream) cut() {
	if st.ended {
		return
	}
	st.ended = true
	if s := st.sim; s.faults {
		st.down = st.down[:s.rng.IntN(len(st.down)+1)]
		st.up = st.up[:s.rng.IntN(len(st.up)+1)]
	}
	st.up = append(st.up, disconnected{})
	if st.agent.session == st {
		st.agent.session = nil
	}
}

// done reports whether nothing can come of the stream any more.
func (st *stream) done() bool {
	return (len(st.up) == 0 || st.term.ended) && st.ended && (len(st.down) == 0 || st.agent.dead)
}

// connect opens a stream: what the store has registered is read first.
func (t *term) connect(h *host) {
	s := t.sim
	at := t.links[h.node]
	at.dialing = true
	s.ask("identity of "+string(h.node)+" for a hello", func() func() {
		who, kv := value[record.NodeIdentity](s.store, record.NodeIdentityKey(h.node))
		rev := kv.ModRev
		if who.Fenced {
			rev = 0
		}
		return func() {
			at.dialing = false
			if t.ended || h.agent == nil || at.stream != nil || at.distrusted {
				return
			}
			s.streamCount++
			st := &stream{sim: s, id: s.streamCount, term: t, agent: h.agent}
			at.stream = st
			st.down = append(st.down, order{hello: &hello{t.epoch, rev}})
			s.streams = append(s.streams, st)
		}
	})
}

// deliverDown hands the agent the next of what the leader said; twice is as
// good as once.
func (st *stream) deliverDown() {
	s, a := st.sim, st.agent
	o := st.down[0]
	st.down = st.down[1:]
	if a.dead {
		return
	}
	s.logf("%s: hears %s", a.h.node, describe(o))
	if o.hello != nil {
		st.admit(o.hello)
		return
	}
	if a.session != st {
		return // the session was replaced: it is not obeyed any more
	}
	if o.resync {
		st.say(a, a.occupancy())
		return
	}
	if _, is := o.command.(grant.Cordon); !is && s.mishap(12) {
		s.past = append(s.past, ghost{a.h, o.command})
	}
	a.obey(o.command, st)
	if !a.dead && s.mishap(20) {
		s.logf("%s: hears it twice", a.h.node)
		a.obey(o.command, st)
	}
}

// ghost is a command that may come again, hours later.
type ghost struct {
	host    *host
	command ledger.Command
}

func (a *agent) obey(c ledger.Command, out *stream) {
	switch c.(type) {
	case grant.Cordon, grant.Reconcile:
		if _, ok := a.do(c, nil); ok && out != nil {
			out.say(a, a.health())
		}
		return
	}
	if c, is := c.(grant.Evict); is {
		a.h.promise(c.Tx, c.Grace)
	}
	if evict, is := c.(grant.Evict); is && a.h.sim.bug == GraceCut {
		evict.Grace = 0
		c = evict
	}
	a.do(c, out)
}

func (a *agent) health() health {
	v := a.l.Snapshot()
	return health{v.Cordoned, v.Free.Unhealthy, !v.Quarantine.IsZero()}
}

// admit lets a leader in: its epoch is taken up, the session before it ends.
func (st *stream) admit(hi *hello) {
	a := st.agent
	quarantined := !a.l.Quarantine().IsZero()
	if claim := st.sim.liar.epoch(st, hi); claim > 0 {
		st.cut()
		st.term.refused(a.h.node, claim)
		return
	}
	if hi.epoch < a.l.Epoch() && !quarantined {
		a.register = true // the store may have gone back
		st.cut()
		st.term.refused(a.h.node, a.l.Epoch())
		return
	}
	if _, ok := a.do(ledger.NewEpoch{Epoch: hi.epoch}, nil); !ok {
		return
	}
	if a.session != nil {
		a.session.cut()
	}
	a.session = st
	registered := a.l.Registration()
	if registered > 0 && hi.revision != registered {
		a.register = true
	}
	st.say(a, connected{a.incarnation, registered, a.h.hardware(), a.occupancy(), quarantined, a.l.Hash()})
}

// deliverUp hands the leader the next of what the agent said.
func (st *stream) deliverUp() {
	s := st.sim
	e := st.up[0]
	st.up = st.up[1:]
	if st.term.ended {
		return
	}
	s.logf("%s: hears of %s: %s", st.term.name, st.agent.h.node, describeEvent(e))
	st.term.hear(st, e)
	if !st.term.ended && s.mishap(20) {
		if _, is := e.(replied); is {
			s.logf("%s: hears it twice", st.term.name)
			st.term.hear(st, e)
		}
	}
	st.term.schedule()
}

func describe(o order) string {
	switch c := o.command.(type) {
	case grant.Reserve:
		return fmt.Sprintf("Reserve %s of epoch %d", short(c.Tx), c.Epoch)
	case grant.Commit:
		return fmt.Sprintf("Commit %s at %d of epoch %d", short(c.Tx), c.Revision, c.Epoch)
	case grant.Abort:
		return fmt.Sprintf("Abort %s of epoch %d", short(c.Tx), c.Epoch)
	case grant.Release:
		return fmt.Sprintf("Release %s of epoch %d", short(c.Tx), c.Epoch)
	case grant.Evict:
		return fmt.Sprintf("Evict %s by %s of epoch %d with %v", short(c.Tx), short(c.By), c.Epoch, c.Grace)
	case grant.Forget:
		return fmt.Sprintf("Forget %s", short(c.Tx))
	case grant.Cordon:
		return fmt.Sprintf("Cordon %t", c.Cordoned)
	case grant.Reconcile:
		return fmt.Sprintf("Reconcile at %d of epoch %d, %d adopted, %d released", c.Revision, c.Epoch, len(c.Adopted), len(c.Released))
	}
	if o.hello != nil {
		return fmt.Sprintf("Hello of epoch %d", o.hello.epoch)
	}
	return "Resync"
}

func describeEvent(e event) string {
	switch e := e.(type) {
	case connected:
		return fmt.Sprintf("Connected %s registered at %d, %d grants", e.incarnation, e.registered, len(e.occupancy.grants))
	case enrolled:
		return fmt.Sprintf("Registered %s at %d", e.incarnation, e.revision)
	case replied:
		if e.Refused() {
			return fmt.Sprintf("No to %s: %s (%s)", short(e.Tx), e.Reasons[0].Code, e.Reasons[0].Detail)
		}
		return fmt.Sprintf("%s is %s under %d", short(e.Tx), e.State, e.Registered)
	case occupied:
		return fmt.Sprintf("Occupancy of %d grants", len(e.grants))
	case health:
		return fmt.Sprintf("health %x, cordoned %t, in quarantine %t", e.unhealthy, e.cordoned, e.quarantined)
	}
	return "Disconnected"
}
