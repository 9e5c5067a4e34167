package run_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/resource"
)

// ended makes the folder of a member that has ended, with so much output.
func (h *host) ended(tx string, at time.Time, output int) {
	h.t.Helper()
	f := shim.Folder(filepath.Join(h.root, tx+".0.0"))
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := f.WriteExit(shim.Exit{Reason: shim.Completed, At: at}); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(f), "log.00000000000000000000"), make([]byte, output), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// kept are the transactions whose folders are there.
func (h *host) kept() (list []string) {
	h.t.Helper()
	entries, err := os.ReadDir(h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		tx, _, _ := strings.Cut(e.Name(), ".")
		list = append(list, tx)
	}
	return list
}

// The output is kept for 24 hours within 2 GiB; smaller bounds stand for the second.
func TestTheOutputOfEndedMembersIsKeptWithinBounds(t *testing.T) {
	if run.DefaultKept != 24*time.Hour || run.DefaultKeptBytes != 2<<30 {
		t.Errorf("by default output is kept for %s within %d bytes, and docs/work.md says otherwise", run.DefaultKept, int64(run.DefaultKeptBytes))
	}
	now := time.Now()
	h := newHost(t)
	h.keep = run.Kept{Bytes: 100}
	h.ended("old", now.Add(-24*time.Hour), 1)
	h.ended("early", now.Add(-3*time.Hour), 60)
	h.ended("later", now.Add(-2*time.Hour), 60)
	h.ended("last", now.Add(-time.Hour), 40)
	h.ended("reported", now.Add(-48*time.Hour), 1000)
	h.start()
	h.runner.Retain(func(tx resource.TxID) bool { return tx == "reported" })
	h.runner.Sweep(now)
	if got, want := h.kept(), []string{"last", "later", "reported"}; !slices.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
	h.runner.Retain(func(resource.TxID) bool { return false })
	h.runner.Sweep(now)
	if got, want := h.kept(), []string{"last", "later"}; !slices.Equal(got, want) {
		t.Errorf("after the last report kept are %v, want %v", got, want)
	}
}

// A member that runs is reported, also where its record has ended.
func TestOnlyEndsAreForgotten(t *testing.T) {
	h := newHost(t)
	h.start()
	reached, wait := h.barrier()
	h.runner.Attach("a", []run.Member{h.shell(0, ": > "+reached+"; sleep 3600")})
	wait()
	h.ended("b", time.Now(), 0)
	h.leave()
	h.start()
	if !h.runner.Has("a") || !h.runner.Has("b") {
		t.Fatal("the next runner does not report what there is")
	}
	h.runner.Retain(func(resource.TxID) bool { return false })
	if !h.runner.Has("a") || h.runner.Has("b") {
		t.Errorf("transactions %v are reported, want a alone", h.runner.Transactions())
	}
}
