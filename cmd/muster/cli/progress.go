package cli

import (
	"fmt"
	"io"
	"time"
)

// progress is one line on a terminal that is written over; elsewhere nothing.
// It appears once patience is over.
type progress struct {
	out   io.Writer // nil without a terminal
	began time.Time
	last  time.Time // when it was last written; zero = not there
}

func (a *app) newProgress() *progress {
	p := &progress{began: time.Now()}
	if isTerminal(a.Stderr) {
		p.out = a.Stderr
		if v, ok := p.out.(*visible); ok { // it erases its own line
			p.out = v.to
		}
	}
	return p
}

// show writes the line, ten times a second at most.
func (p *progress) show(line func() string) {
	const interval = 100 * time.Millisecond
	if p.out == nil || time.Since(p.began) < patience || time.Since(p.last) < interval {
		return
	}
	p.last = time.Now()
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line()) // nothing is lost with it
}

// clear takes the line away.
func (p *progress) clear() {
	if !p.last.IsZero() {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.last = time.Time{}
	}
}

// during shows how long a call takes that reports no progress of its own, until done is
// called.
func (p *progress) during(what string) (done func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer p.clear()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				p.show(func() string { return fmt.Sprintf("%s: %s", what, time.Since(p.began).Round(time.Second)) })
			}
		}
	}()
	return func() { close(over); <-ended }
}
