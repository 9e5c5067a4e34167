//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/devices"
)

// Driver is a host's NVIDIA driver, whether it is there or not, and whether it
// answers or not. It opens the library anew for each discovery and each watch.
//
// One goroutine uses a Driver. No method waits for a call into the library
// beyond its context or limit. A call that hangs keeps its thread for as long as
// it hangs; until a call about a card returns, nothing else is asked about the card,
// and until a call about the driver returns, nothing at all.
type Driver struct {
	path    string
	options options
	// busy is closed once the library has no call of this Driver any more; nil
	// before the first discovery.
	busy  chan struct{}
	told  []string    // the warnings of the last discovery
	stuck []stuckCall // the calls about cards that it left behind
	// unknown are the cards that it did not find usable.
	unknown []devices.Unknown
}

// NewDriver is the driver behind the library at path, "" for the library that
// the dynamic linker finds. It calls nothing.
func NewDriver(path string, opts ...Option) *Driver {
	d := &Driver{path: path}
	for _, apply := range opts {
		apply(&d.options)
	}
	return d
}

// Shares of a discovery's time: a call is left behind after a sixth of it, and
// the last tenth remains for the end of the library.
const (
	stallShare = 6
	endShare   = 10
)

// Discover asks for all GPUs, and for the processes on them, and takes at most limit
// for all calls together. The cards that answered are in Found; the others are
// listed as unknown. Where the driver itself hangs, Found holds no card, and
// Hung names the call. Errors: ctx has ended; ErrNoDriver; the library cannot be
// used.
func (d *Driver) Discover(ctx context.Context, limit time.Duration) (Found, error) {
	began := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	if d.busy != nil {
		select {
		case <-d.busy:
		case <-timer.C:
			return Found{}, fmt.Errorf("discover GPUs: %w", ErrHung)
		case <-ctx.Done():
			return Found{}, ctx.Err()
		}
	}
	v := &visit{results: make(chan visitResult, 1), ended: make(chan struct{})}
	d.busy = v.ended
	go v.run(d.path, d.options, &patience{stall: limit / stallShare, until: began.Add(limit - limit/endShare)})
	select {
	case r := <-v.results:
		return d.leave(ctx, v, r, timer)
	case <-timer.C:
		hung := v.asked.Load().silence(time.Now())
		return Found{
			Inventory: &devices.Inventory{}, Hung: hung,
			Warnings: []string{"the NVIDIA driver hangs: " + hung + ": no GPU is known; they are looked for again once it returns"},
		}, nil
	case <-ctx.Done():
		return Found{}, ctx.Err()
	}
}

// leave waits for the end of a visit whose result is there.
func (d *Driver) leave(ctx context.Context, v *visit, r visitResult, timer *time.Timer) (Found, error) {
	d.told, d.stuck, d.unknown = r.found.Warnings, r.stuck, r.found.Unknown
	if r.err != nil || r.found.Hung != "" {
		return r.found, r.err
	}
	select {
	case <-v.ended:
	case <-timer.C:
		r.found.Hung = v.asked.Load().silence(time.Now())
		r.found.Warnings = append(r.found.Warnings, "the NVIDIA driver hangs: "+r.found.Hung+": the GPUs are not watched until it returns")
	case <-ctx.Done():
		return Found{}, ctx.Err()
	}
	return r.found, nil
}

// visit is one discovery with the library opened for it.
type visit struct {
	asked   atomic.Pointer[question]
	results chan visitResult // capacity 1: the receiver may have gone
	ended   chan struct{}    // closed once the library is closed
}

type visitResult struct {
	found Found
	err   error
	stuck []stuckCall
}

func (v *visit) asking(call string, c *card) { v.asked.Store(ask(call, c)) }

// run visits the library. It lasts as long as the longest call.
func (v *visit) run(path string, o options, p *patience) {
	defer close(v.ended)
	v.asking("", nil)
	source, err := open(path, o, v.asking)
	if err != nil {
		v.results <- visitResult{err: err}
		return
	}
	source.mu.Lock()
	found, err := source.look(p, v.asking)
	source.mu.Unlock()
	found.Hung = p.leftBehind()
	v.results <- visitResult{found, err, p.stuck}
	p.left.Wait()
	v.asking("nvmlShutdown", nil)
	_ = source.stop()  // without a driver there is nothing to shut down
	_ = source.Close() // the watch opens it again, or says why it cannot
}

// Watch looks after the devices until ctx ends, then returns nil: see
// Source.Watch. A card whose call the discovery left behind is looked for again once
// the call has returned. Watch first waits for a call about the driver that a discovery
// left behind, then for a driver that is absent, that hangs at its start or that cannot be used: each
// is reported once, and looked for again every Retry. A driver that comes later
// brings its cards in as new ones.
func (d *Driver) Watch(ctx context.Context, known *devices.Inventory, o WatchOptions, emit func(devices.Change)) error {
	o, err := o.withDefaults()
	if err != nil {
		return fmt.Errorf("watch GPUs: %w", err)
	}
	if d.busy != nil && len(d.stuck) == 0 {
		select {
		case <-d.busy:
		case <-ctx.Done():
			return nil
		}
	}
	start := outset{warnings: d.told, absent: o.Absent, unknown: d.unknown}
	last := ""
	for {
		source, err := d.openWithin(ctx, o.HangAfter, emit)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			err = source.watch(ctx, known, o, start, d.stuck, emit)
			return errors.Join(err, closed(source))
		}
		if text := explain(err); text != last {
			last = text
			emit(start.absence(known, err, text))
		}
		if !rest(ctx, o.Retry) {
			return nil
		}
	}
}

// absence reports a driver that is not there, or that cannot be used.
func (s *outset) absence(known *devices.Inventory, err error, text string) devices.Change {
	var c devices.Change
	if !errors.Is(err, ErrNoDriver) {
		c.Warnings = append(c.Warnings, "the NVIDIA driver cannot be used, and is tried again: "+text)
	}
	if !s.gone && len(known.Devices) > 0 {
		s.gone = true
		c.Events = append(c.Events, devices.Event{Kind: devices.EventDriverGone, Detail: text})
	}
	return c
}

// closed closes a source whose watch has ended. A call that hangs keeps it open.
func closed(s *Source) error {
	if err := s.Close(); !errors.Is(err, ErrHung) {
		return err
	}
	return nil
}

// openWithin opens the library. While a call hangs it reports so and waits.
func (d *Driver) openWithin(ctx context.Context, hangAfter time.Duration, emit func(devices.Change)) (*Source, error) {
	type result struct {
		source *Source
		err    error
	}
	var asked atomic.Pointer[question]
	results := make(chan result, 1)
	asked.Store(ask("", nil))
	go func() {
		source, err := open(d.path, d.options, func(call string, c *card) { asked.Store(ask(call, c)) })
		results <- result{source, err}
	}()
	timer := time.NewTimer(hangAfter)
	defer timer.Stop()
	hung := false
	for {
		select {
		case r := <-results:
			if hung {
				emit(devices.Change{Events: []devices.Event{{Kind: devices.EventAnswered, Detail: asked.Load().String() + " has returned"}}})
			}
			return r.source, r.err
		case <-timer.C:
			hung = true
			emit(devices.Change{Events: []devices.Event{{Kind: devices.EventHung, Detail: asked.Load().silence(time.Now())}}})
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
