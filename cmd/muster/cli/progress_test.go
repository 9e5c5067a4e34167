package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressAppearsWhenItTakesLong(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out, began: time.Now().Add(time.Hour)}
	line := func() string { return "f: 7 scenarios" }
	if p.show(line); out.Len() > 0 {
		t.Errorf("at once: %q", &out)
	}
	p.began = time.Now().Add(-patience)
	p.show(line)
	p.last = time.Now().Add(time.Hour)
	p.show(line) // within the interval
	p.clear()
	p.clear()
	if got, want := out.String(), "\r\x1b[Kf: 7 scenarios\r\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	(&progress{}).show(line) // no terminal
}

func TestProgressShowsHowLongACallTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{out: &out, began: time.Now()}
		done := p.during("waiting")
		time.Sleep(4*time.Second + time.Millisecond)
		synctest.Wait()
		if text := out.String(); !strings.HasSuffix(text, "\r\x1b[Kwaiting: 4s") {
			t.Errorf("after 4 s: %q", text)
		}
		done()
		if text := out.String(); !strings.HasSuffix(text, "waiting: 4s\r\x1b[K") {
			t.Errorf("at the end: %q", text)
		}
		out.Reset()
		p = &progress{out: &out, began: time.Now()}
		p.during("waiting")()
		if out.Len() > 0 {
			t.Errorf("a call that ends at once: %q", out.String())
		}
	})
}
