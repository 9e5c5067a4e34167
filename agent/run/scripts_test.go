package run_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// diary notes the scripts that ran, and the environment of the last one.
type diary struct {
	mu  sync.Mutex
	ran []string
	env []string
}

func (d *diary) script(name string, err error) func(context.Context, shim.Folder, []string) error {
	return func(_ context.Context, f shim.Folder, env []string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ran, d.env = append(d.ran, name), env
		if _, begun := f.Begun(); name == "prolog" && !errors.Is(begun, fs.ErrNotExist) {
			d.ran = append(d.ran, "after the start")
		}
		if _, ended := f.Exit(); name == "epilog" && ended != nil {
			d.ran = append(d.ran, "before the end")
		}
		return err
	}
}

func (d *diary) wants(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.ran, want) {
		t.Errorf("the scripts %q ran, want %q", d.ran, want)
	}
}

func TestThePrologRunsBeforeAndTheEpilogAfterAMember(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		prolog, epilog error
		code           int
		reason, fault  string
		begun          bool
	}{
		"both succeed":        {nil, nil, 3, "Completed", "", true},
		"the prolog fails":    {full, nil, 126, "PrologFailed", "prolog: the disk is full", false},
		"the epilog fails":    {nil, full, 3, "Completed", "epilog: the disk is full", true},
		"both of them do not": {full, full, 126, "PrologFailed", "prolog: the disk is full", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHost(t), &diary{}
			h.prolog, h.epilog = d.script("prolog", c.prolog), d.script("epilog", c.epilog)
			h.start()
			member := h.shell(0, "exit 3")
			member.Spec.Env = append(member.Spec.Env, "MUSTER_CPUS=0-1", "LD_PRELOAD=/x")
			h.runner.Attach("a", []run.Member{member})
			got := h.until(grant.WorkEnded)[0]
			if got.Code != c.code || got.Reason != c.reason || got.HostFault() != c.fault {
				t.Errorf("ended as %+v", got)
			}
			d.wants(t, "prolog", "epilog")
			env := strings.Join(d.env, " ")
			if strings.Contains(env, "LD_PRELOAD") || !strings.Contains(env, "MUSTER_TRANSACTION=a MUSTER_MEMBER=0") || c.begun && !strings.Contains(env, "MUSTER_CPUS=0-1 MUSTER_EXIT_CODE=3 MUSTER_EXIT_REASON=Completed") {
				t.Errorf("the epilog has %q", env)
			}
			if _, err := h.folder(0).Begun(); (err == nil) != c.begun {
				t.Errorf("begun: %v", err)
			}
			h.leave() // a runner that starts anew runs neither of them again
			h.start()
			if got := h.until(grant.WorkEnded)[0]; got.HostFault() != c.fault {
				t.Errorf("the next runner says %+v", got)
			}
			d.wants(t, "prolog", "epilog")
		})
	}
}

// TestAnEpilogThatWasInterruptedRunsAgain: until it has run, the member has not ended.
func TestAnEpilogThatWasInterruptedRunsAgain(t *testing.T) {
	h, d := newHost(t), &diary{}
	entered := make(chan struct{}, 1)
	h.epilog = func(ctx context.Context, _ shim.Folder, _ []string) error {
		entered <- struct{}{}
		<-ctx.Done() // the agent is stopped
		return ctx.Err()
	}
	h.start()
	h.runner.Attach("a", []run.Member{h.shell(0, "exit 0")})
	<-entered
	if !h.runner.Runs("a") {
		t.Error("the member has ended before its epilog")
	}
	h.leave()
	h.epilog = d.script("epilog", nil)
	h.start()
	if got := h.until(grant.WorkEnded)[0]; got.Code != 0 || got.Reason != "Completed" {
		t.Errorf("ended as %+v", got)
	}
	d.wants(t, "epilog")
}

// TestAMemberIsEndedDuringItsProlog: it is not started any more, and its epilog runs.
func TestAMemberIsEndedDuringItsProlog(t *testing.T) {
	h, d := newHost(t), &diary{}
	entered, leave := make(chan struct{}), make(chan struct{})
	h.prolog = func(context.Context, shim.Folder, []string) error {
		close(entered)
		<-leave
		return nil
	}
	h.epilog = d.script("epilog", nil)
	h.start()
	h.runner.Attach("a", []run.Member{h.shell(0, "exit 0")})
	<-entered
	h.runner.Stop("a", time.Now())
	close(leave)
	if got := h.until(grant.WorkEnded)[0]; got.Reason != "NotStarted" {
		t.Errorf("ended as %+v", got)
	}
	d.wants(t, "epilog")
}
