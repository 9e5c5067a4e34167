package container

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/grant"
)

// TestACommandSeesTheProcessesOfItsContainerAlone: so does a session, and the ends of orphans are
// collected. Without a first process the container shares the processes of the host.
func TestACommandSeesTheProcessesOfItsContainerAlone(t *testing.T) {
	h := newHost(t)
	list := "cd /proc; for p in [0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done | sort -u"
	h.attach(h.spec("(sleep 0.01 & ) ; echo ready; exec sleep 1000"))
	h.prints("ready")
	pid := "none"
	for deadline := time.Now().Add(patience); pid != ""; {
		out, _ := hears(t, h.session(grant.Exec{Args: shell("grep -l 'State:.Z' /proc/[0-9]*/status")}), "")
		if pid = strings.TrimSpace(out); time.Now().After(deadline) {
			t.Fatalf("%s is the process of an orphan that has ended, and stays", pid)
		}
	}
	out, _ := hears(t, h.session(grant.Exec{Args: shell(list)}), "")
	for _, want := range []string{"/dev/.muster-init init", "sleep 1000"} {
		if !strings.Contains(out, want) {
			t.Errorf("a session sees\n%s\nwant %q among these", out, want)
		}
	}
	if other := "container.test"; strings.Contains(out, other) || strings.Count(out, "\n") > 8 {
		t.Errorf("a session sees processes of the host:\n%s", out)
	}
	h.runner.Stop(tx, time.Now().Add(patience))
	h.ends()

	h = newHost(t)
	h.image.Init = ""
	h.attach(h.spec(list))
	if e := h.ends(); e.Code != 0 || strings.Count(h.log(), "\n") < 8 {
		t.Errorf("without a first process the end is %+v, and the command sees\n%s", e, h.log())
	}
}

// TestTheSystemCallsOfACommandAreFiltered: the calls about namespaces and mounts fail, of a
// session too; the ordinary calls are those of the other tests.
func TestTheSystemCallsOfACommandAreFiltered(t *testing.T) {
	h := newHost(t)
	script := `grep Seccomp: /proc/self/status; for c in "unshare -m true" "unshare -U true" "mount -t tmpfs none /tmp" "chroot / true"; do busybox $c 2>/dev/null && echo "permitted: $c"; done; busybox setsid true && echo setsid`
	const want = "Seccomp:\t2\nsetsid\n"
	h.attach(h.spec(script + "; echo ready; exec sleep 1000"))
	h.prints("ready")
	if got := strings.TrimSuffix(h.log(), "ready\n"); got != want {
		t.Errorf("a command prints %q, want %q", got, want)
	}
	if out, _ := hears(t, h.session(grant.Exec{Args: shell(script)}), ""); out != want {
		t.Errorf("a session prints %q, want %q", out, want)
	}
	h.runner.Stop(tx, time.Now().Add(patience))
	h.ends()
}
