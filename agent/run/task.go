package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// identity names one start of one member.
type identity struct {
	tx      resource.TxID
	member  int
	restart int
}

// name is the name of its folder: TX.MEMBER.RESTART.
func (i identity) name() string {
	return fmt.Sprintf("%s.%d.%d", url.PathEscape(string(i.tx)), i.member, i.restart)
}

// parseName reads what name made.
func parseName(name string) (identity, error) {
	bad := func() (identity, error) {
		return identity{}, fmt.Errorf("folder %q: want TRANSACTION.MEMBER.RESTART", name)
	}
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return bad()
	}
	before := strings.LastIndexByte(name[:at], '.')
	if before < 1 {
		return bad()
	}
	tx, err1 := url.PathUnescape(name[:before])
	member, err2 := strconv.Atoi(name[before+1 : at])
	restart, err3 := strconv.Atoi(name[at+1:])
	i := identity{resource.TxID(tx), member, restart}
	if errors.Join(err1, err2, err3) != nil || member < 0 || restart < 0 || i.name() != name {
		return bad()
	}
	return i, nil
}

// task is one start of one member. Runner.mu guards what stands below it.
type task struct {
	id     identity
	folder shim.Folder
	woken  chan struct{} // capacity 1: spec or deadline has changed

	external *external // work of a launcher; nil: the runner starts it
	member   *Member   // nil: found by Open, and nobody has asked for its start since
	phase    grant.WorkPhase
	exit     shim.Exit
	deadline time.Time // of its end; zero: it may run
	evicted  bool      // the end is that of an eviction
	signaled bool      // it has got the signal that announces its end
	fault    string    // how the epilog failed
	launches int
	prolog   bool // it has run
	meter    meter
}

func (r *Runner) newTask(id identity) *task {
	return &task{id: id, folder: shim.Folder(filepath.Join(r.config.Root, id.name())), woken: make(chan struct{}, 1), phase: grant.WorkStarting}
}

func (t *task) wake() { wake(t.woken) }

func (t *task) state() grant.WorkState {
	s := grant.WorkState{Member: t.id.member, Restart: t.id.restart, Phase: t.phase, Signaled: t.signaled, EpilogFault: t.fault, Use: t.meter.state()}
	if t.phase == grant.WorkEnded {
		s.Code, s.Signal, s.Reason, s.Message = t.exit.Code, t.exit.Signal, string(t.exit.Reason), t.exit.Message
	}
	return s
}

// wish is what a task is to do, at one moment.
type wish struct {
	member   *Member
	deadline time.Time
	evicted  bool
}

func (r *Runner) wishOf(t *task) wish {
	r.mu.Lock()
	defer r.mu.Unlock()
	return wish{t.member, t.deadline, t.evicted}
}

// retryAfter is the pause after a step that failed, pollEvery that between two looks
// at a shim that has just been started.
const (
	retryAfter = time.Second
	pollEvery  = 5 * time.Millisecond
	// mostLaunches bounds the shims that end before they have begun.
	mostLaunches = 3
	// killRounds bounds the kills of what a lost shim has left, before it is logged.
	killRounds = 50
)

// follow takes a task to its end, or until ctx ends.
func (r *Runner) follow(ctx context.Context, t *task) {
	for ctx.Err() == nil {
		exit, err := r.advance(ctx, t)
		switch {
		case shim.IsFull(err) && r.endsUnstarted(t):
			e := shim.Exit{Code: 126, Reason: shim.NotStarted, Message: "the work was ended before its start; the disk of the host is full", At: time.Now()}
			r.set(ctx, t, grant.WorkEnded, e)
			return
		case err != nil:
			if shim.IsFull(err) {
				r.makeRoom()
			}
			r.log.Error("work_step_failed", "tx", string(t.id.tx), "member", t.id.member, "error", err, "retry_in", retryAfter)
			pause(ctx, t, retryAfter)
		case exit != nil:
			if !r.runEpilog(ctx, t, *exit) {
				return
			}
			r.set(ctx, t, grant.WorkEnded, *exit)
			return
		}
	}
}

// set notes the phase of a task and reports it.
func (r *Runner) set(ctx context.Context, t *task, p grant.WorkPhase, e shim.Exit) {
	var use shim.Use
	var measured bool
	if p == grant.WorkEnded {
		use, measured = t.folder.Measured()
	}
	_, err := t.folder.Noticed()
	fault := t.folder.Fault()
	r.mu.Lock()
	t.signaled, t.fault = err == nil, fault
	changed := t.phase != p
	t.phase, t.exit = p, e
	if p == grant.WorkEnded {
		t.meter.end(use, measured)
	}
	r.mu.Unlock()
	if changed {
		r.log.Info("work_phase", "tx", string(t.id.tx), "member", t.id.member, "phase", p.String(), "code", e.Code, "reason", string(e.Reason))
		r.config.Changed(ctx, t.id.tx)
	}
}

// advance takes the next step of a task. It returns the exit once there is one.
func (r *Runner) advance(ctx context.Context, t *task) (*shim.Exit, error) {
	if _, err := t.folder.Make(); err != nil {
		return nil, err
	}
	lock, err := t.folder.Lock()
	switch {
	case errors.Is(err, shim.ErrOwned):
		return nil, r.accompany(ctx, t, child{})
	case err != nil:
		return nil, err
	}
	defer lock.Close()
	if exit, err := t.folder.Exit(); err == nil {
		return &exit, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	begun, err := t.folder.Begun()
	switch {
	case err == nil:
		return r.bury(t, begun)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	w := r.wishOf(t)
	switch {
	case !w.deadline.IsZero():
		return r.endUnstarted(t, "the work was ended before its start")
	case w.member == nil:
		lock.Close()
		pause(ctx, t, time.Hour)
		return nil, nil
	case t.launches == mostLaunches:
		return r.endUnstarted(t, fmt.Sprintf("%d supervisors have ended before the start; see %s/trace on the host", mostLaunches, t.folder))
	}
	return r.launch(ctx, t, w, lock)
}

// launch starts a shim, which takes the lock over, and accompanies it. It returns the
// exit of a member that cannot be started.
func (r *Runner) launch(ctx context.Context, t *task, w wish, lock *os.File) (*shim.Exit, error) {
	select {
	case r.starts <- struct{}{}:
	case <-t.woken: // it may be ended before its start
		return nil, nil
	case <-ctx.Done():
		return nil, nil
	}
	spec, binds, refused := w.member.complete()
	if refused != nil {
		<-r.starts
		return r.endUnstarted(t, refused.Error())
	}
	if err := t.folder.HoldRoom(); err != nil {
		<-r.starts
		return nil, err
	}
	if ended, err := r.runProlog(ctx, t, &spec); ended != nil || err != nil {
		<-r.starts
		return ended, err
	}
	if !r.wishOf(t).deadline.IsZero() || ctx.Err() != nil { // it was ended meanwhile
		<-r.starts
		return nil, nil
	}
	c, err := r.fork(ctx, t, Start{Folder: t.folder, Tenant: w.member.Tenant, Bounds: binds}, spec, lock)
	<-r.starts
	switch {
	case errors.Is(err, ErrRefused):
		return r.endUnstarted(t, err.Error())
	case err != nil:
		return nil, err
	}
	lock.Close() // the shim has it too
	return nil, r.accompany(ctx, t, c)
}

// complete is the spec to start, and what binds it.
func (m *Member) complete() (shim.Spec, bounds.Bounds, error) {
	spec, b := m.Spec, m.Bounds
	if m.Prepare == nil {
		return spec, b, nil
	}
	err := m.Prepare(&spec, &b)
	return spec, b, err
}

// child is a shim that this agent has started; the zero value is one of an earlier
// agent.
type child struct {
	pid   int
	begun <-chan struct{} // closed when the shim has begun, or has ended before
}

func (r *Runner) fork(ctx context.Context, t *task, start Start, spec shim.Spec, lock *os.File) (c child, err error) {
	launcher := r.config.Launcher
	if launcher != nil {
		spec.Cgroup, spec.Limits = launcher.Place(start)
	}
	if err := t.folder.WriteShare(r.firstShare(start)); err != nil {
		return child{}, err
	}
	if err := t.folder.WriteSpec(spec); err != nil {
		return child{}, err
	}
	t.launches++
	if launcher == nil {
		c.pid, c.begun, err = shim.Launch(r.config.Program, t.folder, lock)
	} else {
		c.pid, c.begun, err = launcher.Launch(ctx, start, lock)
	}
	return c, err
}

// silentStart is the time after which the runner looks at the folder of a shim that
// says nothing of its start: its program may be of an older version.
const silentStart = 100 * time.Millisecond

// await waits until the shim has begun or has ended, at most for silentStart.
func (c child) await(ctx context.Context) {
	if c.begun == nil {
		return
	}
	timer := time.NewTimer(silentStart)
	defer timer.Stop()
	select {
	case <-c.begun:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// endUnstarted writes the end of a member that never had a process.
func (r *Runner) endUnstarted(t *task, why string) (*shim.Exit, error) {
	e := shim.Exit{Code: 126, Reason: shim.NotStarted, Message: why, At: time.Now()}
	return &e, r.writeEnd(t, e)
}

// writeEnd writes an end. Without room the end counts all the same: a later agent finds the
// folder as this agent has, and comes to the same end.
func (r *Runner) writeEnd(t *task, e shim.Exit) error {
	err := t.folder.WriteExit(e)
	if !shim.IsFull(err) {
		return err
	}
	r.makeRoom()
	r.log.Error("end_not_durable", "tx", string(t.id.tx), "member", t.id.member, "error", err)
	return nil
}

// endsUnstarted reports whether a member is to end before the start of a supervisor.
func (r *Runner) endsUnstarted(t *task) bool {
	_, err := t.folder.Begun()
	return errors.Is(err, fs.ErrNotExist) && !r.wishOf(t).deadline.IsZero()
}

// bury writes the end of a member whose shim has ended without a word, once nothing
// of the member runs. It is never a success.
func (r *Runner) bury(t *task, begun shim.Process) (*shim.Exit, error) {
	e := shim.Exit{Code: shim.UnknownCode, Reason: shim.SupervisorLost, Message: "the supervisor was killed; the member's processes were killed then", At: time.Now()}
	if begun.BootID != r.config.BootID {
		e.Reason, e.Message = shim.NodeRestarted, "the host was started anew while the member ran"
	}
	left, err := t.folder.KillRemains(r.config.BootID, killRounds)
	switch {
	case err != nil:
		return nil, err
	case len(left) > 0:
		return nil, fmt.Errorf("processes %v of a lost supervisor do not end", left)
	}
	return &e, r.writeEnd(t, e)
}

// pause waits for a change of the task's wish, at most for d.
func pause(ctx context.Context, t *task, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.woken:
	case <-ctx.Done():
	}
}

// accompany follows a shim that owns the folder until the shim has ended.
func (r *Runner) accompany(ctx context.Context, t *task, c child) error {
	c.await(ctx)
	begun, err := t.folder.Begun()
	for errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		if c.pid != 0 && reaped(c.pid) {
			return nil // it has ended before it began
		}
		pause(ctx, t, pollEvery)
		if c.pid == 0 {
			return nil // the shim of an earlier agent, or it has ended meanwhile
		}
		begun, err = t.folder.Begun()
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	over, err := awaitProcess(cmp.Or(c.pid, begun.PID), begun, r.config.BootID)
	if err != nil {
		return err
	}
	if over == nil { // it has ended, and gives the folder back now
		pause(ctx, t, pollEvery)
		return nil
	}
	defer over.close()
	spec, _ := t.folder.Spec() // without it the devices are not measured
	use, measured := t.folder.Measured()
	r.mu.Lock()
	t.meter.begin(spec, use, measured, begun)
	r.mu.Unlock()
	r.set(ctx, t, grant.WorkRunning, shim.Exit{})
	var asked wish
	for {
		var again <-chan time.Time
		if w := r.wishOf(t); !w.deadline.IsZero() && (w.deadline != asked.deadline || w.evicted != asked.evicted) {
			ask := t.folder.Stop
			if w.evicted && spec.Notice != nil { // a shim of an older version knows no other stop
				ask = t.folder.Evict
			}
			if err := ask(w.deadline.Sub(r.config.Now())); err == nil {
				asked = w
			} else { // it may be ending
				again = time.After(20 * pollEvery)
			}
		}
		select {
		case <-over.ended:
			return nil
		case <-t.woken:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}
