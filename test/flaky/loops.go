package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"
)

// longestLoop bounds the life of a busy loop, should nobody end it.
const longestLoop = 3 * time.Hour

// loop keeps one core busy until in ends or the time has passed.
func loop(in io.Reader, most time.Duration) {
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in) //nolint:errcheck // an error is an end, too
		close(ended)
	}()
	for began, n := time.Now(), 0; ; n++ {
		if n%(1<<20) != 0 {
			continue
		}
		select {
		case <-ended:
			return
		default:
		}
		if time.Since(began) > most {
			return
		}
	}
}

// startLoops starts busy loops, each a process of its own; stop ends them. They end as
// well when this process does, because their standard input ends with it.
func startLoops(ctx context.Context, n int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running []*exec.Cmd
	stop = func() {
		cancel()
		for _, c := range running {
			c.Wait() //nolint:errcheck // it was killed
		}
	}
	self, err := os.Executable()
	if err != nil {
		stop()
		return nil, err
	}
	for range n {
		c := exec.CommandContext(ctx, self, "loop")
		if _, err := c.StdinPipe(); err != nil {
			stop()
			return nil, err
		}
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		running = append(running, c)
	}
	return stop, nil
}
