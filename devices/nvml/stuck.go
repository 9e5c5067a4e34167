//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/devices"
)

// This file lets a watch go on while calls about some cards, or its wait for events, hang. Each such call is
// left behind with its thread, one for a card at most: nothing else is asked about the
// card until the call returns. Then the cards are discovered anew. While a call is
// left behind the library is not shut down, so cards that are added are not seen.

// stuckCard is a card about which a call hangs, or a call that is about no single card.
type stuckCard struct {
	stuckCall
	uuid string // "" where it is not known
	// late is the answer of a wait for events, once the call has returned.
	late *occurrence
}

// waitCall is the wait for events. Where it hangs, the cards are polled as ever, and the
// driver records no event until it returns and the library was started anew.
const waitCall = "nvmlEventSetWait"

func (s *stuckCall) isOfWait() bool { return s.question.call == waitCall }

// isOfCard reports whether the call is about one card.
func (s *stuckCall) isOfCard() bool { return !s.isOfPair() && !s.isOfWait() }

// wait waits for an event, not longer than limit. answered is false where the call
// hangs: it is left behind with its set.
func (w *watch) wait(ctx context.Context, limit time.Duration) (o occurrence, answered, ok bool) {
	got := &occurrence{}
	set, asking := w.session.set, w.worker.asking
	answered, ok = w.await(ctx, func() {
		asking(waitCall, nil)
		got.data, got.ret = set.Wait(uint32(max(limit.Milliseconds(), 1)))
	}, func(q *question) bool { return q.call == waitCall }, func(*question) bool {
		call := w.worker.leaveBehind()
		w.employ()
		w.stuck = append(w.stuck, stuckCard{stuckCall: call, late: got})
		w.session.source.stuck.Store(int32(len(w.stuck)))
		w.session.set, w.session.kept = nil, false // the set goes with the library
		w.tellOfDriver(w.waitThatHangs())
		return false
	})
	if !answered || !ok {
		return occurrence{}, answered, ok
	}
	return *got, true, true
}

// waitHangs reports whether a wait for events has been left behind.
func (w *watch) waitHangs() bool {
	return slices.ContainsFunc(w.stuck, func(s stuckCard) bool { return s.isOfWait() })
}

// waitThatHangs says that a wait for events has been left behind, "" where none has.
func (w *watch) waitThatHangs() string {
	for _, s := range w.stuck {
		if s.isOfWait() {
			return "XIDs are not received: " + s.question.silence(time.Now())
		}
	}
	return ""
}

// tellOfDriver reports the call about the driver that hangs, and with "" that it has
// returned.
func (w *watch) tellOfDriver(hangs string) { w.tell(devices.Change{Hangs: &hangs}) }

// pairCall is the call about two cards. Where it hangs, nobody knows because of which of
// them: both are looked after as ever, and no relations are asked until it returns.
const pairCall = "nvmlDeviceGetTopologyCommonAncestor"

func (s *stuckCall) isOfPair() bool { return strings.HasPrefix(s.question.call, pairCall) }

// setAside leaves out a card until the call returns.
func (w *watch) setAside(call stuckCall) {
	q := call.question
	if call.isOfPair() {
		w.stuck = append(w.stuck, stuckCard{stuckCall: call})
		w.session.source.stuck.Store(int32(len(w.stuck)))
		return
	}
	uuid := q.uuid
	if uuid == "" {
		uuid = w.at[q.position]
	}
	if i := slices.IndexFunc(w.stuck, func(s stuckCard) bool { return s.question.position == q.position && s.isOfCard() }); i >= 0 {
		w.stuck[i].stuckCall = call // the last one to return
		return
	}
	w.stuck = append(w.stuck, stuckCard{stuckCall: call, uuid: uuid})
	w.session.source.stuck.Store(int32(len(w.stuck)))
	for _, c := range w.session.cards {
		if c.position == q.position {
			c.stuck = true
		}
	}
	if w.tracker.knows(uuid) {
		w.tracker.forgetUse(uuid)
		w.tell(devices.Change{Events: []devices.Event{{UUID: uuid, Kind: devices.EventHung, Detail: q.silence(time.Now())}}})
	}
}

// takeReturned takes the calls that have returned, and reports whether there are any.
func (w *watch) takeReturned() bool {
	before := len(w.stuck)
	w.stuck = slices.DeleteFunc(w.stuck, func(s stuckCard) bool {
		if !s.returned() {
			return false
		}
		if s.isOfWait() {
			w.tellOfDriver("")
			if n := w.session.judge(*s.late); n.event != nil && n.card == nil { // errors of a card are seen by its counters
				w.tell(w.tracker.heard(*n.event))
			}
		}
		if w.tracker.knows(s.uuid) {
			detail := fmt.Sprintf("%v returned after %s", s.question, rounded(time.Since(s.question.since)))
			w.tell(devices.Change{Events: []devices.Event{{UUID: s.uuid, Kind: devices.EventAnswered, Detail: detail}}})
		}
		return true
	})
	w.session.source.stuck.Store(int32(len(w.stuck)))
	return len(w.stuck) < before
}

// skips are the calls that hang.
type skips struct {
	cards map[int]*question // by the position of their card
	pairs bool              // one is about two cards
}

func (w *watch) skipped() skips {
	skip := skips{cards: make(map[int]*question, len(w.stuck))}
	for _, s := range w.stuck {
		switch {
		case s.isOfPair():
			skip.pairs = true
		case s.isOfCard():
			skip.cards[s.question.position] = s.question
		}
	}
	return skip
}

// look takes a discovery: which cards are at which positions, and about which known
// ones a call hangs. before are the cards of the last discovery.
func (w *watch) look(seen *sighting, before []*card) {
	if w.at == nil {
		w.at = map[int]string{}
	}
	for _, c := range w.session.cards {
		w.at[c.position] = c.device.UUID
	}
	seen.silent = map[string]bool{}
	aside := map[int]bool{}
	for _, s := range w.stuck {
		seen.relationsUnknown = seen.relationsUnknown || s.isOfPair()
		if w.tracker.knows(s.uuid) {
			seen.silent[s.uuid], aside[s.question.position] = true, true
		}
	}
	seen.unknown = slices.DeleteFunc(seen.unknown, func(u devices.Unknown) bool { return aside[u.Position] })
	for _, c := range before { // events name their handles
		if c.stuck && aside[c.position] {
			w.session.cards = append(w.session.cards, c)
		}
	}
}
