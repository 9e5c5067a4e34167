package agent_test

import (
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/agent/shim"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// newAttachRig is a rig whose agent starts nothing, and has a socket for launchers.
func newAttachRig(t *testing.T) (r *rig, socket string) {
	r = newRig(t)
	var err error
	if r.boot, err = shim.BootID(); err != nil {
		t.Skip("not permitted here: ", err)
	}
	socket = filepath.Join(t.TempDir(), "s")
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.Attach = &agent.AttachConfig{Socket: socket} }
	return r, socket
}

// sleeper is a process of a launcher, which ignores SIGTERM.
func sleeper(t *testing.T) *exec.Cmd {
	c := exec.Command("/bin/sh", "-c", "trap '' TERM; echo up; exec sleep 1000")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return c
}

func refusedWith(err error) int {
	var r *attach.Refused
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// TestAttachedWorkKeepsItsDevicesOverRestarts: a release stops it, also by the next process
// of the agent, and its devices are nobody else's until it has ended.
func TestAttachedWorkKeepsItsDevicesOverRestarts(t *testing.T) {
	r, socket := newAttachRig(t)
	r.start()
	l := r.lead(1)
	mustBe(t, l.reserve("early", 1, time.Minute), musterv1.Reply_RESERVED)
	p := sleeper(t)
	if err := attach.Attach(t.Context(), socket, attach.Request{Transaction: "early", PID: p.Process.Pid}); refusedWith(err) != http.StatusNotFound {
		t.Errorf("a reservation is attached to: %v", err)
	}
	l.send(&musterv1.Abort{Tx: "early", Epoch: 1})
	r.grant(l, "a", 8)
	if err := attach.Attach(t.Context(), socket, attach.Request{Transaction: "a", PID: p.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	l.work("a", musterv1.WorkState_RUNNING)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start()
	l = r.lead(1)
	l.send(&musterv1.Release{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
	mustBe(t, l.reply("a"), musterv1.Reply_STOPPING)
	mustBe(t, l.reserve("b", 1, time.Minute), musterv1.Reply_NO)
	if err := r.end(); err != nil { // the stop is in the journal
		t.Fatal(err)
	}
	r.start()
	l = r.lead(1)
	if err := attach.Done(t.Context(), socket, attach.Request{Transaction: "a", Code: new(int)}); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if state := l.work("a", musterv1.WorkState_ENDED); state.GetCode() != 0 || state.GetReason() != "Stopped" {
		t.Errorf("the work has ended as %v, want code 0 after a stop", state)
	}
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
	if err := attach.Done(t.Context(), socket, attach.Request{Transaction: "a", Code: new(int)}); refusedWith(err) != http.StatusNotFound {
		t.Errorf("an end after the grant: %v", err)
	}
}

// TestAnAgentThatStartsNothingFollowsAttachedWork: its answer to a start is that it starts
// nothing, and the grant without attached work ends at once.
func TestAnAgentThatStartsNothingFollowsAttachedWork(t *testing.T) {
	r, _ := newAttachRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	l.send(startOf("a", "true"))
	if state := l.work("a", musterv1.WorkState_ENDED); state.GetReason() != "NotStarted" {
		t.Errorf("the work has ended as %v, want NotStarted", state)
	}
	l.send(&musterv1.Release{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
}

// TestDoneEndsANotice: the grace of unattached work ends with the holder's code, and lasts
// without a code.
func TestDoneEndsANotice(t *testing.T) {
	r, socket := newAttachRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	r.grant(l, "b", 1)
	for _, tx := range []string{"a", "b"} {
		l.send(&musterv1.Evict{Tx: tx, Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
		mustBe(t, l.reply(tx), musterv1.Reply_EVICTING)
	}
	if err := attach.Done(t.Context(), socket, attach.Request{Transaction: "a", Code: new(int)}); err != nil {
		t.Fatal(err)
	}
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
	if got := l.state("b"); got != musterv1.Reply_EVICTING {
		t.Errorf("b is %s without a code, want EVICTING", got)
	}
}
