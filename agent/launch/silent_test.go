package launch_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/agent/launch"
)

// TestSilentConnectionsBlockNoCaller: connections without a request, of the agent's user and of
// others, delay no request, and end.
func TestSilentConnectionsBlockNoCaller(t *testing.T) {
	socket := serve(t, &launch.Server{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Starter: &launch.Systemd{}})
	var silent []net.Conn
	for range 200 {
		c, err := net.Dial("unixpacket", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := launch.Dial(ctx, socket); err != nil {
		t.Fatalf("beside 200 silent connections: %v", err)
	}
	// The oldest has ended to make room; the newest may still speak.
	_ = silent[0].SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := silent[0].Read(make([]byte, 4096)); err == nil && n > 0 {
		t.Logf("the oldest connection has got an answer of %d bytes", n)
	} else if os.IsTimeout(err) {
		t.Error("the oldest silent connection is open after 200 others")
	}
	newest := silent[len(silent)-1]
	if _, err := newest.Write([]byte(`{"version":1,"bounds":{}}`)); err != nil {
		t.Fatalf("the newest connection has ended: %v", err)
	}
	if n, err := newest.Read(make([]byte, 4096)); err != nil || n == 0 {
		t.Errorf("the newest connection has no answer: %v", err)
	}
}
