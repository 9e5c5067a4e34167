//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/devices"
)

const (
	// waitSlice is how long one wait for events blocks its thread.
	waitSlice = time.Second
	// leaveAfter is how long the end of a watch waits for a call that has not
	// yet hung.
	leaveAfter = 2 * time.Second
	// mostEvents bounds the events that are taken between two polls.
	mostEvents = 256
)

// Watch looks after the devices until ctx ends, then returns nil. known is the
// inventory that the caller has, nil for none; each change from then on
// is handed to emit, from the calling goroutine. Each change is reported once:
//
//   - XIDs as the driver reports them. Those with UUID "" could not be ascribed.
//   - Risen counters of ECC errors, pages or rows that wait for a reset, rows
//     that could not be remapped, and that nothing of it is left. The counts
//     that the first reading finds are where counting begins.
//   - A card that is lost (it answers so, it needs a reset before it can be
//     used, or a discovery does not find it), and its return. It keeps its place
//     in the inventory.
//   - New cards and MIG instances, as an inventory. Events and errors of a MIG
//     instance are those of its card.
//   - A driver that is unloaded, replaced or fails to start; then nothing until
//     it is back, and then the changes of the meantime.
//   - A question that the driver does not answer within HangAfter, and its
//     answer. Of a question about a card, the other cards are looked after meanwhile,
//     and nothing else is asked about the card; of the wait for events, all cards are
//     polled meanwhile, and XIDs are not received; of another one about the driver, no
//     other call is made into the library.
//
// The library stays started throughout, since the driver records XIDs, and
// without persistence mode keeps error counters, for those alone that have it
// open. The kernel module is in use that long: end the watch, and close the
// Source, to unload it or to reset a GPU.
//
// While a Watch runs a second one, and Close, are refused; Discover sees the
// cards of the last rediscovery. ctx ends the watch also while a call hangs.
// That call is left behind, and until it returns Watch, Discover and Close
// answer ErrHung.
func (s *Source) Watch(ctx context.Context, known *devices.Inventory, o WatchOptions, emit func(devices.Change)) error {
	o, err := o.withDefaults()
	if err != nil {
		return fmt.Errorf("watch GPUs: %w", err)
	}
	return s.watch(ctx, known, o, outset{absent: o.Absent}, nil, emit)
}

// watch is Watch after the reports of start. stuck are calls about cards that were left
// behind before.
func (s *Source) watch(ctx context.Context, known *devices.Inventory, o WatchOptions, start outset, stuck []stuckCall, emit func(devices.Change)) error {
	if known == nil {
		known = &devices.Inventory{}
	}
	if err := known.Validate(); err != nil {
		return fmt.Errorf("watch GPUs: known inventory: %w", err)
	}
	told, err := s.beginWatch()
	if err != nil {
		return fmt.Errorf("watch GPUs through %s: %w", s.path, err)
	}
	if start.warnings == nil {
		start.warnings = told
	}
	w := &watch{options: o, tracker: newTracker(known, start), emit: emit, session: &session{source: s}}
	w.employ()
	for _, call := range stuck {
		if !call.returned() && call.question.position >= 0 {
			w.setAside(call)
		}
	}
	w.run(ctx)
	w.leave()
	return nil
}

// watch is one Watch while it runs. All but the worker's jobs is the calling
// goroutine's.
type watch struct {
	options WatchOptions
	tracker *tracker
	emit    func(devices.Change)
	worker  *worker
	session *session  // the jobs'
	hung    *question // reported as hung; nil while the driver answers
	faults  []string  // the last reported reason why events cannot arrive
	stuck   []stuckCard
	// lastCards are those of the last discovery.
	lastCards []*card
	at        map[int]string // UUIDs of the cards, by their positions when last seen
}

// employ starts a worker.
func (w *watch) employ() {
	w.worker = startWorker(w.session.source)
	w.session.asking = w.worker.asking
}

func (w *watch) tell(c devices.Change) {
	if !c.IsZero() {
		w.emit(c)
	}
}

// run connects and attends to the cards in turn.
func (w *watch) run(ctx context.Context) {
	for {
		connected, ok := w.connect(ctx)
		switch {
		case !ok:
			return
		case connected:
			ok = w.attend(ctx)
		default:
			ok = rest(ctx, w.options.Poll)
		}
		if !ok {
			return
		}
	}
}

// connect starts the library and reports the result of a discovery. A call about a
// card that hangs is left behind.
func (w *watch) connect(ctx context.Context) (connected, ok bool) {
	var seen sighting
	var err error
	known, skip, before := w.tracker.addresses(), w.skipped(), w.lastCards
	p := &patience{stall: w.options.HangAfter, relay: true}
	ok = w.askPatiently(ctx, func() { seen, err = w.session.connect(known, skip, p) })
	switch {
	case !ok:
		return false, false
	case err != nil:
		w.tell(w.tracker.driverGone(explain(err)))
		return false, true
	}
	for _, call := range p.stuck {
		if !call.returned() && call.question.position >= 0 {
			w.setAside(call)
		}
	}
	w.look(&seen, before)
	w.lastCards = w.session.cards
	w.tell(w.tracker.found(seen))
	return true, true
}

// attend polls and hears events until a rediscovery is due or the driver goes,
// and shuts the library down. Times count from the end of a poll, so that a
// slow driver leaves time for events, and those recorded during a poll are
// received before the end.
func (w *watch) attend(ctx context.Context) (ok bool) {
	there, ok := w.poll(ctx)
	start := time.Now()
	poll, rediscover := start.Add(w.options.Poll), start.Add(w.options.Rediscover)
	last := event    // of the hearings since the poll
	hurried := false // a poll was put forward since the last regular one
	heard := 0       // events since the poll
	for ok && there && !w.takeReturned() && (last == event || time.Now().Before(rediscover)) {
		if !time.Now().Before(poll) || w.hurried() {
			there, ok = w.poll(ctx)
			poll, last, hurried, heard = time.Now().Add(w.options.Poll), event, false, 0
			continue
		}
		last, ok = w.hear(ctx, min(time.Until(poll), time.Until(rediscover)))
		there = last != gone
		if last == event {
			heard++
		}
		if ok && heard > mostEvents {
			ok = w.flooded(ctx)
			last, heard, hurried = silence, 0, true
		}
		// A set fails when a card is lost: see which, and listen to the others.
		if ok && last == deaf && !hurried {
			there, ok = w.poll(ctx)
			last, hurried = event, true
		}
	}
	return ok && w.ask(ctx, w.session.disconnect)
}

// flooded stops listening until the next poll: a driver that never runs out of
// events would keep a core busy.
func (w *watch) flooded(ctx context.Context) (ok bool) {
	w.tell(devices.Change{Warnings: []string{
		fmt.Sprintf("nvmlEventSetWait: more than %d events since the last poll: further ones are not heard until the next", mostEvents),
	}})
	return w.ask(ctx, w.session.deafen)
}

// hearing is the outcome of a wait for events.
type hearing uint8

const (
	silence hearing = iota
	event           // there may be more
	deaf            // events cannot arrive any more
	gone            // nor can any other answer
)

// poll reads every card and listens for events if it did not.
func (w *watch) poll(ctx context.Context) (there, ok bool) {
	for _, c := range w.session.cards {
		if c.stuck {
			continue
		}
		r, answered, ok := w.read(ctx, c)
		if !ok {
			return true, false
		}
		if !answered {
			continue
		}
		if w.tell(w.tracker.read(r)); r.gone != "" {
			return false, true
		}
	}
	if w.session.set != nil || w.waitHangs() {
		return true, true
	}
	return true, w.listen(ctx)
}

// read asks one card. answered is false where a call about the card hangs.
func (w *watch) read(ctx context.Context, c *card) (r reading, answered, ok bool) {
	mine, seen, asking := *c, w.session.seen, w.worker.asking // a call that is left behind writes into no card that others read
	var got reading
	answered, ok = w.askAbout(ctx, func() { got = readCard(seen.fork(asking), &mine) })
	if !answered || !ok {
		return r, answered, ok
	}
	c.device.MIG, c.lost, c.lostBy = mine.device.MIG, mine.lost, mine.lostBy
	return got, true, true
}

// listen has the driver record events of all cards but those about which a call
// hangs, and reports what keeps it from that.
func (w *watch) listen(ctx context.Context) (ok bool) {
	var faults []string
	if ok := w.ask(ctx, func() { faults = w.session.beginListening() }); !ok {
		return false
	}
	set := w.session.set
	for _, c := range w.session.cards {
		if c.stuck || set == nil {
			continue
		}
		mine, seen, asking := *c, w.session.seen, w.worker.asking
		var fault string
		answered, ok := w.askAbout(ctx, func() { fault = register(seen.fork(asking), &mine, set) })
		switch {
		case !ok:
			return false
		case !answered:
			w.session.kept = true
		case fault != "":
			faults = append(faults, fault)
		}
	}
	if !slices.Equal(faults, w.faults) {
		w.faults = faults
		w.tell(devices.Change{Warnings: faults})
	}
	return true
}

// hurried takes a wish for a poll.
func (w *watch) hurried() bool {
	select {
	case <-w.options.Hurry:
		return true
	default:
		return false
	}
}

// hear waits for an event, or rests where none can arrive.
func (w *watch) hear(ctx context.Context, limit time.Duration) (last hearing, ok bool) {
	if w.session.set == nil {
		return silence, rest(ctx, min(limit, waitSlice))
	}
	slice, began := min(limit, waitSlice, w.options.HangAfter/2), time.Now()
	o, answered, ok := w.wait(ctx, slice)
	if !answered || !ok {
		return silence, ok
	}
	n := w.session.judge(o)
	if n == (notice{}) {
		// A driver that does not wait must not keep a core busy.
		return silence, rest(ctx, min(slice, 50*time.Millisecond)-time.Since(began))
	}
	switch {
	case n.gone != "":
		w.tell(w.tracker.driverGone(n.gone))
		return gone, true
	case n.fault != "":
		return deaf, w.ask(ctx, w.session.deafen)
	case n.card != nil:
		there, ok := w.doubleBit(ctx, n)
		if !there {
			return gone, ok
		}
		return event, ok
	}
	w.tell(w.tracker.heard(*n.event))
	return event, true
}

// doubleBit reports a double-bit error by the card's counter, at once instead of
// at the next poll. Where the card does not report its counter, the event stands
// for itself.
func (w *watch) doubleBit(ctx context.Context, n notice) (there, ok bool) {
	var r reading
	if !n.card.stuck {
		var answered bool
		if r, answered, ok = w.read(ctx, n.card); !ok {
			return true, false
		}
		if answered {
			w.tell(w.tracker.read(r))
		}
	}
	if r.uncorrected == nil && r.lost == "" && r.gone == "" {
		w.tell(w.tracker.heard(*n.event))
	}
	return r.gone == "", true
}

// ask has the worker do a job and waits for it, telling if a question in it
// hangs and when it is answered. Not ok means that ctx has ended, and the job
// may still run.
func (w *watch) ask(ctx context.Context, job func()) (ok bool) {
	_, ok = w.await(ctx, job, func(*question) bool { return false }, nil)
	return ok
}

// askPatiently is ask for a job that leaves its calls about cards behind by itself.
func (w *watch) askPatiently(ctx context.Context, job func()) (ok bool) {
	_, ok = w.await(ctx, job, func(q *question) bool { return q.position >= 0 }, func(*question) bool { return true })
	return ok
}

// askAbout is ask for a job about one card. Where a call about the card hangs, the card
// is set aside, the worker is left behind, and the job is not answered: it may still
// run, and nobody reads its results.
func (w *watch) askAbout(ctx context.Context, job func()) (answered, ok bool) {
	return w.await(ctx, job, func(q *question) bool { return q.position >= 0 }, func(*question) bool {
		call := w.worker.leaveBehind()
		w.employ()
		w.setAside(call)
		return false
	})
}

// waitOn reports that a question hangs, and has the watch wait for its answer.
func (w *watch) waitOn(q *question) {
	q.hung.Store(true)
	w.hung = q
	w.tellOf(q, devices.EventHung, q.silence(time.Now()))
	if q.position < 0 {
		w.tellOfDriver(q.silence(time.Now()))
	}
}

// await has the worker do a job and waits for it. A question that hangs is reported,
// but for those of which isPart is true: onPart decides whether to wait on. answered is
// false where it decides against that.
func (w *watch) await(ctx context.Context, job func(), isPart, onPart func(*question) bool) (answered, ok bool) {
	done := make(chan struct{})
	w.worker.asking("", nil)
	select {
	case <-w.worker.moved:
	default:
	}
	w.worker.jobs <- func() { defer close(done); job() }
	timer := time.NewTimer(w.options.HangAfter)
	defer timer.Stop()
	for {
		select {
		case <-done:
			w.answered()
			return true, ctx.Err() == nil
		case <-w.worker.moved:
			w.answered()
			timer.Reset(w.options.HangAfter)
		case <-timer.C:
			q := w.worker.asked.Load()
			if left := w.options.HangAfter - time.Since(q.since); left > 0 {
				timer.Reset(left)
				continue
			}
			if isPart(q) {
				if !onPart(q) {
					return false, ctx.Err() == nil
				}
				timer.Reset(w.options.HangAfter)
				continue
			}
			w.waitOn(q)
			if w.worker.asked.Load() != q { // it moved on before it was marked
				w.answered()
				timer.Reset(w.options.HangAfter)
			}
		case <-ctx.Done():
			return false, false
		}
	}
}

// answered reports that the question that hung was answered.
func (w *watch) answered() {
	if w.hung == nil {
		return
	}
	w.tellOf(w.hung, devices.EventAnswered, fmt.Sprintf("%v returned after %s", w.hung, rounded(time.Since(w.hung.since))))
	if w.hung.position < 0 {
		w.tellOfDriver(w.waitThatHangs())
	}
	w.hung = nil
}

// tellOf reports an event about a question. Of a card that the caller does not
// know yet, it is about the driver.
func (w *watch) tellOf(q *question, kind devices.EventKind, detail string) {
	uuid := q.uuid
	if !w.tracker.knows(uuid) {
		uuid = ""
	}
	if kind == devices.EventHung {
		w.tracker.forgetUse(uuid)
	}
	w.tell(devices.Change{Events: []devices.Event{{UUID: uuid, Kind: kind, Detail: detail}}})
}

// leave ends the worker, or leaves it behind with the call that it is stuck in. The
// library is shut down once all calls have returned.
func (w *watch) leave() {
	s := w.session.source
	stuck := slices.DeleteFunc(w.stuck, func(c stuckCard) bool { return c.returned() })
	over := make(chan struct{})
	close(w.worker.jobs)
	go func() { // ends with the last call
		defer close(over)
		<-w.worker.ended
		for _, c := range stuck {
			<-c.done
		}
		s.mu.Lock()
		s.stuck.Store(0)
		w.session.disconnect()
		s.mu.Unlock()
		s.endWatch()
	}()
	grace := time.NewTimer(leaveAfter)
	defer grace.Stop()
	if w.hung != nil || len(stuck) > 0 {
		grace.Reset(0)
	}
	select {
	case <-over:
	case <-grace.C:
		s.watching.CompareAndSwap(watched, leftBehind)
	}
}

// rest waits; false means that ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
