package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// privateVariable tells the second start of a test program that it has
// namespaces of its own.
const privateVariable = "MUSTER_TEST_PRIVATE"

// private and notPrivate say whether this program has namespaces of its own, or
// why not. Main sets them before any test runs.
var (
	private    bool
	notPrivate string
)

// memoryDir is the tests' temporary folder, in memory: what others do to the
// machine's disk, syncs of seconds among it, should not decide which timeouts
// strike in a test.
const memoryDir = "/run/muster"

// Main is for TestMain: it brings the tests into namespaces of their own,
// builds the programs, puts them first on PATH and returns the exit code.
func Main(m *testing.M) int {
	if os.Getenv(privateVariable) == "" {
		code, err := again()
		if err == nil {
			return code
		}
		notPrivate = err.Error()
	} else if err := settle(); err != nil {
		notPrivate = err.Error()
	} else {
		private = true
	}
	code, err := programs.Run(func() int {
		if private {
			if err := os.Setenv("TMPDIR", memoryDir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Private reports whether faults of the network can be made, and if not, why.
func Private() (bool, string) {
	return private, notPrivate
}

// NeedPrivate skips a test that wants namespaces where there are none.
func NeedPrivate(t testing.TB) {
	t.Helper()
	if ok, why := Private(); !ok {
		t.Skipf("not permitted here: private namespaces: %s", why)
	}
}

// again runs this program once more in namespaces of its own and returns its
// exit code. The error says that the kernel, or a missing program, forbids it.
func again() (int, error) {
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, fmt.Errorf("%w: apt-get install iproute2 nftables", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.Command(self, os.Args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), privateVariable+"=yes")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	signals := make(chan os.Signal, 4) // what arrives while the child starts
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = child.Process.Signal(s) // it may have ended
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 0, err
			}
			if code := child.ProcessState.ExitCode(); code >= 0 {
				return code, nil
			}
			return 1, nil // by a signal
		}
	}
}

// settle makes the fresh namespaces usable: mounts that stay inside, a /proc of
// the process namespace, a place for ip's names, a loopback interface that
// leaves 127.0.0.0/8 to the cables.
func settle() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"tmpfs", "/run", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for _, dir := range []string{"/run/netns", memoryDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(routeLocalnet, []byte("1"), 0o600); err != nil {
		return err
	}
	return tool("ip", "address", "add", "127.0.0.1/32", "dev", "lo").then("ip", "link", "set", "lo", "up").err
}

// tools is a chain of commands that ends at the first failure.
type tools struct{ err error }

func tool(name string, args ...string) tools { return tools{}.then(name, args...) }

func (t tools) then(name string, args ...string) tools {
	if t.err != nil {
		return t
	}
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return tools{fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))}
	}
	return t
}
