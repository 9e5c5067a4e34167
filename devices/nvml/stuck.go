//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/devices"
)

// This file lets a watch go on while calls about some cards hang. Each such call is
// left behind with its thread, one for a card at most: nothing else is asked about the
// card until the call returns. Then the cards are discovered anew. While a call is
// left behind the library is not shut down, so cards that are added are not seen.

// stuckCard is a card about which a call hangs.
type stuckCard struct {
	stuckCall
	uuid string // "" where it is not known
}

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
	if i := slices.IndexFunc(w.stuck, func(s stuckCard) bool { return s.question.position == q.position && !s.isOfPair() }); i >= 0 {
		w.stuck[i].stuckCall = call // the last one to return
		return
	}
	w.stuck = append(w.stuck, stuckCard{call, uuid})
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
		if s.isOfPair() {
			skip.pairs = true
			continue
		}
		skip.cards[s.question.position] = s.question
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
