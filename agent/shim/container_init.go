package shim

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file has the first process of a container. In the process namespace of the container
// the first process collects the ends of processes without a parent. The member's own command is a
// later process, so signals act as outside of a container.

const (
	// initCommand is the argument of the first process: PROGRAM init.
	initCommand = "init"
	// initPath is the place of this program in a container.
	initPath = "/dev/.muster-init"
)

// initEnv keeps the first process small.
var initEnv = []string{"GOMAXPROCS=1", "GOGC=20"}

// becomeInit is the first process. The end of the standard output is the sign of the start.
func becomeInit() {
	_ = unix.Close(1)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	for {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		<-ends
	}
}

// startInit starts the first process of the container, and waits until the process has begun: the
// tool may end before, and cannot enter the container before.
func (c *container) startInit(config []byte) (code int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return codeNotStarted, err
	}
	defer null.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return codeNotStarted, err
	}
	defer reader.Close()
	_, code, err = c.enter("run", config, []*os.File{null, writer, null}, false)
	if err = errors.Join(err, writer.Close()); err != nil {
		return code, err
	}
	_ = reader.SetReadDeadline(time.Now().Add(startMost)) // else the next run of the tool fails
	_, _ = reader.Read(make([]byte, 1))                   // the end, also where the process has died
	return 0, nil
}
