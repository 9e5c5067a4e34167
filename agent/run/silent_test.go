package run_test

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/musterd/muster/grant"
)

// TestSilentConnectionsBlockNoStop: a stop reaches a supervisor beside connections without a
// request.
func TestSilentConnectionsBlockNoStop(t *testing.T) {
	h := newHost(t)
	h.own(false, "exec sleep 3600")
	dir, err := os.Open(string(h.folder(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for range 200 {
		c, err := net.Dial("unix", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/socket")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := h.folder(0).Stop(time.Hour); err != nil {
		t.Fatalf("a stop beside 200 silent connections: %v", err)
	}
	h.until(grant.WorkEnded)
}
