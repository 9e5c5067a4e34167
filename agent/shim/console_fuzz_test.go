package shim

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The messages of a terminal come from any process of the user.
func FuzzPassedFiles(f *testing.F) {
	f.Add(unix.UnixRights(7))
	f.Add(unix.UnixRights(7, 8, 9))
	f.Add(unix.UnixCredentials(&unix.Ucred{Pid: 1}))
	f.Add(append(unix.UnixRights(3), unix.UnixRights(4)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if fds, _ := passedFiles(data); len(fds) > len(data)/4 {
			t.Errorf("%d descriptors in %d bytes", len(fds), len(data))
		}
	})
}
