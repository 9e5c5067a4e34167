package rest

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// The whole room of answers is taken, given back piece by piece and at the end,
// and taken again, and readers give way at the exact end of the time, the longest first.
func TestTheRoomOfAnswersIsFreeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := 0
		d := newDeliveries(func() { cut++ })
		takes := func(n int64) bool {
			if !d.room.TryAcquire(n) {
				return false
			}
			d.room.Release(n)
			return true
		}
		begin := func(held int64) *delivery {
			if held > 0 && !d.take(t.Context(), held) {
				t.Fatalf("there is no room for %d bytes", held)
			}
			return d.begin(httptest.NewRecorder(), nil, held)
		}
		one := begin(maxAnswers)
		if takes(1) {
			t.Error("there is room beside an answer of all of it")
		}
		one.release(3)
		if !takes(3) || takes(4) {
			t.Error("three bytes were given back, and other room is free")
		}
		one.release(2 * maxAnswers) // more than is held
		if one.end(); !takes(maxAnswers) || takes(maxAnswers+1) {
			t.Error("the room is not free once after the end")
		}
		if one.end(); takes(maxAnswers + 1) {
			t.Error("the second end gives room back again")
		}

		idle, long, later := begin(0), begin(maxAnswers/2), begin(0)
		_ = idle
		time.Sleep(time.Millisecond)
		later.end()
		later = begin(maxAnswers / 2)
		time.Sleep(stallUnderPressure - time.Millisecond - 1)
		if d.makeRoom(1); long.cut {
			t.Error("a reader is cut before its time")
		}
		time.Sleep(1)
		d.makeRoom(1)
		if !long.cut || later.cut || idle.cut {
			t.Errorf("cut: the longest %v, the later %v, one without room %v; want the longest alone", long.cut, later.cut, idle.cut)
		}
		time.Sleep(time.Hour)
		if d.makeRoom(maxAnswers / 2); later.cut {
			t.Error("a reader is cut for room that is on its way")
		}
		if n, err := long.Write([]byte("x")); n != 0 || err == nil || cut != 1 {
			t.Errorf("the answer that was cut is written: %d bytes, %v", n, err)
		}
		if _, err := later.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		long.end()
		if d.makeRoom(maxAnswers); later.cut {
			t.Error("a reader is cut that has just taken a piece")
		}
		if !takes(maxAnswers / 2) {
			t.Error("the room of the answer that was cut is not free")
		}
		later.end()
		later.end() // gives room back once
		two := []*delivery{begin(maxAnswers / 2), begin(maxAnswers / 2)}
		time.Sleep(time.Hour)
		if d.makeRoom(1); two[0].cut == two[1].cut {
			t.Errorf("for a byte both readers are cut, or neither: %v", two[0].cut)
		}
		two[0].end()
		two[1].end()
		if d.makeRoom(maxAnswers); len(d.open) != 1 || !takes(maxAnswers) {
			t.Errorf("%d answers are open, want the one without room", len(d.open))
		}
	})
}
