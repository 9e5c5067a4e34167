package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Command is the argument that makes a program a shim: PROGRAM shim FOLDER.
const Command = "shim"

// Become runs a shim where the arguments of the program ask for a shim, and does not
// return then. The call comes first in main, and is SealDescriptors for all programs.
// PROGRAM shim FOLDER USER is a shim of the init system, see [Service].
func Become(args []string) {
	sealed := SealDescriptors()
	if len(args) == 2 && args[1] == initCommand && os.Getpid() == 1 {
		becomeInit()
	}
	if len(args) < 3 || args[1] != Command || !filepath.IsAbs(args[2]) {
		return
	}
	if sealed != nil {
		fmt.Fprintln(os.Stderr, "muster-agent shim:", sealed)
		os.Exit(1)
	}
	switch len(args) {
	case 3:
		os.Exit(Main(Folder(args[2])))
	case 4:
		os.Exit(mainOfService(Folder(args[2]), args[3]))
	}
}

// Main is the program of a shim: it returns the exit code.
func Main(f Folder) int {
	return mainWith(f, inheritance{lock: lockDescriptor, begun: begunDescriptor})
}

func mainWith(f Folder, h inheritance) int {
	boundHeap()
	if err := supervise(f, h); err != nil {
		fmt.Fprintln(os.Stderr, "muster-agent shim:", err)
		return 1
	}
	return 0
}

// Launch starts a shim in its own session, with the lock of the folder. program is
// a program that calls Become. The shim outlives the caller, which may wait
// for it by its number. Launch does not close the lock.
//
// begun is closed when the shim has begun, or has ended before. A program of an older
// version says nothing until it ends: look at the folder now and then.
func Launch(program string, f Folder, lock *os.File) (pid int, begun <-chan struct{}, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	trace, err := os.OpenFile(f.path("trace"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer trace.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer writer.Close()
	pid, err = syscall.ForkExec(program, []string{program, Command, string(f)}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"},
		Files: []uintptr{null.Fd(), null.Fd(), trace.Fd(), lock.Fd(), writer.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		reader.Close()
		return 0, nil, fmt.Errorf("start %s %s: %w", program, Command, err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = reader.Read(make([]byte, 1)) // nothing is ever written
		reader.Close()
	}()
	return pid, closed, nil
}
