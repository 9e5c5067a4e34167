package report

import (
	"os"
	"os/signal"
	"syscall"
)

// forward gives the process the signals with which the go command ends a test:
// SIGQUIT for the stacks of all goroutines. A terminal's SIGINT reaches the
// process by itself, so it only may not end this one first.
func forward(process *os.Process) (stop func()) {
	signals := make(chan os.Signal, 4) // SIGQUIT comes once, and a second SIGINT may be lost
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGINT {
					_ = process.Signal(s) // the process may have ended
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}
