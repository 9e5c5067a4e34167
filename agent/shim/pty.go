package shim

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudoterminal: the end of the person, and the end of the command,
// which belongs to the command's user.
func openTerminal(u *User, size Window) (person, command *os.File, err error) {
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if u != nil {
			// The kernel gives the command's end to the file system user of this thread. A
			// shim that is not root may not change the owner later (chown).
			_ = unix.Setfsuid(int(u.UID))
		}
		person, command, err = openEnds()
	}()
	<-opened
	if err != nil {
		return nil, nil, fmt.Errorf("a terminal: %w", err)
	}
	_ = resize(person, size) // a terminal without a size works, too
	return person, command, nil
}

func openEnds() (person, command *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("open /dev/ptmx", err)
	}
	person = os.NewFile(uintptr(fd), "terminal")
	if command, err = otherEnd(fd); err != nil {
		person.Close()
		return nil, nil, err
	}
	return person, command, nil
}

// otherEnd opens the end of the command.
func otherEnd(person int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(person, unix.TIOCSPTLCK, 0); err != nil {
		return nil, os.NewSyscallError("unlock", err)
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	// By the open end: the folder /dev/pts of the shim may be that of another terminal's kind.
	if fd, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(person), unix.TIOCGPTPEER, flags); err == 0 {
		return os.NewFile(fd, "terminal"), nil
	}
	number, err := unix.IoctlGetUint32(person, unix.TIOCGPTN) // before Linux 4.13
	if err != nil {
		return nil, os.NewSyscallError("number", err)
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), flags, 0)
}

// repaint gives a terminal the size of a person's who has come. again: the person sees
// nothing of the screen so far. A program draws its screen again where the size changes, so
// a size that the terminal has already changes twice.
func repaint(terminal *os.File, size Window, again bool) error {
	if now, err := sizeOf(terminal); again && err == nil && now == size && size != (Window{}) {
		if err := resize(terminal, Window{size.Rows + 1, size.Columns}); err != nil {
			return err
		}
	}
	return resize(terminal, size)
}

func sizeOf(terminal *os.File) (Window, error) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return Window{}, err
	}
	var size *unix.Winsize
	var failed error
	if err := raw.Control(func(fd uintptr) { size, failed = unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ) }); err != nil || failed != nil {
		return Window{}, errors.Join(err, failed)
	}
	return Window{size.Row, size.Col}, nil
}

// resize sets the size of a terminal. The kernel signals SIGWINCH to its foreground group.
func resize(person *os.File, size Window) error {
	if size == (Window{}) {
		return nil
	}
	raw, err := person.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	})
	return errors.Join(err, failed)
}
