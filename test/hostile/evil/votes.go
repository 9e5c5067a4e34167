package evil

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// hostModes are the attacks of a hostile host (level A1).
var hostModes = merge(voteModes, answerModes, floodModes, registerModes, identityModes)

// voteModes change the host's Yes: each gets the members of an honest vote.
var voteModes = voting(map[string]func(r *musterv1.Reply){
	"vote-without-members": func(r *musterv1.Reply) { r.Members = nil },
	"vote-other-index": func(r *musterv1.Reply) {
		for _, m := range r.GetMembers() {
			m.Member += 7
		}
	},
	"vote-negative-index": func(r *musterv1.Reply) {
		for _, m := range r.GetMembers() {
			m.Member = -1
		}
	},
	"vote-twice-a-member": func(r *musterv1.Reply) {
		for _, m := range r.GetMembers() {
			r.Members = append(r.Members, proto.Clone(m).(*musterv1.MemberAssignment))
		}
	},
	// All members of the gang, those of other nodes among them.
	"vote-for-all-members": func(r *musterv1.Reply) {
		if len(r.GetMembers()) == 0 {
			return
		}
		own := r.GetMembers()[0]
		r.Members = nil
		for i := range int32(4) {
			m := proto.Clone(own).(*musterv1.MemberAssignment)
			m.Member = i
			r.Members = append(r.Members, m)
		}
	},
	"vote-less": eachAssignment(func(a *musterv1.Assignment) {
		a.Cpus, a.Memory, a.Gpus = nil, nil, nil
	}),
	"vote-more": eachAssignment(func(a *musterv1.Assignment) {
		for _, m := range a.GetMemory() {
			m.Bytes *= 1000
		}
		a.Cpus = nil
		for id := range int32(200) {
			a.Cpus = append(a.Cpus, &musterv1.CPUGrant{Id: id, Milli: 1000})
		}
	}),
	"vote-huge-memory": eachAssignment(func(a *musterv1.Assignment) {
		for _, m := range a.GetMemory() {
			m.Bytes = 1<<63 - 1
		}
	}),
	"vote-foreign-gpu": eachAssignment(func(a *musterv1.Assignment) {
		for _, g := range a.GetGpus() {
			g.Uuid = "GPU-00000000-dead-beef-0000-000000000000"
		}
	}),
	"vote-gpu-outside": eachAssignment(func(a *musterv1.Assignment) {
		for _, g := range a.GetGpus() {
			g.Index += 1 << 20
		}
	}),
	"vote-a-million-cpus": eachAssignment(func(a *musterv1.Assignment) {
		a.Cpus = nil
		for id := range int32(1 << 20) {
			a.Cpus = append(a.Cpus, &musterv1.CPUGrant{Id: id, Milli: 1000})
		}
	}),
	// Revisions and incarnations of nobody.
	"vote-of-the-future": func(r *musterv1.Reply) {
		r.RegisteredRevision = 1<<62 + 1
	},
	"vote-of-another-life": func(r *musterv1.Reply) {
		r.Incarnation = &musterv1.Incarnation{JournalId: strings.Repeat("j", 1<<16), BootId: "other"}
	},
})

func eachAssignment(change func(*musterv1.Assignment)) func(*musterv1.Reply) {
	return func(r *musterv1.Reply) {
		for _, m := range r.GetMembers() {
			change(m.GetAssignment())
		}
	}
}

// voting makes modes that change each Yes of the host.
func voting(changes map[string]func(*musterv1.Reply)) map[string]func(context.Context, *run) error {
	made := map[string]func(context.Context, *run) error{}
	for name, change := range changes {
		made[name] = func(ctx context.Context, r *run) error {
			return r.lie(ctx, lies{answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
				if reply := m.GetReply(); reply.GetState() == musterv1.Reply_RESERVED {
					change(reply)
					r.count("vote: sent")
				}
				return []*musterv1.AgentMessage{m}
			}})
		}
	}
	return made
}

// mostWait bounds the wait for Spec.Until.
const mostWait = 30 * time.Second

// lie runs a hostile host for as long as the attack lasts.
func (r *run) lie(ctx context.Context, l lies) error {
	h, err := r.start(ctx, l)
	if err != nil {
		return err
	}
	defer h.stop()
	r.ready()
	pause(ctx, r.For)
	for until := time.Now().Add(mostWait); r.Until != "" && r.counted(r.Until) == 0 && time.Now().Before(until); {
		if !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	return nil
}

// answerModes are a host that answers commands otherwise than it should.
var answerModes = map[string]func(context.Context, *run) error{
	"refuse-always": func(ctx context.Context, r *run) error {
		return r.lie(ctx, lies{command: func(m *musterv1.LeaderMessage) (*musterv1.LeaderMessage, []*musterv1.AgentMessage) {
			reserve := m.GetReserve()
			if reserve == nil {
				return m, nil
			}
			r.count("Reserve: refused")
			return nil, []*musterv1.AgentMessage{replyOf(&musterv1.Reply{
				Tx: reserve.GetTx(), State: musterv1.Reply_NO, Reasons: []*musterv1.Reason{{Code: "no", Detail: "not today"}},
			})}
		}})
	},
	"hang-always": func(ctx context.Context, r *run) error {
		return r.lie(ctx, lies{command: func(m *musterv1.LeaderMessage) (*musterv1.LeaderMessage, []*musterv1.AgentMessage) {
			if m.GetReserve() != nil {
				r.count("Reserve: not answered")
				return nil, nil
			}
			return m, nil
		}})
	},
	"answer-late": answerLate,
	"answer-twice": func(ctx context.Context, r *run) error {
		return r.lie(ctx, lies{answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
			if m.GetReply() == nil {
				return []*musterv1.AgentMessage{m}
			}
			r.count("reply: sent twice")
			return []*musterv1.AgentMessage{m, m, m}
		}})
	},
	"answer-wrong-tx": func(ctx context.Context, r *run) error {
		return r.lie(ctx, lies{answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
			if reply := m.GetReply(); reply != nil {
				reply.Tx = invented(0)
				r.count("reply: sent")
			}
			return []*musterv1.AgentMessage{m}
		}})
	},
	// It frees what it was just granted, and refuses after its Yes.
	"yes-then-no": func(ctx context.Context, r *run) error {
		return r.lie(ctx, lies{answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
			reply := m.GetReply()
			if reply.GetState() != musterv1.Reply_RESERVED {
				return []*musterv1.AgentMessage{m}
			}
			r.count("vote: sent")
			no := proto.Clone(m).(*musterv1.AgentMessage)
			no.GetReply().State, no.GetReply().Members = musterv1.Reply_NO, nil
			freed := proto.Clone(no).(*musterv1.AgentMessage)
			freed.GetReply().State = musterv1.Reply_FREED
			return []*musterv1.AgentMessage{m, no, freed, m}
		}})
	},
}

// lateness is longer than a leader waits for a vote.
const lateness = 12 * time.Second

func answerLate(ctx context.Context, r *run) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var h *host
	var err error
	h, err = r.start(ctx, lies{answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
		if m.GetReply().GetState() != musterv1.Reply_RESERVED {
			return []*musterv1.AgentMessage{m}
		}
		r.count("vote: sent late")
		wg.Go(func() {
			if pause(ctx, lateness) {
				h.relay.say(m)
			}
		})
		return nil
	}})
	if err != nil {
		return err
	}
	defer h.stop()
	r.ready()
	pause(ctx, r.For)
	return nil
}

func replyOf(r *musterv1.Reply) *musterv1.AgentMessage {
	return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: r}}
}
