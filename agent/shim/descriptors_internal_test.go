package shim

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestADescriptorIsSealedWithoutCloseRange: kernels before Linux 5.11 have the list alone.
func TestADescriptorIsSealedWithoutCloseRange(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inherited, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	if err := sealEach(); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(inherited), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor %d has the flags %#x: %v; want that programs do not inherit it", inherited, flags, err)
	}
	for n := range 3 {
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC != 0 {
			t.Errorf("standard stream %d would be closed", n)
		}
	}
}
