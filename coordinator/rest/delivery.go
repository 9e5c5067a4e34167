package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// This file writes answers to their readers. A reader that takes nothing is cut,
// sooner while others wait for the room that its answer holds.

const (
	// piece is how much of an answer is written at a time, in bytes.
	piece = 32 << 10
	// smallAnswer is the length up to which an answer other than a list needs no
	// room, in bytes.
	smallAnswer = 64 << 10
	// stallTimeout is how long a reader may take nothing.
	stallTimeout = 5 * time.Second
	// stallUnderPressure is stallTimeout while another answer waits for room.
	stallUnderPressure = time.Second
)

// errCut is the end of an answer that gave way to another.
var errCut = errors.New("the reader took nothing while other answers waited for room")

// deliveries are the answers that are being written, and their room.
type deliveries struct {
	room *semaphore.Weighted // in bytes
	// cut is called for each answer that its reader did not take.
	cut func()

	mu   sync.Mutex
	open map[*delivery]struct{}
}

// delivery is an answer on its way to its reader.
type delivery struct {
	of      *deliveries
	w       http.ResponseWriter
	conn    net.Conn // below TLS; nil where unknown
	control *http.ResponseController
	until   time.Time // the end of the whole answer

	// Under of.mu.
	held  int64     // bytes of of.room
	moved time.Time // when the reader last took something
	cut   bool
}

func newDeliveries(cut func()) *deliveries {
	return &deliveries{room: semaphore.NewWeighted(maxAnswers), cut: cut, open: map[*delivery]struct{}{}}
}

// take reserves n bytes for an answer. Where there is no room, readers that
// take nothing give way, and it waits for roomWithin at most.
func (d *deliveries) take(ctx context.Context, n int64) bool {
	if d.room.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	for ctx.Err() == nil {
		d.makeRoom(n)
		soon, stop := context.WithTimeout(ctx, stallUnderPressure/8)
		err := d.room.Acquire(soon, n)
		stop()
		if err == nil {
			return true
		}
	}
	return false
}

// makeRoom cuts answers of n bytes together whose readers have taken nothing
// for stallUnderPressure, the longest first.
func (d *deliveries) makeRoom(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for one := range d.open {
		if one.cut {
			n -= one.held // on its way
		}
	}
	for now := time.Now(); n > 0; {
		var worst *delivery
		for one := range d.open {
			if !one.cut && one.held > 0 && (worst == nil || one.moved.Before(worst.moved)) {
				worst = one
			}
		}
		if worst == nil || now.Sub(worst.moved) < stallUnderPressure {
			return
		}
		worst.cut = true
		n -= worst.held
		_ = worst.control.SetWriteDeadline(now) // ends the write; a test recorder has none
	}
}

// begin starts to write an answer for which held bytes are reserved. The caller
// calls end.
func (d *deliveries) begin(w http.ResponseWriter, conn net.Conn, held int64) *delivery {
	now := time.Now()
	one := &delivery{of: d, w: w, conn: conn, control: http.NewResponseController(w), until: now.Add(writeTimeout), held: held, moved: now}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[one] = struct{}{}
	one.extend(now)
	return one
}

// allow gives the whole answer within from now, where it is not 0.
func (one *delivery) allow(within time.Duration) {
	if within == 0 {
		return
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.until = time.Now().Add(within)
}

// extend gives the reader time for the next piece.
func (one *delivery) extend(now time.Time) {
	one.moved = now
	end := now.Add(stallTimeout)
	if one.until.Before(end) {
		end = one.until
	}
	// A test recorder has no deadline to set, hence the ignored error.
	_ = one.control.SetWriteDeadline(end)
}

// Write writes b piece by piece.
func (one *delivery) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		if !one.next() {
			one.of.cut()
			return n, errCut
		}
		var wrote int
		wrote, err = one.w.Write(b[:min(piece, len(b))])
		n += wrote
		b = b[wrote:]
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		one.of.cut()
	}
	return n, err
}

// next reports whether the next piece may be written.
func (one *delivery) next() bool {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if !one.cut {
		one.extend(time.Now())
	}
	return !one.cut
}

// hangUp closes the connection of a reader that does not take its answer. An
// end by TLS would first wait 5 s for the reader to take the word of it.
func (one *delivery) hangUp() {
	if one.conn != nil {
		_ = one.conn.Close() // there is nothing more to say
	}
}

// release gives back up to n bytes of the room of the bytes that have been
// written.
func (one *delivery) release(n int64) {
	one.of.mu.Lock()
	n = min(n, one.held)
	one.held -= n
	one.of.mu.Unlock()
	one.of.room.Release(n)
}

// end gives back all room. The answer is not cut after it.
func (one *delivery) end() {
	one.of.mu.Lock()
	held := one.held
	one.held = 0
	delete(one.of.open, one)
	one.of.mu.Unlock()
	one.of.room.Release(held)
}
