package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/serf/serf"
)

// QueryHandler answers one operator query. It may block for as long as the
// query lasts; queries are served one after the other. An answer longer than
// 1,024 bytes is cut and ends with a mark of the cut; nil answers nothing. The
// payload is the handler's to keep.
type QueryHandler func(payload []byte) []byte

// inboxSize is how many queries and hints may wait behind a slow callback.
const inboxSize = 64

// inbox takes serf's events from the agent's event loop, which must not block,
// and hands them to the callbacks on its own goroutines.
type inbox struct {
	log      *slog.Logger
	queries  map[string]QueryHandler
	onMember func(Member)
	onHint   func(Hint)
	nudge    func()

	members *mailbox[string, Member]
	waiting chan serf.Event // capacity inboxSize; full drops
	dropped atomic.Uint64
}

func newInbox(cfg SerfConfig, nudge func()) *inbox {
	queries := make(map[string]QueryHandler, len(cfg.Queries))
	for name, handler := range cfg.Queries {
		queries[name] = handler
	}
	return &inbox{
		log: loggerOr(cfg.Logger).With("ring", "serf"), queries: queries,
		onMember: cfg.OnMember, onHint: cfg.OnHint, nudge: nudge,
		members: newMailbox[string, Member](), waiting: make(chan serf.Event, inboxSize),
	}
}

// HandleEvent is the agent's event handler. It never blocks.
func (b *inbox) HandleEvent(e serf.Event) {
	switch e := e.(type) {
	case serf.MemberEvent:
		for _, m := range e.Members {
			b.members.put(m.Name, memberOf(m, statusOf(e.Type, m)))
		}
		b.nudge()
	case *serf.Query, serf.UserEvent:
		select {
		case b.waiting <- e:
		default:
			b.dropped.Add(1)
		}
	}
}

func statusOf(t serf.EventType, m serf.Member) Status {
	switch t {
	case serf.EventMemberLeave:
		return Left
	case serf.EventMemberFailed:
		return Failed
	case serf.EventMemberReap:
		return Reaped
	default:
		return Status(m.Status.String())
	}
}

func (b *inbox) deliverMembers(ctx context.Context) {
	b.members.deliver(ctx, func(m Member) {
		if b.onMember != nil {
			b.onMember(m)
		}
	})
}

// serve answers queries and passes hints on until ctx ends.
func (b *inbox) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-b.waiting:
			switch e := e.(type) {
			case *serf.Query:
				b.answer(e)
			case serf.UserEvent:
				if b.onHint != nil {
					b.onHint(Hint{Name: e.Name, Payload: append([]byte(nil), e.Payload...)})
				}
			}
		}
	}
}

func (b *inbox) answer(q *serf.Query) {
	handler, known := b.queries[q.Name]
	if !known || time.Now().After(q.Deadline()) {
		return
	}
	answer := handler(append([]byte(nil), q.Payload...))
	if answer == nil {
		return
	}
	if err := q.Respond(cutAnswer(answer)); err != nil {
		b.log.Debug("query_not_answered", "query", q.Name, "from", q.SourceNode(), "bytes", len(answer), "error", err)
	}
}

// cutAnswer returns at most answerLimit bytes. A longer one is cut between
// characters and ends with a line that marks the cut.
func cutAnswer(answer []byte) []byte {
	if len(answer) <= answerLimit {
		return answer
	}
	mark := fmt.Sprintf("\n…cut at %d bytes", answerLimit)
	keep := answerLimit - len(mark)
	for back := 0; back < utf8.UTFMax-1 && keep > 0 && !utf8.RuneStart(answer[keep]); back++ {
		keep--
	}
	return append(append(make([]byte, 0, answerLimit), answer[:keep]...), mark...)
}
