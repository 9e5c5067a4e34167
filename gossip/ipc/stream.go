package ipc

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"
)

// eventFilter is one of the comma-separated filters of `serf monitor` and of
// clients that stream: a type, or user:NAME and query:NAME.
type eventFilter struct{ event, name string }

// parseFilters reads filters; an empty text is all events. It reports false for
// a type that there is not.
func parseFilters(text string) (list []eventFilter, ok bool) {
	if text == "" {
		text = "*"
	}
	for part := range strings.SplitSeq(text, ",") {
		event, name, named := strings.Cut(part, ":")
		switch event {
		case "user", "query":
		case "member-join", "member-leave", "member-failed", "member-update", "member-reap", "*":
			if named {
				return nil, false
			}
		default:
			return nil, false
		}
		list = append(list, eventFilter{event, name})
	}
	return list, true
}

func (f eventFilter) matches(e serf.Event) bool {
	if f.event != "*" && f.event != e.EventType().String() {
		return false
	}
	switch e := e.(type) {
	case serf.UserEvent:
		return f.name == "" || f.name == e.Name
	case *serf.Query:
		return f.name == "" || f.name == e.Name
	}
	return true
}

// eventStream is a client's wish for events.
type eventStream struct {
	filters []eventFilter
	waiting chan serf.Event // capacity 512: a slow client loses more
}

// offer never blocks.
func (s *eventStream) offer(e serf.Event) {
	for _, f := range s.filters {
		if f.matches(e) {
			select {
			case s.waiting <- e:
			default:
			}
			return
		}
	}
}

func (c *connection) streamEvents(seq uint64) error {
	var r streamRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	filters, ok := parseFilters(r.Type)
	if !ok {
		return c.send(seq, invalidFilter, nil)
	}
	s := &eventStream{filters: filters, waiting: make(chan serf.Event, 512)}
	c.server.follow(s, true)
	return c.begin(seq, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-s.waiting:
				if c.sendEvent(seq, e) != nil {
					return
				}
			}
		}
	}, func() { c.server.follow(s, false) })
}

func (c *connection) sendEvent(seq uint64, e serf.Event) error {
	switch e := e.(type) {
	case serf.MemberEvent:
		return c.send(seq, "", &memberEventRecord{e.String(), membersOf(e.Members)})
	case serf.UserEvent:
		return c.send(seq, "", &eventRecord{e.EventType().String(), e.LTime, e.Name, e.Payload, e.Coalesce})
	case *serf.Query:
		return c.send(seq, "", &queryEventRecord{e.EventType().String(), c.await(e), e.LTime, e.Name, e.Payload})
	}
	return nil
}

func (c *connection) query(seq uint64) error {
	var r queryRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	if strings.HasPrefix(r.Name, serf.InternalQueryPrefix) && (r.Name != serf.InternalQueryPrefix+"ping" || r.Payload != nil) {
		return c.send(seq, "Queries cannot contain the '"+serf.InternalQueryPrefix+"' prefix", nil)
	}
	answers, err := c.server.config.Serf.Query(r.Name, r.Payload, &serf.QueryParam{
		FilterNodes: r.FilterNodes, FilterTags: r.FilterTags, RequestAck: r.RequestAck, RelayFactor: r.RelayFactor, Timeout: r.Timeout,
	})
	if err != nil {
		return c.send(seq, err.Error(), nil)
	}
	return c.begin(seq, func(ctx context.Context) {
		// The client reads on until done.
		if c.sendOwn(seq, r) == nil && c.sendAnswers(ctx, seq, r, answers) == nil {
			_ = c.send(seq, "", &queryRecord{Type: "done"})
		}
	}, func() {})
}

// own returns this member's full answer for operators of this host, if the
// query is for this member and has one.
func (c *connection) own(r queryRequest) ([]byte, bool) {
	if !c.server.answers(r.Name) || len(r.FilterNodes) > 0 && !slices.Contains(r.FilterNodes, c.server.name) {
		return nil, false
	}
	tags := c.server.config.Serf.LocalMember().Tags
	for tag, expression := range r.FilterTags {
		if matches, err := regexp.MatchString(expression, tags[tag]); err != nil || !matches {
			return nil, false
		}
	}
	return c.server.config.Answers[r.Name](slices.Clone(r.Payload)), true
}

// sendOwn answers for this member without the ring, which others may have
// filled.
func (c *connection) sendOwn(seq uint64, r queryRequest) error {
	payload, ok := c.own(r)
	if !ok {
		return nil
	}
	return c.send(seq, "", &queryRecord{"response", c.server.name, payload})
}

// sendAnswers passes acknowledgements and answers on until the query's time is
// over. The answer that this member gives to the ring is left out where it has
// one for operators of this host.
func (c *connection) sendAnswers(ctx context.Context, seq uint64, r queryRequest, answers *serf.QueryResponse) error {
	over := time.NewTimer(time.Until(answers.Deadline()))
	defer over.Stop()
	acks, responses := answers.AckCh(), answers.ResponseCh()
	for {
		var record queryRecord
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return nil
		case from, open := <-acks:
			if !open {
				acks = nil
				continue
			}
			record = queryRecord{Type: "ack", From: from}
		case a, open := <-responses:
			if !open {
				responses = nil
				continue
			}
			if a.From == c.server.name && c.server.answers(r.Name) {
				continue
			}
			record = queryRecord{"response", a.From, a.Payload}
		}
		if err := c.send(seq, "", &record); err != nil {
			return err
		}
	}
}

// begin acknowledges a request and streams under its sequence. end follows the
// stream, or the refusal. What the stream follows is followed before begin: an
// event may happen as soon as the client has the acknowledgement.
func (c *connection) begin(seq uint64, run func(context.Context), end func()) error {
	// The acknowledgement comes first: the client's first message of a sequence
	// is one.
	acknowledged := make(chan struct{})
	problem := c.stream(seq, func(ctx context.Context) {
		defer end()
		select {
		case <-acknowledged:
			run(ctx)
		case <-ctx.Done():
		}
	})
	if problem != "" {
		end()
	}
	err := c.send(seq, problem, nil)
	close(acknowledged)
	return err
}
