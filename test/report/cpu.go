package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// cpuPrefix begins the line with which Measure ends a package's output. The go
// command keeps the line with a cached result, so the cost of a package whose
// result was cached is known too.
const cpuPrefix = "muster-test: cpu "

// Measure runs a test binary as `go test -exec` does, and after its end prints
// the CPU time of the binary and of the children that it waited for. It returns
// the binary's exit code.
func Measure(out io.Writer, args []string) int {
	// No context bounds the binary: the go command ends it after -timeout.
	process, err := start(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "start a test binary: %v\n", err)
		return 1
	}
	stop := forward(process)
	state, err := process.Wait()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "wait for a test binary: %v\n", err)
		return 1
	}
	fmt.Fprintln(out, cpuLine(state.UserTime()+state.SystemTime()))
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		fmt.Fprintf(os.Stderr, "signal: %v\n", status.Signal())
		return 1
	}
	return state.ExitCode()
}

// start starts the program. While another process of the go command still has
// the program open for writing, the kernel answers ETXTBSY (golang.org/issue/22315);
// that is over within milliseconds.
func start(args []string) (*os.Process, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		process, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
		if !errors.Is(err, syscall.ETXTBSY) || pause > 10*time.Second {
			return process, err
		}
		time.Sleep(pause)
	}
}

func cpuLine(d time.Duration) string { return fmt.Sprintf("%s%.2fs", cpuPrefix, d.Seconds()) }

// parseCPU returns the seconds of such a line.
func parseCPU(line string) (seconds float64, ok bool) {
	rest, ok := strings.CutPrefix(line, cpuPrefix)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(strings.TrimSpace(rest))
	return d.Seconds(), err == nil
}
