package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// onSmallDisk puts the folders of a host on a file system of 64 MiB.
func (h *host) onSmallDisk() {
	h.t.Helper()
	disk := h.t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		h.t.Skip("not permitted here: a file system of its own: ", err)
	}
	h.t.Cleanup(func() {
		h.end()
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			h.t.Error(err)
		}
	})
	h.root = filepath.Join(disk, "run")
}

// fill takes all room of the disk, and frees the room again.
func (h *host) fill() (free func()) {
	h.t.Helper()
	path := filepath.Join(filepath.Dir(h.root), "filler")
	file, err := os.Create(path)
	if err != nil {
		h.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err = file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := file.Close(); !shim.IsFull(err) && err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			h.t.Error(err)
		}
	}
}

// TestAFullDiskKeepsNoMemberFromItsEnd: others have taken all room of the agent's disk. Each end
// is reported with the code, and kept, also of a member before the start; a further member starts
// once there is room.
func TestAFullDiskKeepsNoMemberFromItsEnd(t *testing.T) {
	h := newHost(t)
	h.onSmallDisk()
	h.start()
	reached, wait := h.barrier()
	h.runner.Attach("a", []run.Member{
		h.shell(0, "trap 'exit 7' TERM; : > "+reached+"; while :; do sleep 0.01; done"),
	})
	wait()
	free := h.fill()
	h.runner.Attach("late", []run.Member{h.shell(0, "exit 0")})
	h.runner.Stop("late", time.Now())
	for h.runner.Runs("late") {
		<-h.changed
	}
	if s := h.runner.States("late")[0]; s.Reason != string(shim.NotStarted) {
		t.Errorf("a member without room for its folder has ended as %+v, want that it was not started", s)
	}
	h.runner.Stop("a", time.Now().Add(time.Hour))
	if s := h.until(grant.WorkEnded)[0]; s.Code != 7 || s.Reason != string(shim.Stopped) || s.Use == nil {
		t.Errorf("a member on a full disk has ended as %+v, want code 7 and its use", s)
	}
	h.leave()
	h.start()
	if s := h.until(grant.WorkEnded)[0]; s.Code != 7 || s.Reason != string(shim.Stopped) {
		t.Errorf("after a restart of the agent the member has ended as %+v", s)
	}
	h.runner.Attach("b", []run.Member{h.shell(0, "exit 3")})
	free()
	for h.runner.Runs("b") {
		<-h.changed
	}
	if s := h.runner.States("b")[0]; s.Code != 3 {
		t.Errorf("once there is room a member has ended as %+v, want code 3", s)
	}
}

// TestALostSupervisorOnAFullDiskEnds: the member has no held room, as by an older agent.
func TestALostSupervisorOnAFullDiskEnds(t *testing.T) {
	h := newHost(t)
	h.onSmallDisk()
	h.start()
	reached, wait := h.barrier()
	h.runner.Attach("a", []run.Member{h.shell(0, ": > "+reached+"; exec sleep 3600")})
	wait()
	h.until(grant.WorkRunning)
	held, err := filepath.Glob(string(h.folder(0)) + "/*.tmp")
	if err != nil || len(held) == 0 {
		t.Fatalf("no room is held: %v, %v", held, err)
	}
	for _, path := range held {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	h.fill()
	begun, err := h.folder(0).Begun()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(begun.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	over := time.AfterFunc(time.Minute, func() { panic("a lost supervisor on a full disk keeps its member from the end") })
	defer over.Stop()
	if s := h.until(grant.WorkEnded)[0]; s.Reason != string(shim.SupervisorLost) {
		t.Errorf("ended as %+v", s)
	}
}

// TestAFloodOfOutputLeavesRoomForOthers: three members of a tenant write without end. The disk
// keeps room, the member of another tenant has all output and the end, and so have the writers.
func TestAFloodOfOutputLeavesRoomForOthers(t *testing.T) {
	h := newHost(t)
	h.onSmallDisk()
	h.start()
	flood := func(i int) run.Member {
		m := h.shell(i, "while :; do head -c 1048576 /dev/zero; done")
		m.Tenant = "flood"
		return m
	}
	h.runner.Attach("flood", []run.Member{flood(0), flood(1), flood(2)})
	floods := func() (sum int64) {
		for _, name := range []string{"flood.0.0", "flood.1.0", "flood.2.0"} {
			sum += shim.Folder(filepath.Join(h.root, name)).LogBytes()
		}
		return sum
	}
	var disk unix.Statfs_t
	reached, wait := h.barrier()
	m := h.shell(0, "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); sleep 0.005; done; : > "+reached)
	m.Tenant = "honest"
	h.runner.Attach("a", []run.Member{m})
	wait()
	s := h.until(grant.WorkEnded)[0]
	if s.Code != 0 || s.Reason != string(shim.Completed) {
		t.Errorf("the member of another tenant has ended as %+v", s)
	}
	if out := h.output(0); !strings.HasPrefix(out, "line 0\n") || !strings.HasSuffix(out, "line 199\n") {
		t.Errorf("the output of another tenant has %d bytes", len(out))
	}
	if err := unix.Statfs(h.root, &disk); err != nil {
		t.Fatal(err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < 1<<20 {
		t.Errorf("the flood of %d bytes leaves %d bytes of the disk", floods(), free)
	}
	h.runner.Stop("flood", time.Now())
	for h.runner.Runs("flood") {
		<-h.changed
	}
	for _, s := range h.runner.States("flood") {
		if s.Reason != string(shim.Stopped) && s.Reason != string(shim.Killed) {
			t.Errorf("a writer has ended as %+v", s)
		}
	}
}

// TestTheShareOfATenantIsThatOfItsMembers: the second member of a tenant halves the share of the
// first, a member of another tenant has a share beside.
func TestTheShareOfATenantIsThatOfItsMembers(t *testing.T) {
	h := newHost(t)
	h.keep = run.Kept{Bytes: 8 << 20}
	h.start()
	member := func(i int, tenant string) run.Member {
		m := h.shell(i, "exec sleep 3600")
		m.Tenant = resource.TenantID(tenant)
		return m
	}
	h.runner.Attach("a", []run.Member{member(0, "ml")})
	h.until(grant.WorkRunning)
	share := func(i int, want int64) {
		t.Helper()
		if s, err := h.folder(i).Share(); err != nil || s.Bytes != want {
			t.Errorf("member %d has the share %+v, %v; want %d bytes", i, s, err, want)
		}
	}
	share(0, 8<<20)
	h.runner.Attach("a", []run.Member{member(1, "ml"), member(2, "vision")})
	h.until(grant.WorkRunning)
	h.runner.Sweep(time.Now())
	share(0, 2<<20)
	share(1, 2<<20)
	share(2, 4<<20)
	h.leave()
	h.start() // a new agent knows the tenants by the folders
	h.runner.Sweep(time.Now())
	share(0, 2<<20)
	share(2, 4<<20)
}
