package run

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
)

// process waits for the end of a process without a thread of its own.
type process struct {
	ended chan struct{} // closed at the end
	file  *os.File
	done  chan struct{} // closed when the waiting goroutine has returned
}

// awaitProcess waits for the end of a shim, and reaps it where it is a child; nil
// where it has ended already.
func awaitProcess(pid int, identity shim.Process, bootID string) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	} else if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// The descriptor is of the shim if the shim still lives now: numbers are used anew
	// only after an end.
	if !identity.IsAlive(bootID) {
		unix.Close(fd)
		reaped(pid)
		return nil, nil
	}
	p := &process{ended: make(chan struct{}), done: make(chan struct{}), file: os.NewFile(uintptr(fd), "pidfd")}
	raw, err := p.file.SyscallConn()
	if err != nil {
		p.file.Close()
		return nil, err
	}
	go func() {
		defer close(p.done)
		if err := raw.Read(hasEnded); err == nil {
			reaped(pid)
			close(p.ended)
		}
	}()
	return p, nil
}

// hasEnded reports whether the process of a pidfd has ended.
func hasEnded(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// reaped reaps a child that has ended; it reports whether there is no such child any
// more.
func reaped(pid int) bool {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return got == pid || errors.Is(err, syscall.ECHILD)
}

func (p *process) close() {
	p.file.Close()
	<-p.done
}
