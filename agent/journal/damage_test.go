package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// damages are the kinds of damage to the bytes of a file. Each returns the
// damaged bytes; offsets are those behind the header and behind each record.
var damages = map[string]func(r *rand.Rand, data []byte, offsets []int) []byte{
	"truncated": func(r *rand.Rand, data []byte, _ []int) []byte { return data[:r.IntN(len(data))] },
	"truncated between records": func(r *rand.Rand, data []byte, offsets []int) []byte {
		return data[:offsets[r.IntN(len(offsets))]]
	},
	"bits flipped": func(r *rand.Rand, data []byte, offsets []int) []byte {
		for range 1 + r.IntN(3) {
			data[r.IntN(offsets[len(offsets)-1])] ^= 1 << r.IntN(8)
		}
		return data
	},
	"records swapped": func(r *rand.Rand, data []byte, offsets []int) []byte {
		a, b := r.IntN(len(offsets)-1), r.IntN(len(offsets)-1)
		if a > b {
			a, b = b, a
		}
		if a == b {
			return data
		}
		return slices.Concat(data[:offsets[a]], data[offsets[b]:offsets[b+1]], data[offsets[a+1]:offsets[b]], data[offsets[a]:offsets[a+1]], data[offsets[b+1]:])
	},
	"a record twice": func(r *rand.Rand, data []byte, offsets []int) []byte {
		a, to := r.IntN(len(offsets)-1), r.IntN(len(offsets))
		return slices.Concat(data[:offsets[to]], data[offsets[a]:offsets[a+1]], data[offsets[to]:])
	},
	"a record missing": func(r *rand.Rand, data []byte, offsets []int) []byte {
		if len(offsets) < 3 {
			return data
		}
		a := r.IntN(len(offsets) - 2) // without the last the file is whole
		return slices.Concat(data[:offsets[a]], data[offsets[a+1]:])
	},
	"sectors swapped": func(r *rand.Rand, data []byte, offsets []int) []byte {
		a, b := sector(r, offsets), sector(r, offsets)
		for i := range sectorSize {
			data[a+i], data[b+i] = data[b+i], data[a+i]
		}
		return data
	},
	"a sector twice": func(r *rand.Rand, data []byte, offsets []int) []byte {
		copy(data[sector(r, offsets):][:sectorSize], data[sector(r, offsets):])
		return data
	},
	"a page never written": func(r *rand.Rand, data []byte, offsets []int) []byte {
		at := r.IntN(offsets[len(offsets)-1]) / pageSize * pageSize
		clear(data[max(at, headerSize):min(at+pageSize, len(data))])
		return data
	},
	"garbage behind": func(r *rand.Rand, data []byte, offsets []int) []byte {
		for i := range 1 + r.IntN(100) {
			data[offsets[len(offsets)-1]+i] = byte(r.Uint32())
		}
		return data
	},
}

const sectorSize = 512

func sector(r *rand.Rand, offsets []int) int {
	return r.IntN(offsets[len(offsets)-1]/sectorSize+1) * sectorSize
}

// After any damage to the file, Open refuses it with the way on, or recovers a
// prefix of the history, and where that lacks a record, under a new identifier:
// then no vote of a lost promise counts any more. The agent that goes on from
// there owns the grants that the store lists, and gives none of their devices
// out again.
func TestDamagedJournalOfALedgerNeverGivesOneThingTwice(t *testing.T) {
	host, lock := gpuHost(t), t.TempDir()
	lives := 20
	if testing.Short() {
		lives = 4
	}
	refused, cut := 0, 0
	for seed := range uint64(lives) {
		h := live(t, lock, host, seed, 60)
		data := h.disk.names[fileName].now
		img, err := parse(data)
		must(t, err)
		offsets := []int{headerSize}
		for _, p := range img.payloads {
			offsets = append(offsets, offsets[len(offsets)-1]+recordHeader+len(p))
		}
		for _, name := range slices.Sorted(maps.Keys(damages)) {
			for range 4 {
				damaged := damages[name](h.r, bytes.Clone(data), offsets)
				j, r, err := Open(lock, Options{FS: onDisk(damaged), Headroom: testHeadroom})
				if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
					refused++
					continue
				}
				if err != nil {
					t.Fatalf("life %d, %s: %v", seed, name, err)
				}
				n := len(r.Payloads)
				if n > len(h.payloads) || !slices.EqualFunc(r.Payloads, h.payloads[:n], bytes.Equal) {
					t.Fatalf("life %d, %s: %d records are no prefix of the %d", seed, name, n, len(h.payloads))
				}
				boot := "boot"
				if n < len(h.payloads) {
					cut++
					if r.JournalID == h.journal.ID() {
						// Zeros behind a whole record: only the end of the
						// operating system does that.
						if name != "a page never written" || !allZero(damaged[offsets[n]:]) {
							t.Fatalf("life %d, %s: %d of %d records under the same identifier", seed, name, n, len(h.payloads))
						}
						boot = "next boot"
					}
				}
				h.goOn(fmt.Sprintf("life %d, %s", seed, name), r, boot)
				must(t, j.Close())
			}
		}
	}
	if refused == 0 || cut == 0 {
		t.Errorf("%d files were refused, %d recovered in part", refused, cut)
	}
}

// goOn is the agent after a recovery: replay, start, register with the store's
// list (all that was HELD), and take new work until the host is full.
func (h *history) goOn(what string, r *Recovery, boot string) {
	l := ledger.New(h.host)
	if err := l.Replay(r.Payloads); err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
	if l.Hash() != h.hashes[len(r.Payloads)] {
		h.t.Fatalf("%s: after %d records the hash is %x, the live ledger had %x", what, len(r.Payloads), l.Hash(), h.hashes[len(r.Payloads)])
	}
	run := func(c ledger.Command) ledger.Reply {
		reply, events := l.Decide(h.now, c)
		for _, e := range events {
			if err := l.Apply(e); err != nil {
				h.t.Fatalf("%s: %+v: %v", what, c, err)
			}
		}
		if err := l.Check(); err != nil {
			h.t.Fatalf("%s: %v", what, err)
		}
		return reply
	}
	run(ledger.Start{Incarnation: resource.Incarnation{JournalID: r.JournalID, BootID: boot}})
	whole := len(r.Payloads) == len(h.payloads) && r.JournalID == h.journal.ID()
	if reply := run(h.reserve("early")); (len(reply.Reasons) > 0 && reply.Reasons[0].Code == resource.ReasonUnregistered) == whole {
		h.t.Fatalf("%s: a promise before registration: %+v", what, reply)
	}
	if !whole {
		var listed []ledger.Record
		for _, g := range h.ledger.Snapshot().Grants {
			if g.State == grant.Held {
				listed = append(listed, ledger.Record{Tx: g.Tx, Unit: g.Unit, Epoch: g.Epoch, State: grant.RecordCommitted, Members: g.Members, Revision: 9})
			}
		}
		for _, alarm := range run(ledger.Registered{Revision: 10, Records: listed}).Alarms {
			if !strings.Contains(alarm, "gives way") {
				h.t.Fatalf("%s: %s", what, alarm)
			}
		}
	}
	for i := range 6 {
		run(h.reserve(resource.TxID(fmt.Sprint("new-", i))))
	}
	owner := map[string]resource.TxID{}
	for _, g := range h.ledger.Snapshot().Grants {
		if g.State != grant.Held {
			continue
		}
		if kept, _ := l.Lookup(g.Tx); kept.State != grant.Held {
			h.t.Fatalf("%s: %s was HELD and is %s", what, g.Tx, kept.State)
		}
		for _, x := range exclusive(g) {
			owner[x] = g.Tx
		}
	}
	for i := range 6 {
		g, _ := l.Lookup(resource.TxID(fmt.Sprint("new-", i)))
		for _, x := range exclusive(g) {
			if before, ok := owner[x]; ok {
				h.t.Fatalf("%s: %s of %s is given out again", what, x, before)
			}
		}
	}
}

// exclusive names the CPUs, whole GPUs and instances that a grant has.
func exclusive(g ledger.Grant) []string {
	var names []string
	for _, m := range g.Members {
		for _, c := range m.Assignment.CPUs {
			names = append(names, fmt.Sprint("cpu ", c.ID))
		}
		for _, d := range m.Assignment.GPUs {
			if d.Milli == resource.WholeDevice {
				names = append(names, d.UUID)
			}
		}
		for _, d := range m.Assignment.MIG {
			names = append(names, d.UUID)
		}
	}
	return names
}
