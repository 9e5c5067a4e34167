package shim

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// This file takes rights from the command of a member.

// keptRights are the capabilities of the forking thread: the child changes the user
// with these, and has no further right while the child enters the folder and finds the program.
const keptRights = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// maxCapability bounds the numbers of capabilities, as the kernel's sets do.
const maxCapability = 63

// giveUpRights has this thread, and each program started here, never gain a right: a
// set-user-id program runs as the caller, and no program has a capability, of root neither.
// The thread must end with the goroutine. A supervisor without CAP_SETPCAP cannot empty the
// bounding set; without new privileges no program gains a capability from this set.
func giveUpRights() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	for c := range uintptr(maxCapability + 1) {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			break // the kernel has no more
		} else if has == 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) {
			break
		} else if err != nil {
			return fmt.Errorf("bounding set: capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	// Without inheritable capabilities the kernel empties the ambient set, too.
	kept := has[0].Permitted & keptRights
	has = [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	return os.NewSyscallError("capset", unix.Capset(&header, &has[0]))
}
