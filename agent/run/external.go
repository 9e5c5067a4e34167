package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file follows work that a launcher of its own has started. The runner neither starts
// such work nor sees how it ends: the launcher reports the exit code. The grant stays until
// the code is there or the grant is ended, and nothing of the work runs.

// external is the work of a launcher; Runner.mu guards it.
type external struct {
	wanted  shim.Attached
	waiting []chan error // callers that wait until wanted is durable
	changed time.Time    // of the last change or stop: an older sample does not count
	// abandoned: neither the store nor the ledger has the grant any more.
	abandoned bool
}

// Attachment is a change of the work of a launcher. Exactly one field is set.
type Attachment struct {
	Process *shim.Process
	Cgroup  *shim.Group
	Code    *int // the exit code: the work is done
}

// The errors of AttachExternal.
var (
	// ErrStarted: the runner itself starts the member.
	ErrStarted = errors.New("the member has a command, which Muster starts")
	// ErrDone: the member has ended, or its launcher has reported a code, another one where
	// the change has a code.
	ErrDone = errors.New("the end of the member is on record already")
	// ErrMany: the bound shim.MaxAttached is reached.
	ErrMany = fmt.Errorf("a member has at most %d attached processes and %d cgroups", shim.MaxAttached, shim.MaxAttached)
)

// AttachExternal takes a change of a member's work. The caller has seen that the grant is
// held. From the return on the grant counts as running; the channel gets one value once
// the change is durable, or could not be made durable yet. A change that is repeated is no
// error.
func (r *Runner) AttachExternal(tx resource.TxID, member int, a Attachment) (<-chan error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := make(chan error, 1)
	id := identity{tx, member, 0}
	at := slices.IndexFunc(r.tasks[tx], func(t *task) bool { return t.id == id })
	if at < 0 {
		t := r.newTask(id)
		t.external = &external{}
		if err := t.external.take(a); err != nil {
			return nil, err
		}
		t.external.waiting = []chan error{made}
		r.tasks[tx] = append(r.tasks[tx], t)
		r.fresh = append(r.fresh, t)
		wake(r.more)
		return made, nil
	}
	t := r.tasks[tx][at]
	switch {
	case t.external == nil:
		return nil, ErrStarted
	case t.phase == grant.WorkEnded && (a.Code == nil || *a.Code != t.exit.Code):
		return nil, ErrDone
	case t.phase == grant.WorkEnded:
		made <- nil
		return made, nil
	}
	if err := t.external.take(a); err != nil {
		return nil, err
	}
	t.external.waiting = append(t.external.waiting, made)
	t.wake()
	return made, nil
}

// take adds a change to the wanted state.
func (x *external) take(a Attachment) error {
	next := x.wanted
	switch {
	case next.Code != nil && (a.Code == nil || *a.Code != *next.Code):
		return ErrDone
	case a.Code != nil:
		next.Code = a.Code
	case a.Process != nil && !slices.Contains(next.Processes, *a.Process):
		next.Processes = append(slices.Clone(next.Processes), *a.Process)
	case a.Cgroup != nil && !slices.Contains(next.Cgroups, *a.Cgroup):
		next.Cgroups = append(slices.Clone(next.Cgroups), *a.Cgroup)
	}
	if a.Code == nil && (len(next.Processes) > shim.MaxAttached || len(next.Cgroups) > shim.MaxAttached) {
		return ErrMany
	}
	x.wanted, x.changed, x.abandoned = next, time.Now(), false
	return nil
}

// The times between two looks at attached work: while nothing is asked of it, and while its
// end is awaited.
const (
	lookIdle    = 5 * time.Second
	lookClosing = 100 * time.Millisecond
	// codeWait is the time that a launcher has to report the code after its work was asked
	// to end, and has ended.
	codeWait = 2 * time.Second
	// leftAfter is the time after which the log has the processes that a launcher has left
	// behind.
	leftAfter = 10 * time.Second
)

// follower follows the attached work of one member.
type follower struct {
	watch    *shim.Watch
	dirty    bool                  // the folder is behind the wanted state
	asked    map[shim.Process]bool // processes that were there when the end was asked for
	killed   bool
	refused  bool      // the log has that a signal was not sent
	gone     time.Time // since when nothing runs; zero while something does
	doneAt   time.Time // when the code was there first
	leftover bool      // the log has what a launcher has left behind

	noted    shim.Attached // what was attached, with its roots, at the last look
	recorded shim.Use      // by an earlier runner
	carry    shim.Spent    // the part of it that the looks of this runner cannot find
	looked   bool          // carry is known
	written  time.Time     // when the use was written
}

// followExternal takes attached work to its end, or until ctx ends.
func (r *Runner) followExternal(ctx context.Context, t *task) {
	f := &follower{watch: shim.NewWatch(r.config.BootID), asked: map[shim.Process]bool{}}
	r.resumeUse(t, f)
	for ctx.Err() == nil {
		next, ended := r.lookExternal(ctx, t, f)
		if ended {
			return
		}
		pause(ctx, t, next)
	}
	r.writeUse(t, f)
}

// lookExternal looks at attached work once. It returns the time until the next look, or
// that the work has ended.
func (r *Runner) lookExternal(ctx context.Context, t *task, f *follower) (next time.Duration, ended bool) {
	r.mu.Lock()
	x := *t.external
	t.external.waiting = nil
	deadline := t.deadline
	r.mu.Unlock()
	if err := r.noteExternal(t, f, x); err != nil {
		r.log.Error("attached_not_noted", "tx", string(t.id.tx), "member", t.id.member, "error", err, "retry_in", retryAfter)
		return retryAfter, false
	}
	r.set(ctx, t, grant.WorkRunning, shim.Exit{})
	stopping := !deadline.IsZero()
	closing := stopping || x.wanted.Code != nil || x.abandoned
	if !closing && len(x.wanted.Processes) == 0 { // of cgroups alone the present state is enough
		r.noteUse(t, f, x.wanted, f.watch.Look(x.wanted, shim.Sample{}))
		return r.measureEvery, false
	}
	sample, err := r.samples.take(x.changed, closing)
	if err != nil {
		r.log.Error("work_step_failed", "tx", string(t.id.tx), "member", t.id.member, "error", err, "retry_in", retryAfter)
		return retryAfter, false
	}
	look, now := f.watch.Look(x.wanted, sample), r.config.Now()
	r.noteUse(t, f, x.wanted, look)
	if r.keepRoots(t, x.wanted.Processes, look.Roots) {
		f.dirty = true
		return 0, false
	}
	if look.Runs() {
		f.gone = time.Time{}
		if stopping {
			r.endAttached(ctx, t, f, x.wanted, look, !now.Before(deadline))
		} else if x.wanted.Code != nil {
			r.noteLeft(t, f, look, now)
		}
		if closing {
			return lookClosing, false
		}
		return lookIdle, false
	}
	if f.gone.IsZero() {
		f.gone = now
	}
	switch {
	case !closing:
		return lookIdle, false
	case x.wanted.Code == nil && len(f.asked) > 0 && now.Sub(f.gone) < codeWait:
		return lookClosing, false
	}
	return r.endExternal(ctx, t, x.wanted, f)
}

// noteExternal makes durable what callers have attached, and answers them.
func (r *Runner) noteExternal(t *task, f *follower, x external) error {
	if len(x.waiting) == 0 && !f.dirty {
		return nil
	}
	_, err := t.folder.Make()
	if err == nil {
		err = t.folder.HoldRoom()
	}
	if err == nil {
		x.wanted.Before, err = r.spentBefore(t, f, x)
	}
	if err == nil {
		err = t.folder.WriteAttached(x.wanted)
	}
	f.dirty = err != nil
	for _, c := range x.waiting {
		c <- err
	}
	return err
}

// keepRoots replaces the processes that a look has begun with by its roots. It reports
// whether the folder has to follow: there is a new root, whose attached ancestor has ended.
func (r *Runner) keepRoots(t *task, before, roots []shim.Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := t.external
	next := slices.Clone(roots)
	for _, p := range x.wanted.Processes { // attached since
		if !slices.Contains(before, p) {
			next = append(next, p)
		}
	}
	x.wanted.Processes = next
	return slices.ContainsFunc(roots, func(p shim.Process) bool { return !slices.Contains(before, p) })
}

// endAttached asks attached work to end, or kills it. The processes of the first look get
// SIGTERM, and later those that a launcher attaches: a process that the work starts on its
// way to the end, as to save its state, gets none.
func (r *Runner) endAttached(ctx context.Context, t *task, f *follower, a shim.Attached, look shim.Look, kill bool) {
	var failed error
	first := len(f.asked) == 0
	for _, p := range look.Alive {
		switch {
		case kill:
			failed = errors.Join(failed, r.signal(ctx, p, syscall.SIGKILL))
		case first, !f.asked[p] && slices.Contains(a.Processes, p):
			failed = errors.Join(failed, r.signal(ctx, p, syscall.SIGTERM))
		}
		f.asked[p] = true
	}
	if kill {
		f.killed = true
		a.KillGroups(r.config.BootID)
	}
	if failed != nil && !f.refused {
		f.refused = true
		r.log.Warn("attached_work_not_signaled", "tx", string(t.id.tx), "member", t.id.member, "error", failed, "effect", "the grant stays until the work ends by itself")
	}
}

// signal sends a signal to a process of attached work.
func (r *Runner) signal(ctx context.Context, p shim.Process, s syscall.Signal) error {
	err := p.Signal(s)
	if err != nil && r.config.Signal != nil { // it belongs to another user
		err = r.config.Signal(ctx, p, s)
	}
	return err
}

// noteLeft logs once the processes that a launcher has left behind: they keep the grant.
func (r *Runner) noteLeft(t *task, f *follower, look shim.Look, now time.Time) {
	switch {
	case f.doneAt.IsZero():
		f.doneAt = now
	case !f.leftover && now.Sub(f.doneAt) >= leftAfter:
		f.leftover = true
		var pids []int
		for _, p := range look.Alive[:min(len(look.Alive), 10)] {
			pids = append(pids, p.PID)
		}
		r.log.Warn("attached_work_left", "tx", string(t.id.tx), "member", t.id.member, "processes", len(look.Alive), "first", pids, "effect", "the launcher has reported the end; the grant stays until these processes end")
	}
}

// endExternal writes the end of attached work of which nothing runs.
func (r *Runner) endExternal(ctx context.Context, t *task, a shim.Attached, f *follower) (next time.Duration, ended bool) {
	e := shim.Exit{Code: shim.UnknownCode, Reason: shim.Completed, At: time.Now()}
	switch {
	case f.killed:
		e.Reason = shim.Killed
	case len(f.asked) > 0 || a.Code == nil:
		e.Reason = shim.Stopped
	}
	if a.Code != nil {
		e.Code = *a.Code
	} else {
		e.Message = "the launcher has reported no exit code"
	}
	_, err := t.folder.Make()
	if err == nil {
		r.writeUse(t, f)
		err = r.writeEnd(t, e)
	}
	if err != nil {
		r.log.Error("work_step_failed", "tx", string(t.id.tx), "member", t.id.member, "error", err, "retry_in", retryAfter)
		return retryAfter, false
	}
	r.set(ctx, t, grant.WorkEnded, e)
	r.mu.Lock()
	late := t.external.waiting // of callers between the look and the end
	t.external.waiting = nil
	r.mu.Unlock()
	for _, c := range late {
		c <- ErrDone
	}
	return 0, true
}

// setAbandoned says whether attached work of a transaction has no grant any more. It ends
// once nothing of it runs then. Nothing is signaled: no grant says that the work has to end.
func (r *Runner) setAbandoned(tx resource.TxID, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tasks[tx] {
		if t.external != nil && t.external.abandoned != is {
			t.external.abandoned = is
			t.wake()
		}
	}
}

// samples is one look at the processes of the host for all attached work. The zero value is
// useful.
type samples struct {
	mu     sync.Mutex
	at     time.Time
	sample shim.Sample
}

// freshness is the greatest age of a sample that is used again: for work whose end is
// awaited, and for other work.
const (
	freshClosing = lookClosing / 2
	freshIdle    = time.Second
)

// take is a sample that was begun after an instant.
func (s *samples) take(after time.Time, closing bool) (shim.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := freshIdle
	if closing {
		fresh = freshClosing
	}
	if s.at.After(after) && time.Since(s.at) < fresh {
		return s.sample, nil
	}
	at := time.Now()
	sample, err := shim.TakeSample()
	if err == nil {
		s.at, s.sample = at, sample
	}
	return sample, err
}
