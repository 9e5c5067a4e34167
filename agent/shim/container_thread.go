package shim

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// withRightsOf runs a function with a user's rights to files: a job may name files that its
// user cannot read, and errors about them reach the job. nil is the shim's own user. The
// thread of the function ends with the goroutine.
func withRightsOf(u *User, look func() error) (err error) {
	if u == nil {
		return look()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		if err = becomeUser(u); err == nil {
			err = look()
		}
	}()
	<-done
	return err
}

// becomeUser gives the thread the groups and the file system user of u, and no capability.
func becomeUser(u *User) error {
	if os.Geteuid() == int(u.UID) && os.Getegid() == int(u.GID) && !mayChangeGroups() {
		return nil // a user without rights is itself already
	}
	groups := make([]int, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil { // of the thread alone, unlike that of package syscall
		return fmt.Errorf("groups of user %d: %w", u.UID, err)
	}
	_, _ = unix.SetfsgidRetGid(int(u.GID)) // these calls return the former user, and no error
	_, _ = unix.SetfsuidRetUid(int(u.UID))
	group, _ := unix.SetfsgidRetGid(-1)
	user, _ := unix.SetfsuidRetUid(-1)
	if uint32(user) != u.UID || uint32(group) != u.GID {
		return fmt.Errorf("look at files as user %d and group %d: the kernel has refused", u.UID, u.GID)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return nil
}

// mayChangeGroups reports whether the thread has the right to set groups.
func mayChangeGroups() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SETGID) != 0
}
