// Package run starts the processes of committed grants, follows them to their end and
// measures their use on the way. It does the latter two for work that launchers attach, too.
// Each member that it starts has a shim (package shim), whose folder is
// the truth: a runner that starts anew finds every shim by its folder. The runner keeps
// the folders of ended members, with their output, within bounds of age and size. The
// runner decides neither which grants there are nor when they end; it reports when
// nothing of a grant runs.
package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/outputs"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Config of a Runner. All fields but Program, Launcher, Prolog, Epilog, Kept, Signal and Devices
// are required.
type Config struct {
	// Root is the folder of the folders of all starts.
	Root string
	// Program becomes a shim, see shim.Launch; "" where nothing is started.
	Program string
	// BootID is the kernel's present boot.
	BootID string
	// Launcher starts the shims; nil forks Program.
	Launcher Launcher
	// Prolog runs before the first start of a member, and Epilog after its end, with the
	// given variables of its environment; nil runs none. Both may block until ctx ends, and
	// may run again after a restart of the agent. An error of Prolog ends the member as
	// PrologFailed; an error of Epilog is a fault of the host alone.
	Prolog, Epilog func(ctx context.Context, f shim.Folder, env []string) error
	// Kept bounds the folders of ended members; the zero value is the default.
	Kept Kept
	Log  *slog.Logger
	// Signal sends a signal to a process of attached work that is another user's; nil has
	// no right to do so. It may block until ctx ends.
	Signal func(ctx context.Context, p shim.Process, s syscall.Signal) error
	// Devices is the present use of the host's devices and MIG instances, by UUID; nil
	// measures none. Devices may block until ctx ends.
	Devices func(ctx context.Context) map[string]DeviceNow
	// Now is the time line of the deadlines.
	Now func() time.Time
	// Changed takes a transaction of which a state is another one now. It is called
	// on goroutines of Run, and may block.
	Changed func(ctx context.Context, tx resource.TxID)
}

// Member is one member to start.
type Member struct {
	Index   int
	Restart int // 0 at the first start of the member in its transaction
	Spec    shim.Spec
	// Prepare completes the Spec and the Bounds right before the start, and may block; nil
	// for none. With its error the member ends as NotStarted.
	Prepare func(*shim.Spec, *bounds.Bounds) error
	// Tenant has the grant, and Bounds bind the member; the launcher acts on both.
	Tenant resource.TenantID
	Bounds bounds.Bounds
}

// Start is one start of a shim.
type Start struct {
	Folder shim.Folder
	Tenant resource.TenantID
	Bounds bounds.Bounds
}

// ErrRefused is wrapped by an error of Launch that says why the start cannot be made,
// now or later: the member ends as NotStarted.
var ErrRefused = errors.New("refused")

// Launcher starts shims.
type Launcher interface {
	// Place returns the cgroup that a start will have, "" for none, and the limits there.
	// It does not block.
	Place(s Start) (cgroup string, limits map[string]string)
	// Launch starts the shim and hands the lock of the folder over: the folder is never
	// free in between. pid is 0 where the shim is no child of this process. begun is
	// closed when the shim has begun, or has ended before. Launch may block, and may be
	// called again for a start whose shim has ended before it began.
	Launch(ctx context.Context, s Start, lock *os.File) (pid int, begun <-chan struct{}, err error)
}

// Runner starts and follows. Its methods may be called by any goroutine. Open and Measure
// read and write files, Run blocks until its context ends; the others do not block.
type Runner struct {
	config Config
	log    *slog.Logger
	more   chan struct{} // capacity 1: there are tasks that no goroutine follows
	starts chan struct{} // bounds the forks at one time

	lookNow chan struct{} // capacity 1: the file system has no room

	sweeping sync.Mutex
	ended    map[string]outputs.Member // ended members by folder; sweeping guards the map

	measureEvery time.Duration
	samples      samples

	mu    sync.Mutex
	tasks map[resource.TxID][]*task
	fresh []*task // no goroutine follows them yet
}

// startsAtOnce bounds the forks at one time.
const startsAtOnce = 8

// Open finds the shims and the ends of earlier runners. A folder without a spec and
// without an end was never of use, and goes.
func Open(c Config) (*Runner, error) {
	r := &Runner{
		config: c, log: c.Log, more: make(chan struct{}, 1), starts: make(chan struct{}, startsAtOnce), lookNow: make(chan struct{}, 1), measureEvery: measureEvery,
		tasks: map[resource.TxID][]*task{},
	}
	if !filepath.IsAbs(c.Root) || c.Program != "" && !filepath.IsAbs(c.Program) {
		return nil, fmt.Errorf("run: folder %q and program %q: want absolute paths", c.Root, c.Program)
	}
	if err := os.MkdirAll(c.Root, 0o700); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	entries, err := os.ReadDir(c.Root)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	for _, e := range entries {
		id, err := parseName(e.Name())
		if err != nil || !e.IsDir() {
			r.log.Warn("run_folder_not_known", "name", e.Name(), "error", err)
			continue
		}
		t := r.newTask(id)
		switch attached, err := t.folder.Attached(); {
		case err == nil:
			t.external = &external{wanted: attached}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("run: %w", err)
		}
		exit, exitErr := t.folder.Exit() // also of a member that was ended before its start
		if _, err := t.folder.Spec(); exitErr != nil && t.external == nil && errors.Is(err, fs.ErrNotExist) {
			if _, err := t.folder.Begun(); errors.Is(err, fs.ErrNotExist) {
				r.discard(t.folder)
				continue
			}
		}
		if exitErr == nil && (c.Epilog == nil || !t.folder.OwesEpilog()) {
			t.phase, t.exit = grant.WorkEnded, exit
			t.meter.end(t.folder.Measured())
			_, err := t.folder.Noticed()
			t.signaled, t.fault = err == nil, t.folder.Fault()
		} else {
			r.fresh = append(r.fresh, t)
		}
		r.tasks[id.tx] = append(r.tasks[id.tx], t)
	}
	return r, nil
}

// discard removes a folder in which nothing was ever started.
func (r *Runner) discard(f shim.Folder) {
	lock, err := f.Lock()
	if err != nil {
		return
	}
	defer lock.Close()
	if err := os.RemoveAll(string(f)); err != nil {
		r.log.Warn("run_folder_not_removed", "folder", string(f), "error", err)
	}
}

// Attach starts members of a transaction, each at most once. The caller has seen
// that the transaction is COMMITTED, and durable.
func (r *Runner) Attach(tx resource.TxID, members []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range members {
		id := identity{tx, m.Index, m.Restart}
		at := slices.IndexFunc(r.tasks[tx], func(t *task) bool { return t.id == id })
		if at < 0 {
			t := r.newTask(id)
			t.member = &m
			r.tasks[tx] = append(r.tasks[tx], t)
			r.fresh = append(r.fresh, t)
			continue
		}
		if t := r.tasks[tx][at]; t.member == nil && t.external == nil { // found by Open
			t.member = &m
			t.wake()
		}
	}
	wake(r.more)
}

// Has reports whether members of a transaction were attached.
func (r *Runner) Has(tx resource.TxID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks[tx]) > 0
}

// Runs reports whether something of a transaction may run, or may be started.
func (r *Runner) Runs(tx resource.TxID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.tasks[tx], func(t *task) bool { return t.phase != grant.WorkEnded })
}

// States are those of a transaction's members, ascending.
func (r *Runner) States(tx resource.TxID) []grant.WorkState {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []grant.WorkState
	for _, t := range r.tasks[tx] {
		list = append(list, t.state())
	}
	slices.SortFunc(list, func(a, b grant.WorkState) int { return a.Compare(b) })
	return list
}

// Transactions are those that have states, ascending.
func (r *Runner) Transactions() []resource.TxID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []resource.TxID
	for tx := range r.tasks {
		list = append(list, tx)
	}
	slices.Sort(list)
	return list
}

// Stop has everything of a transaction end: SIGTERM now, SIGKILL at the deadline. A stop
// counts more than an eviction, before and after it.
func (r *Runner) Stop(tx resource.TxID, deadline time.Time) { r.stop(tx, deadline, false) }

// Evict is Stop for an eviction: members whose Spec has a Notice get its signal before
// SIGTERM.
func (r *Runner) Evict(tx resource.TxID, deadline time.Time) { r.stop(tx, deadline, true) }

func (r *Runner) stop(tx resource.TxID, deadline time.Time, evicted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tasks[tx] {
		if t.phase == grant.WorkEnded {
			continue
		}
		first := t.deadline.IsZero()
		if first || deadline.Before(t.deadline) {
			t.deadline = deadline
		}
		t.evicted = evicted && (first || t.evicted)
		if t.external != nil {
			t.external.changed = time.Now()
		}
		t.wake()
	}
}

// StopAll is Stop for every transaction.
func (r *Runner) StopAll(deadline time.Time) {
	for _, tx := range r.Transactions() {
		r.Stop(tx, deadline)
	}
}

// After implements [follow.Follower]: what ends is stopped, and what has ended is
// reported no more.
func (r *Runner) After(g follow.Group) {
	for _, c := range g.Changes {
		switch e := c.Event.(type) {
		case ledger.Granted:
			r.Resume(e.Grant.Tx, e.Grant.State, e.Grant.Deadline)
		case ledger.Noticed:
			r.Evict(e.Tx, e.Deadline)
		case ledger.StopBegun:
			r.Stop(e.Tx, e.Deadline)
		case ledger.Dropped: // the record is terminal: until then a new leader may ask for the end
			r.forget(e.Tx)
		}
	}
}

// Resume has everything of a transaction end whose grant is ending.
func (r *Runner) Resume(tx resource.TxID, s grant.State, deadline time.Time) {
	switch s {
	case grant.Evicting:
		r.Evict(tx, deadline)
	case grant.Stopping:
		r.Stop(tx, deadline)
	default:
	}
}

// Retain ends the reports of transactions that are not known and of which nothing runs.
// A runner that starts anew finds the folders of all ends that are kept for their output:
// most of them were reported to their leader long ago.
func (r *Runner) Retain(known func(resource.TxID) bool) {
	for _, tx := range r.Transactions() {
		is := known(tx)
		if r.setAbandoned(tx, !is); !is {
			r.forget(tx)
		}
	}
}

// forget ends the reports of a transaction of which nothing runs. The folders stay,
// for their output.
func (r *Runner) forget(tx resource.TxID) {
	if r.Runs(tx) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, tx)
}

// Run follows all members until ctx ends. The shims go on.
func (r *Runner) Run(ctx context.Context) {
	var followers sync.WaitGroup
	defer followers.Wait()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	followers.Go(func() { r.measureUntil(ctx) })
	r.sweep(time.Now())
	for {
		r.mu.Lock()
		fresh := r.fresh
		r.fresh = nil
		r.mu.Unlock()
		for _, t := range fresh {
			follow := r.follow
			if t.external != nil {
				follow = r.followExternal
			}
			followers.Go(func() { follow(ctx, t) })
		}
		select {
		case <-r.more:
		case now := <-sweep.C:
			r.sweep(now)
		case now := <-look.C:
			if r.missing() != (outputs.Missing{}) {
				r.sweep(now)
			}
		case <-r.lookNow:
			r.sweep(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// wake puts a wish into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
